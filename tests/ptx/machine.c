/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c: runs the instructions of ptx/parse.c: memory, moves, branches and threads;
 * ptx/arithmetic.c computes. Threads run until they wait: for their block at a barrier, for their
 * warp at a shuffle.
 */
#include "ir/ir.h"
#include "tests/ptx/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNNING, AT_BARRIER, AT_WARP, DONE };
enum { WARP = 32, MOST_THREADS = 1024 };

typedef struct thread {
    int state, pc, id[3];
    uint64_t *reg;
    uint8_t *local;
} thread;

typedef struct machine {
    const ptx_module *m;
    const ptx_kernel *k;
    const ptx_launch *l;
    thread thread[MOST_THREADS];
    int n_threads;
    int64_t block;
    uint8_t *shared;
    size_t shared_bytes;
    uint64_t steps;
    uint32_t random;
    char *error;
    size_t error_bytes;
    bool failed;
} machine;

static void fail(machine *v, const thread *t, const ptx_inst *i, const char *what)
{
    if (!v->failed)
        snprintf(v->error, v->error_bytes,
                 "ptx_run: block %lld, thread %d %d %d, instruction %d (%s): %s",
                 (long long)v->block, t->id[0], t->id[1], t->id[2], t->pc, i ? i->text : "", what);
    v->failed = true;
}

static uint64_t operand(machine *v, const thread *t, const ptx_operand *o)
{
    const ptx_symbol *s;
    switch (o->kind) {
    case OPERAND_REGISTER:
        return t->reg[o->number];
    case OPERAND_NUMBER:
    case OPERAND_LABEL:
        return o->value;
    case OPERAND_SPECIAL: {
        const uint64_t of[] = {(uint64_t)t->id[0],
                               (uint64_t)t->id[1],
                               (uint64_t)t->id[2],
                               (uint64_t)v->l->threads[0],
                               (uint64_t)v->l->threads[1],
                               (uint64_t)v->l->threads[2],
                               (uint64_t)v->block,
                               (uint64_t)v->l->blocks,
                               (uint64_t)((t - v->thread) % WARP),
                               0};
        return of[o->number];
    }
    case OPERAND_SYMBOL:
        s = &v->m->symbol[o->number];
        return (uint64_t)(uintptr_t)(s->space == SPACE_LOCAL    ? t->local + s->offset
                                     : s->space == SPACE_SHARED ? v->shared + s->offset
                                     : s->space == SPACE_CONST  ? v->m->constants + s->offset
                                                                : (const uint8_t *)v->l->params);
    default:
        return 0;
    }
}

/* ---------------------------------------------------------------- memory */

static bool is_inside(uint64_t at, size_t bytes, const void *low, size_t n)
{
    uint64_t first = (uint64_t)(uintptr_t)low;
    return at >= first && at - first <= n && bytes <= n - (at - first);
}

static void *memory(machine *v, const thread *t, const ptx_inst *i, const ptx_operand *o,
                    size_t bytes)
{
    uint64_t at = operand(v, t, o) + (uint64_t)o->offset;
    bool is_const = ptx_has(i, WORD_const);
    bool ok = (is_const || ptx_has(i, WORD_nc)) &&
              is_inside(at, bytes, v->m->constants, (size_t)v->m->const_bytes);
    bool any = !ptx_has(i, WORD_global) && !ptx_has(i, WORD_local) && !ptx_has(i, WORD_shared) &&
               !ptx_has(i, WORD_param) && !is_const;
    if (ptx_has(i, WORD_param))
        ok = is_inside(at, bytes, v->l->params, v->l->param_bytes);
    if (any || ptx_has(i, WORD_local))
        ok = ok || is_inside(at, bytes, t->local, (size_t)v->k->local_bytes);
    if (any || ptx_has(i, WORD_shared))
        ok = ok || is_inside(at, bytes, v->shared, v->shared_bytes);
    for (int n = 0; (any || ptx_has(i, WORD_global)) && n < v->l->n_memories && !ok; n++)
        ok = is_inside(at, bytes, v->l->memory[n].at, v->l->memory[n].bytes);
    if (!ok)
        fail(v, t, i, "an access outside the memory");
    else if (at % bytes)
        fail(v, t, i, "a misaligned access");
    return ok && at % bytes == 0 ? (void *)(uintptr_t)at : NULL;
}

static int count_elements(const ptx_inst *i)
{
    return ptx_has(i, WORD_v4) ? 4 : ptx_has(i, WORD_v2) ? 2 : 1;
}

static void load(machine *v, thread *t, const ptx_inst *i)
{
    int n = count_elements(i);
    size_t bytes = i->type[0].bits / 8u;
    const uint8_t *at = memory(v, t, i, &i->operand[n], bytes * (size_t)n);
    for (int e = 0; at && e < n; e++) {
        uint64_t bits = 0;
        memcpy(&bits, at + bytes * (size_t)e, bytes);
        t->reg[i->operand[e].number] = ptx_held(i->type[0], bits);
    }
}

static void store(machine *v, thread *t, const ptx_inst *i)
{
    int n = count_elements(i);
    size_t bytes = i->type[0].bits / 8u;
    uint8_t *at = memory(v, t, i, &i->operand[0], bytes * (size_t)n);
    for (int e = 0; at && e < n; e++) {
        uint64_t bits = operand(v, t, &i->operand[1 + e]);
        memcpy(at + bytes * (size_t)e, &bits, bytes);
    }
}

/** An f32 as atomic sums take and make it: of shared memory as it is, else zero in place of a
 * subnormal number (PTX ISA, atom and red). */
static uint64_t flushed(const ptx_inst *i, uint64_t bits)
{
    bool is_kept = ptx_has(i, WORD_shared) || (bits & UINT64_C(0x7f800000));
    return is_kept ? bits : bits & UINT64_C(0x80000000);
}

static void atomic(machine *v, thread *t, const ptx_inst *i)
{
    bool has_result = i->base == BASE_atom;
    ptx_type type = i->type[0];
    size_t bytes = type.bits / 8u;
    const ptx_operand *o = &i->operand[has_result];
    uint8_t *at = memory(v, t, i, &o[0], bytes);
    if (!at)
        return;
    uint64_t old = 0, a = ptx_cut(operand(v, t, &o[1]), type.bits), now = a;
    memcpy(&old, at, bytes);
    if (ptx_has(i, WORD_cas))
        now = old == a ? operand(v, t, &o[2]) : old;
    else if (ptx_has(i, WORD_add) && type.kind == 'f' && type.bits == 64)
        now = ptx_f64_bits(ptx_as_double(type, old) + ptx_as_double(type, a));
    else if (ptx_has(i, WORD_add) && type.kind == 'f') {
        const double x = ptx_as_double(type, flushed(i, old)),
                     y = ptx_as_double(type, flushed(i, a));
        now = flushed(i, ptx_f32_bits((float)x + (float)y));
    } else if (ptx_has(i, WORD_add))
        now = old + a;
    else if (ptx_has(i, WORD_and))
        now = old & a;
    else if (ptx_has(i, WORD_or))
        now = old | a;
    else if (ptx_has(i, WORD_xor))
        now = old ^ a;
    else if (ptx_has(i, WORD_min) || ptx_has(i, WORD_max)) {
        bool less =
            type.kind == 's' ? ptx_extend(a, type.bits) < ptx_extend(old, type.bits) : a < old;
        now = less == ptx_has(i, WORD_min) ? a : old;
    } else if (!ptx_has(i, WORD_exch))
        fail(v, t, i, "unknown atomic");
    memcpy(at, &now, bytes);
    if (has_result)
        t->reg[i->operand[0].number] = ptx_held(type, old);
}

/** mov, also to and from {a, b, ...}. */
static void move(machine *v, thread *t, const ptx_inst *i)
{
    int to = i->group[0] ? i->group[0] : 1, from = i->n - to, width = i->type[0].bits;
    uint64_t bits = 0;
    for (int n = 0; n < from; n++)
        bits |= ptx_cut(operand(v, t, &i->operand[to + n]), width / from)
                << (n * (width / from) % 64);
    for (int n = 0; n < to; n++)
        t->reg[i->operand[n].number] = ptx_cut(bits >> (n * (width / to) % 64), width / to);
}

static void calculate(machine *v, thread *t, const ptx_inst *i)
{
    uint64_t in[4] = {0};
    const char *wrong = NULL;
    for (int n = 0; n < 4 && n + 1 < i->n; n++)
        in[n] = operand(v, t, &i->operand[n + 1]);
    uint64_t out = ptx_calculate(i, in, &wrong);
    if (wrong)
        fail(v, t, i, wrong);
    t->reg[i->operand[0].number] = out;
}

/* ---------------------------------------------------------------- threads */

/** Runs a thread until it waits or ends. */
static void run_thread(machine *v, thread *t)
{
    while (!v->failed && t->state == RUNNING) {
        const ptx_inst *i = &v->k->inst[t->pc];
        if (t->pc >= v->k->n_insts || ++v->steps > UINT64_C(1) << 32) {
            fail(v, t, NULL, t->pc >= v->k->n_insts ? "beyond the end" : "too many instructions");
            return;
        }
        bool is_active = i->predicate < 0 || (t->reg[i->predicate] != 0) != i->is_negated;
        if (!is_active) {
            t->pc++;
            continue;
        }
        switch (i->base) {
        case BASE_bra:
            t->pc = (int)i->operand[0].value;
            continue;
        case BASE_ret:
            t->state = DONE;
            return;
        case BASE_bar:
            t->state = ptx_has(i, WORD_warp) ? AT_WARP : AT_BARRIER;
            return;
        case BASE_shfl:
            t->state = AT_WARP;
            return;
        case BASE_membar:
            break;
        case BASE_mov:
            move(v, t, i);
            break;
        case BASE_ld:
            load(v, t, i);
            break;
        case BASE_st:
            store(v, t, i);
            break;
        case BASE_atom:
        case BASE_red:
            atomic(v, t, i);
            break;
        default:
            calculate(v, t, i);
        }
        t->pc++;
    }
}

/** Lane from which lane l takes its value: d, a, b (distance), c (clamp). */
static int source_lane(const ptx_inst *i, int l, uint64_t b, uint64_t c, bool *ok)
{
    int n = (int)(b & 31), clamp = (int)(c & 31), mask = (int)(c >> 8 & 31);
    int high = (l & mask) | (clamp & ~mask), low = l & mask;
    int from = ptx_has(i, WORD_up)     ? l - n
               : ptx_has(i, WORD_down) ? l + n
               : ptx_has(i, WORD_bfly) ? l ^ n
                                       : low | (n & ~mask);
    *ok = ptx_has(i, WORD_up) ? from >= high : from <= high;
    return *ok ? from : l;
}

/** Lets a warp go on if all of its threads stand at one instruction. */
static bool run_warp(machine *v, thread *warp, int n)
{
    const ptx_inst *i = &v->k->inst[warp[0].pc];
    uint64_t value[WARP];
    for (int l = 0; l < n; l++)
        if (warp[l].state != AT_WARP || warp[l].pc != warp[0].pc)
            return false;
    for (int l = 0; i->base == BASE_shfl && l < n; l++)
        value[l] = operand(v, &warp[l], &i->operand[1]);
    for (int l = 0; l < n; l++) {
        thread *t = &warp[l];
        bool ok;
        if (i->base == BASE_shfl) {
            if (ptx_cut(operand(v, t, &i->operand[4]), 32) != UINT32_MAX)
                fail(v, t, i, "a shuffle of some lanes only");
            int from = source_lane(i, l, operand(v, t, &i->operand[2]),
                                   operand(v, t, &i->operand[3]), &ok);
            t->reg[i->operand[0].number] = ptx_cut(value[from], 32);
            if (i->second.kind == OPERAND_REGISTER)
                t->reg[i->second.number] = ok;
        }
        t->pc++;
        t->state = RUNNING;
    }
    return true;
}

static bool run_barrier(machine *v)
{
    for (int n = 0; n < v->n_threads; n++)
        if (v->thread[n].state != AT_BARRIER)
            return false;
    for (int n = 0; n < v->n_threads; n++) {
        v->thread[n].pc++;
        v->thread[n].state = RUNNING;
    }
    return true;
}

static uint32_t next_random(machine *v)
{
    v->random = v->random * 1664525u + 1013904223u;
    return v->random >> 8;
}

static void run_block(machine *v)
{
    bool goes_on = true;
    int n_done = 0;
    for (int n = 0; n < v->n_threads; n++) {
        thread *t = &v->thread[n];
        t->state = RUNNING;
        t->pc = 0;
        memset(t->reg, 0xa5, (size_t)v->k->n_registers * sizeof *t->reg);
        memset(t->local, 0xa5, (size_t)v->k->local_bytes);
    }
    memset(v->shared, 0xa5, v->shared_bytes);
    while (goes_on && !v->failed && n_done < v->n_threads) {
        int first = (int)(next_random(v) % (uint32_t)v->n_threads),
            step = next_random(v) % 2 ? 1 : v->n_threads - 1;
        goes_on = false;
        for (int n = 0; n < v->n_threads; n++) {
            thread *t = &v->thread[(first + (int64_t)n * step) % v->n_threads];
            goes_on |= t->state == RUNNING;
            run_thread(v, t);
        }
        for (int n = 0; n < v->n_threads; n += WARP)
            goes_on |=
                run_warp(v, &v->thread[n], v->n_threads - n < WARP ? v->n_threads - n : WARP);
        goes_on |= run_barrier(v);
        n_done = 0;
        for (int n = 0; n < v->n_threads; n++)
            n_done += v->thread[n].state == DONE;
    }
    for (int n = 0; n < v->n_threads && !goes_on; n++)
        if (v->thread[n].state != DONE)
            fail(v, &v->thread[n], &v->k->inst[v->thread[n].pc], "waits for ever");
}

static bool start(machine *v)
{
    const int32_t *threads = v->l->threads;
    v->n_threads = threads[0] * threads[1] * threads[2];
    thread none = {0};
    for (int i = 0; i < v->m->n_kernels; i++)
        if (strcmp(v->m->kernel[i].name, v->l->entry) == 0)
            v->k = &v->m->kernel[i];
    if (!v->k || v->n_threads < 1 || v->n_threads > MOST_THREADS) {
        fail(v, &none, NULL, v->k ? "wrong number of threads" : "no such kernel");
        return false;
    }
    for (int a = 0; a < 3; a++)
        if (v->k->threads[a] && v->k->threads[a] != threads[a])
            fail(v, &none, NULL, "not the number of threads that the kernel requires");
    v->shared_bytes = (size_t)(v->m->shared_bytes + v->l->shared_bytes);
    v->shared = aligned_alloc(64, (v->shared_bytes + 64) / 64 * 64);
    size_t local = ((size_t)v->k->local_bytes + 64) / 64 * 64;
    for (int n = 0; n < v->n_threads; n++) {
        thread *t = &v->thread[n];
        t->id[0] = n % threads[0];
        t->id[1] = n / threads[0] % threads[1];
        t->id[2] = n / threads[0] / threads[1];
        t->reg = malloc(((size_t)v->k->n_registers + 1) * sizeof *t->reg);
        t->local = aligned_alloc(64, local);
        if (!t->reg || !t->local || !v->shared)
            fail(v, t, NULL, "no memory");
    }
    return !v->failed;
}

bool ptx_run(const ptx_module *m, const ptx_launch *l, char *error, size_t error_bytes)
{
    machine *v = calloc(1, sizeof *v);
    if (!v)
        return false;
    v->m = m;
    v->l = l;
    v->error = error;
    v->error_bytes = error_bytes;
    v->random = l->seed;
    if (start(v))
        for (v->block = 0; v->block < l->blocks && !v->failed; v->block++)
            run_block(v);
    for (int n = 0; n < v->n_threads && n < MOST_THREADS; n++) {
        free(v->thread[n].reg);
        free(v->thread[n].local);
    }
    bool passed = !v->failed;
    free(v->shared);
    free(v);
    return passed;
}
