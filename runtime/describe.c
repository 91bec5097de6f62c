/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c: the exact description of the arguments of a launch, word by word: options, and per
 * view dtype, space, traits, rank, alignment, dimensions and digits; per scalar its dtype, and its
 * bits if code or domain depend on them. Addresses are not in it, only their alignment; overlap is
 * decided anew at every launch. Views with tables are not described: what they expand to is. Two launches with equal descriptions and the same overlap run the
 * same code on the same domain.
 *
 * This is on the short way of a launch: no allocation, no calls, and nothing but loads from the
 * descriptors.
 */
#include "runtime/cuda_stream.h"
#include "runtime/launch.h"

#include <string.h>

enum {
    CHOICE_BYTES = offsetof(qn_options, plan) - offsetof(qn_options, engine),
    CHOICE_WORDS = (CHOICE_BYTES + 7) / 8,
    PLAN_WORDS = (sizeof(qn_plan_options) + 7) / 8
};

/** Number and alignment class of a data address in one word. */
static inline uint64_t address_class(const void *data)
{
    uintptr_t address = (uintptr_t)data;
    return address == 0 ? 8 : (uint64_t)__builtin_ctzll((unsigned long long)address | 64);
}

/** Whether a caller left the plan to the planner, as nearly all do. */
static inline bool is_plan_free(const qn_plan_options *p)
{
    int32_t any = p->lane_dim | p->width | p->unroll | p->jam_dim | p->jam | p->streams |
                  p->transpose | p->pack | p->team;
    for (int d = 0; d < QN_MAX_RANK; d++)
        any |= p->order[d];
    return any == 0;
}

/** The first word says what follows: the options, and the plan if a field of it is fixed. */
static void describe_options(const qn_options *o, qn_description *out)
{
    uint64_t *word = out->word + 1;
    bool is_free = is_plan_free(&o->plan);
    word[CHOICE_WORDS - 1] = 0;
    memcpy(word, &o->engine, CHOICE_BYTES);
    word[CHOICE_WORDS] = o->stream ? (uint64_t)(uintptr_t)o->stream->gpu : 0;
    out->word[0] = is_free ? 1 : 2;
    out->n = 1 + CHOICE_WORDS + 1;
    if (is_free)
        return;
    word[CHOICE_WORDS + PLAN_WORDS] = 0;
    memcpy(word + CHOICE_WORDS + 1, &o->plan, sizeof o->plan);
    out->n += PLAN_WORDS;
}

static bool describe_digits(const qn_digits *digits, int rank, qn_description *out)
{
    uint32_t n_words = (uint32_t)(rank + 1) + 2 * (uint32_t)digits->n;
    if (digits->tables || digits->n < 0 || digits->n > QN_MAX_DIGITS || out->n + n_words > QN_DESCRIPTION_WORDS)
        return false;
    uint64_t *word = out->word + out->n;
    for (int d = 0; d <= rank; d++)
        *word++ = (uint64_t)(int64_t)digits->first[d];
    for (int i = 0; i < digits->n; i++) {
        *word++ = (uint64_t)digits->digit[i].extent;
        *word++ = (uint64_t)digits->digit[i].stride;
    }
    out->n += n_words;
    return true;
}

static bool describe_view(const qn_view *v, const qn_kernel_parameter *param, qn_description *out)
{
    const qn_layout *l = &v->layout;
    int rank = param->rank;
    if (v->record != param->record && !qn_record_equal(v->record, param->record))
        return false;
    if (l->rank != rank || l->origin != 0 || out->n + 3 + 3 * (uint32_t)rank > QN_DESCRIPTION_WORDS)
        return false;
    uint64_t *word = out->word + out->n;
    *word++ = (uint64_t)(uint32_t)v->dtype << 32 | (uint32_t)v->space;
    *word++ = (uint64_t)v->traits << 32 | l->projected;
    *word++ = (uint64_t)v->unit << 8 | address_class(v->data) << 1 | (l->digits != NULL);
    for (int d = 0; d < rank; d++) {
        *word++ = (uint64_t)l->dim[d].lower;
        *word++ = (uint64_t)l->dim[d].extent;
        *word++ = (uint64_t)l->dim[d].stride;
    }
    out->n += 3 + 3 * (uint32_t)rank;
    return !l->digits || describe_digits(l->digits, rank, out);
}

/** A hash of the words; four independent chains hide the latency of the multiplications. */
static uint64_t hash_words(const uint64_t *word, uint32_t n)
{
    const uint64_t k = 0x9fb21c651e98df25u;
    uint64_t a = 0x9e3779b97f4a7c15u ^ n, b = 0xc2b2ae3d27d4eb4fu, c = 0xd6e8feb86659fd93u,
             d = 0xa0761d6478bd642fu;
    uint32_t i = 0;
    for (; i + 3 < n; i += 4) {
        a = (a ^ word[i]) * k;
        b = (b ^ word[i + 1]) * k;
        c = (c ^ word[i + 2]) * k;
        d = (d ^ word[i + 3]) * k;
    }
    for (; i < n; i++)
        a = (a ^ word[i]) * k;
    a ^= b << 13 | b >> 51;
    c ^= d << 29 | d >> 35;
    a = (a ^ a >> 32) * k + (c ^ c >> 32);
    a *= 0x9e3779b97f4a7c15u;
    return a ^ a >> 32;
}

bool qn__describe(const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
                  const uint32_t scalars[2], qn_description *out)
{
    if (n != k->n_params || (!args && n > 0) || (o && o->bytes != sizeof *o))
        return false;
    out->n = 1;
    out->word[0] = 0;
    if (o)
        describe_options(o, out);
    for (int i = 0; i < n; i++) {
        const qn_kernel_parameter *param = &k->param[i];
        if (param->rank >= 0) {
            if (!args[i].view || !describe_view(args[i].view, param, out))
                return false;
            continue;
        }
        if (args[i].view || out->n + 3 > QN_DESCRIPTION_WORDS)
            return false;
        bool decides = (scalars[i >> 5] >> (i & 31) & 1) != 0 || (o && o->constant_scalars);
        out->word[out->n++] = (uint64_t)(uint32_t)args[i].dtype << 1 | decides;
        if (decides)
            out->word[out->n++] = args[i].bits;
        if (decides && args[i].dtype == QN_C128)
            out->word[out->n++] = args[i].high;
    }
    out->hash = hash_words(out->word, out->n);
    return true;
}
