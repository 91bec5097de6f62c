/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_recipe.c: random sequences of steps that end with a row of the table which random
 * operands seldom reach, as it needs a certain form before: lanes, and what the row changes. Steps
 * of a sequence that are refused are left out.
 */
#include "differential_draw.h"
#include "jit/schedule/plan.h"

#include <stdarg.h>
#include <stdio.h>

void add_steps(step_text *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(s->text + s->n, s->bytes - s->n, format, ap);
    va_end(ap);
    s->n += n > 0 && (size_t)n < s->bytes - s->n ? (size_t)n : 0;
}

/* ---------------------------------------------------------------- lanes */

static const char *random_tail(randoms *r)
{
    static const char *const tails[] = {"mask", "scalar", "narrower"};
    return tails[random_below(r, 3)];
}

/** A parallel dimension, but for `without`; -1: there is none. */
static int random_parallel(const drawing *d, int without)
{
    int found = -1, n = 0;
    for (int i = 0; i < d->kernel->n_dims; i++)
        if (qn__is_parallel(d->kernel, i) && i != without && random_below(d->random, ++n) == 0)
            found = i;
    return found;
}

/** Vectors of `width` lanes along a dimension, innermost. Inside of the loop over their steps some
 * iterations of `across` in unrolled pieces, unless that is -1. */
static void add_lanes(const drawing *d, step_text *s, int lanes, int width, int across)
{
    add_steps(s, "split d%d %d tail=%s; ", lanes, width, random_tail(d->random));
    if (across >= 0)
        add_steps(s, "split d%d %d %d tail=scalar; ", across, 1 << random_below(d->random, 4),
                  2 << random_below(d->random, 3));
    add_steps(s, "reorder");
    for (int i = 0; i < d->kernel->n_dims; i++)
        if (i != lanes && !qn__is_reduction(d->kernel, i))
            add_steps(s, " d%d%s", i, i == across ? ".0" : "");
    add_steps(s, " d%d.0", lanes);
    if (across >= 0)
        add_steps(s, " d%d.1 d%d.2", across, across);
    add_steps(s, " d%d.1; vectorize d%d.1; ", lanes, lanes);
    if (across >= 0)
        add_steps(s, "unroll d%d.2; ", across);
}

static int random_width(const drawing *d)
{
    return 4 << random_below(d->random, random_percent(d->random, 85) ? 3 : 5);
}

/* ---------------------------------------------------------------- rows */

/** The last store to consecutive elements, 0: none, and the dimension along which they are. Others
 * may share its elements. */
static uint32_t last_row(const drawing *d, int *lanes)
{
    const qn_kernel *k = d->kernel;
    int64_t stride;
    for (uint32_t n = k->n_accesses; n-- > 0;) {
        uint32_t i = k->access[n].inst;
        for (*lanes = 0; k->inst[i].op == QN_I_STORE && *lanes < k->n_dims; ++*lanes)
            if (qn__is_parallel(k, *lanes) && qn__access_stride(&d->x, i, *lanes, &stride) &&
                stride == 1)
                return i;
    }
    return 0;
}

/** Whole lines of rows that begin anywhere in one. */
static bool add_join(const drawing *d, step_text *s)
{
    int lanes;
    uint32_t i = last_row(d, &lanes);
    if (!i)
        return false;
    add_lanes(d, s, lanes, LINE_BYTES / (int)qn__access_bytes(d->kernel, i),
              random_parallel(d, lanes));
    add_steps(s, "join %%%u d%d.0; ", i, lanes);
    return true;
}

/** Non-temporal stores, of all that are possible. */
static bool add_streams(const drawing *d, step_text *s)
{
    const qn_kernel *k = d->kernel;
    int lanes;
    if (!last_row(d, &lanes))
        return false;
    int across = random_percent(d->random, 50) ? random_parallel(d, lanes) : -1;
    add_lanes(d, s, lanes, random_width(d), across);
    for (uint32_t n = 0; n < k->n_accesses && n < 12; n++)
        if (k->inst[k->access[n].inst].op == QN_I_STORE)
            add_steps(s, "stream %%%u; ", k->access[n].inst);
    return true;
}

/** Loads from registers that hold a small view. */
static bool add_tables(const drawing *d, step_text *s)
{
    const qn_kernel *k = d->kernel;
    int lanes = random_parallel(d, -1);
    bool has_lanes = false;
    for (uint32_t n = 0; n < k->n_accesses && lanes >= 0; n++) {
        uint32_t i = k->access[n].inst;
        if (qn__table_registers(&d->x, i) == 0)
            continue;
        if (!has_lanes)
            add_lanes(d, s, lanes, random_width(d), -1);
        has_lanes = true;
        add_steps(s, "table %%%u; ", i);
    }
    return has_lanes;
}

/** Accesses side by side; of others the step is refused. */
static bool add_groups(const drawing *d, step_text *s)
{
    const qn_kernel *k = d->kernel;
    int lanes = random_parallel(d, -1);
    bool has_parts = false;
    for (uint32_t n = 0; n < k->n_accesses; n++)
        has_parts |= qn__has_parts(k->param[k->inst[k->access[n].inst].imm].dtype);
    if (lanes < 0 || (!has_parts && !random_percent(d->random, 5)))
        return false;
    add_lanes(d, s, lanes, random_width(d), -1);
    for (uint32_t n = 0; n < k->n_accesses && n < 12; n++)
        add_steps(s, "group %%%u %d; ", k->access[n].inst, 1 + random_below(d->random, 20));
    return true;
}

/** Reduces with an accumulator for each lane, or for each of some iterations. */
static bool add_places(const drawing *d, step_text *s)
{
    const qn_kernel *k = d->kernel;
    int lanes = random_parallel(d, -1);
    bool has_lanes = false;
    for (uint32_t i = k->body; i < k->n_insts && lanes >= 0; i = k->inst[i].region[2]) {
        if (k->inst[i].op != QN_I_REDUCE)
            continue;
        if (!has_lanes) {
            add_lanes(d, s, lanes, random_width(d), -1);
            add_steps(s, "distribute d%d.1; ", lanes);
        }
        has_lanes = true;
        add_steps(s, "place %%%u d%d.1; ", i, lanes);
    }
    return has_lanes;
}

/** Tuples of all reduces that may be one with the reduce before. */
static bool add_tuples(const drawing *d, step_text *s)
{
    const qn_kernel *k = d->kernel;
    int n = 0, lanes = random_percent(d->random, 50) ? random_parallel(d, -1) : -1;
    if (qn__n_top_reduces(k) < 2)
        return false;
    if (lanes >= 0)
        add_lanes(d, s, lanes, random_width(d), -1);
    for (uint32_t i = k->body; i < k->n_insts; i = k->inst[i].region[2])
        if (k->inst[i].op == QN_I_REDUCE && n++ > 0)
            add_steps(s, "merge %%%u; ", i);
    return true;
}

/** Places of the loops around a `for` of the body, outermost first, and of that. */
static void add_loops(const drawing *d, step_text *s, uint32_t i)
{
    if (d->kernel->inst[i].parent)
        add_loops(d, s, d->kernel->inst[i].parent);
    add_steps(s, "trips %%%u; ", i);
}

/** Lanes over trips, in steps of which each kernel has one size. */
static bool add_trips(const drawing *d, step_text *s)
{
    const qn_kernel *k = d->kernel;
    const int width = 1 << (1 + random_below(d->random, 5)), unroll = random_below(d->random, 3);
    const char *tail = random_percent(d->random, 50) ? "mask" : "scalar";
    bool has_lanes = false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        if (qn__trips_at_once(&d->x, i) < INT64_MAX)
            continue;
        has_lanes = true;
        add_loops(d, s, i);
        if (unroll)
            add_steps(s, "split t%u %d %d tail=%s; unroll t%u.1; vectorize t%u.2; ", i, 2 * unroll,
                      width, tail, i, i);
        else
            add_steps(s, "split t%u %d tail=%s; vectorize t%u.1; ", i, width, tail, i);
    }
    return has_lanes;
}

/** Copies of what loads read below any loop around them: also those of a branch, of a loop of the
 * body, and of a region without loops in the schedule. */
static bool add_copies(const drawing *d, step_text *s)
{
    static const char *const storages[] = {"registers", "frame", "frame", "scratch"};
    const qn_kernel *k = d->kernel;
    const int lanes = random_percent(d->random, 50) ? random_parallel(d, -1) : -1;
    bool has_load = false;
    if (lanes >= 0)
        add_lanes(d, s, lanes, random_width(d), -1);
    else if (random_parallel(d, -1) >= 0 && random_percent(d->random, 30))
        add_steps(s, "distribute d%d; ", random_parallel(d, -1));
    for (uint32_t i = k->body; i < k->n_insts; i++)
        if (qn__is_body_loop(k, i) && random_percent(d->random, 50))
            add_loops(d, s, i);
    for (uint32_t n = 0; n < k->n_accesses && n < 12 && k->n_dims > 0; n++) {
        const uint32_t i = k->access[n].inst;
        if (k->inst[i].op != QN_I_LOAD || !qn__is_known_ahead(k, i) ||
            random_percent(d->random, k->inst[i].parent ? 10 : 60))
            continue;
        has_load = true;
        for (int tries = 0; tries < 2; tries++) { /* the second one is refused if both are legal */
            const int dim = random_below(d->random, k->n_dims);
            if (qn__is_reduction(k, dim) && k->inst[i].parent)
                add_steps(s, "buffer %%%u r%ud%d", i, qn__enclosing_reduce(k, i), dim);
            else
                add_steps(s, "buffer %%%u d%d%s", i, dim, dim == lanes ? ".0" : "");
            add_steps(s, " storage=%s; ", storages[random_below(d->random, 4)]);
        }
    }
    return has_load;
}

bool draw_recipe(const drawing *d, char *text, size_t bytes)
{
    static const struct {
        bool (*add)(const drawing *d, step_text *s);
        int percent;
    } row[] = {{add_copies, 15}, {add_trips, 70},  {add_tuples, 70},  {add_tables, 90},
               {add_groups, 80}, {add_places, 50}, {add_streams, 30}, {add_join, 90}};
    step_text s = {text, 0, bytes};
    for (size_t n = 0; n < sizeof row / sizeof row[0]; n++)
        if (random_percent(d->random, row[n].percent) && row[n].add(d, &s))
            return true;
    return false;
}
