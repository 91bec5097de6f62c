/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c: the exact description of the arguments of a launch, word by word: options, and per
 * view dtype, space, traits, rank, alignment, dimensions and digits; per scalar its dtype, and its
 * bits if code or domain depend on them. Addresses are not in it, only their alignment; overlap is
 * decided anew at every launch. Views with tables are not described: what they expand to is. Two
 * launches with equal descriptions and the same overlap run the same code on the same domain.
 *
 * This is on the short way of a launch: no allocation, no calls, and nothing but loads from the
 * descriptors.
 */
#include "runtime/cuda/stream.h"
#include "runtime/launch.h"

#include <string.h>

/** Of the options: all between `bytes` and `stream`; of the plan: all behind `bytes`. */
enum {
    OPTION_WORDS = (offsetof(qn_options, stream) - offsetof(qn_options, engine)) / 8,
    PLAN_WORDS = (sizeof(qn_plan_options) - offsetof(qn_plan_options, order)) / 8,
    PIN_WORDS = sizeof(qn_fact_pin) / 8
};
_Static_assert(offsetof(qn_options, engine) % 8 == 0 && offsetof(qn_options, stream) % 8 == 0 &&
                   offsetof(qn_plan_options, order) % 8 == 0 && sizeof(qn_plan_options) % 8 == 0,
               "options are whole words");

/** Number and alignment class of a data address in one word. */
static inline uint64_t address_class(const void *data)
{
    uintptr_t address = (uintptr_t)data;
    return address == 0 ? 8 : (uint64_t)__builtin_ctzll((unsigned long long)address | 64);
}

/* The two walks below are one code; each is worth its own copy, in which the words are in
 * registers. */
#define FLAT static inline __attribute__((always_inline))

/** Where the words go: into a new description, or against a known one. */
typedef struct words {
    bool is_known;
    uint64_t *to;          /* the next one, if not */
    const uint64_t *known; /* if so */
    size_t left;           /* words that may follow */
    uint64_t differs;      /* bits, from the known ones */
} words;

/** Before the next n words: whether there is room for them. */
FLAT bool reserve(words *w, size_t n)
{
    if (n > w->left)
        return false;
    w->left -= n;
    return true;
}

FLAT void put(words *w, uint64_t word)
{
    if (w->is_known)
        w->differs |= *w->known++ ^ word;
    else
        *w->to++ = word;
}

/** Word by word: the compiler makes vectors of these, and a call of memcmp takes longer than all of
 * them. */
FLAT void put_words(words *w, const void *from, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t word;
        memcpy(&word, (const char *)from + 8 * i, 8);
        put(w, word);
    }
}

/** Whether options have a plan, a schedule, pins or constant scalars, which are seldom there. The
 * walk without them is one of its own. */
static inline bool are_rare(const qn_options *o)
{
    return o && (o->plan || o->schedule || (o->n_pins | o->constant_scalars));
}

/** A schedule by its length and two hashes: texts that have all three in common would only make one
 * of two kinds of code run, and both are right. */
FLAT bool walk_schedule(const char *text, words *w)
{
    size_t n = strlen(text);
    if (n > QN_MAX_SCHEDULE_BYTES || !reserve(w, 3))
        return false;
    put(w, n);
    put(w, qn__hash(text, n, 1));
    put(w, qn__hash(text, n, 2));
    return true;
}

/** Plan, schedule and pins. */
FLAT bool walk_rare_options(const qn_options *o, words *w)
{
    bool is_good = o->n_pins >= 0 && o->n_pins <= QN_MOST_PINS && (o->pins || !o->n_pins);
    size_t n = is_good ? (size_t)o->n_pins : 0;
    if (!is_good || !reserve(w, 1 + (o->plan ? (size_t)PLAN_WORDS : 0) + PIN_WORDS * n))
        return false;
    put(w, (uint64_t)(o->schedule != NULL) << 33 | (uint64_t)(o->plan != NULL) << 32 | n);
    if (o->plan)
        put_words(w, &o->plan->order, PLAN_WORDS);
    for (size_t i = 0; i < n; i++)
        put_words(w, &o->pins[i], PIN_WORDS);
    return !o->schedule || walk_schedule(o->schedule, w);
}

/** Whether a scalar is a constant, or something is known of it, for all that options say. */
FLAT bool may_be_constant(const qn_options *o, int i)
{
    bool may_be = o->constant_scalars != 0;
    for (int j = 0; j < o->n_pins; j++)
        may_be |= o->pins[j].param == i && o->pins[j].as != QN_PIN_DYNAMIC;
    return may_be;
}

/** The first word says whether options follow, and rare ones. */
FLAT bool walk_options(const qn_options *o, words *w, bool is_rare)
{
    if (!reserve(w, o ? (size_t)OPTION_WORDS + 2 : 1))
        return false;
    put(w, is_rare ? 2 : o ? 1 : 0);
    if (o) {
        put_words(w, &o->engine, OPTION_WORDS);
        put(w, o->stream ? (uint64_t)(uintptr_t)o->stream->gpu : 0);
    }
    return !is_rare || walk_rare_options(o, w);
}

FLAT bool walk_digits(const qn_digits *digits, int rank, words *w)
{
    if (digits->tables || digits->n < 0 || digits->n > QN_MAX_DIGITS ||
        !reserve(w, (size_t)(rank + 1) + 2 * (size_t)digits->n))
        return false;
    for (int d = 0; d <= rank; d++)
        put(w, (uint64_t)(int64_t)digits->first[d]);
    for (int i = 0; i < digits->n; i++) {
        put(w, (uint64_t)digits->digit[i].extent);
        put(w, (uint64_t)digits->digit[i].stride);
    }
    return true;
}

FLAT bool walk_view(const qn_view *v, const qn_kernel_parameter *param, words *w)
{
    const qn_layout *l = &v->layout;
    int rank = param->rank;
    if (v->record != param->record && !qn_record_equal(v->record, param->record))
        return false;
    if (l->rank != rank || l->origin != 0 || !reserve(w, 3 + 3 * (size_t)rank))
        return false;
    put(w, (uint64_t)(uint32_t)v->dtype << 32 | (uint32_t)v->space);
    put(w, (uint64_t)v->traits << 32 | l->projected);
    put(w, (uint64_t)v->unit << 8 | address_class(v->data) << 1 | (l->digits != NULL));
    for (int d = 0; d < rank; d++) {
        put(w, (uint64_t)l->dim[d].lower);
        put(w, (uint64_t)l->dim[d].extent);
        put(w, (uint64_t)l->dim[d].stride);
    }
    return !l->digits || walk_digits(l->digits, rank, w);
}

FLAT bool walk_scalar(const qn_arg *arg, bool decides, words *w)
{
    bool is_long = arg->dtype == QN_C128;
    if (arg->view || !reserve(w, !decides ? 1 : is_long ? 3 : 2))
        return false;
    put(w, (uint64_t)(uint32_t)arg->dtype << 1 | decides);
    if (decides)
        put(w, arg->bits);
    if (decides && is_long)
        put(w, arg->high);
    return true;
}

/** All words; false if the arguments are not what the kernel takes, need more room, or differ from
 * what is known. */
FLAT bool walk(const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
               const uint32_t scalars[2], words *w, bool is_rare)
{
    if (n != k->n_params || (!args && n > 0) || !walk_options(o, w, is_rare))
        return false;
    for (int i = 0; i < n; i++) {
        const qn_kernel_parameter *param = &k->param[i];
        bool is_good, decides = (scalars[i >> 5] >> (i & 31) & 1) != 0;
        w->differs |= args[i].reserved;
        if (param->rank >= 0)
            is_good = args[i].view && walk_view(args[i].view, param, w);
        else
            is_good = walk_scalar(&args[i], decides || (is_rare && may_be_constant(o, i)), w);
        if (!is_good || w->differs)
            return false;
    }
    return true;
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

static __attribute__((noinline)) bool describe_rare(const qn_kernel *k, int n, const qn_arg *args,
                                                    const qn_options *o, const uint32_t scalars[2],
                                                    qn_description *out)
{
    words w = {.to = out->word, .left = QN_DESCRIPTION_WORDS};
    out->n = 0;
    if (!walk(k, n, args, o, scalars, &w, true))
        return false;
    out->n = QN_DESCRIPTION_WORDS - (uint32_t)w.left;
    return true;
}

bool qn__describe(const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
                  const uint32_t scalars[2], qn_description *out)
{
    words w = {.to = out->word, .left = QN_DESCRIPTION_WORDS};
    if (are_rare(o)) {
        if (!describe_rare(k, n, args, o, scalars, out))
            return false;
    } else {
        if (!walk(k, n, args, o, scalars, &w, false))
            return false;
        out->n = QN_DESCRIPTION_WORDS - (uint32_t)w.left;
    }
    out->hash = hash_words(out->word, out->n);
    return true;
}

static __attribute__((noinline)) bool is_described_rare(const qn_kernel *k, int n,
                                                        const qn_arg *args, const qn_options *o,
                                                        const uint32_t scalars[2],
                                                        const uint64_t *word, uint32_t n_words)
{
    words w = {.is_known = true, .known = word, .left = n_words};
    return walk(k, n, args, o, scalars, &w, true) && w.left == 0 && !w.differs;
}

bool qn__is_described(const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
                      const uint32_t scalars[2], const uint64_t *word, uint32_t n_words)
{
    if (are_rare(o))
        return is_described_rare(k, n, args, o, scalars, word, n_words);
    words w = {.is_known = true, .known = word, .left = n_words};
    return walk(k, n, args, o, scalars, &w, false) && w.left == 0 && !w.differs;
}
