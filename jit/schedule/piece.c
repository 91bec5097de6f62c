/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.c: the pieces that a kernel becomes by distribution or partition, each with a plan of its
 * own. Data in, data out; knows no LLVM.
 */
#include "jit/schedule/piece.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/search.h"

#include "jit/analysis/straighten.h"

#include <string.h>

enum { MOST_DEPTH = 3 }; /* of distributions inside each other */
/* Cuts inside each other; iterations of a kernel that is cut; of the dimension that threads divide.
 */
enum { MOST_CUTS = 6, LEAST_CUT = 256, ENOUGH_CHUNKS = 16 };
#define CYCLES_OF_CALL 40.0
/* Of the time of the interior: what more code of a rim, which takes time to compile, must save. */
#define LEAST_PART 0.05

/** A piece that is whole, with copies of its own. */
static qn_piece *new_piece(const qn_kernel *k, const qn_facts *f)
{
    qn_piece *p = qn__zalloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->split_dim = p->second_dim = -1;
    if (qn__copy_both(k, f, &p->kernel, &p->facts))
        return p;
    qn__free(p);
    return NULL;
}

void qn__piece_release(qn_piece *p)
{
    if (!p)
        return;
    for (int n = 0; n < p->n_parts; n++)
        qn__piece_release(p->part[n]);
    qn__planned_release(&p->planned);
    qn_kernel_release(p->kernel);
    qn__facts_release(&p->facts);
    qn__free(p);
}

/** Which ranges part n of p is given; false if those are more than two. */
static bool give_ranges(const qn_piece *p, int n, qn_piece *part)
{
    const int given[2] = {p->split_dim, p->second_dim};
    part->split_dim = p->distribution.block_dim;
    part->is_free = p->is_free && n == 1 && part->split_dim < 0;
    for (int m = 0; m < 2 && n == 1; m++) {
        if (given[m] < 0 || (p->distribution.dims >> given[m] & 1))
            continue;
        if (part->split_dim < 0)
            part->split_dim = given[m];
        else if (part->second_dim < 0)
            part->second_dim = given[m];
        else
            return false;
    }
    return true;
}

/** The plan of a piece without parts. What a launch divides is given, unless it is free. */
static void plan(qn_piece *p)
{
    qn__collapse(p->kernel, &p->facts);
    p->facts.has_ranges = !p->is_free;
    p->facts.ranges[0] = p->split_dim;
    p->facts.ranges[1] = p->second_dim;
    qn__planned_make(p->kernel, &p->facts, &p->planned);
}

static void forget_parts(qn_piece *p)
{
    for (int n = 0; n < p->n_parts; n++) {
        qn__piece_release(p->part[n]);
        p->part[n] = NULL;
    }
    p->n_parts = 0;
}

/* ---------------------------------------------------------------- distribution */

static bool divide(qn_piece *p, int depth);

/** Part n of p, which may have parts of its own. */
static bool make_part(qn_piece *p, int n, int depth)
{
    qn_piece *part = p->part[p->n_parts++] = new_piece(p->kernel, &p->facts);
    if (!part || !give_ranges(p, n, part))
        return false;
    bool is_made = n == 0 ? qn__distribute_first(part->kernel, &part->facts, &p->distribution)
                          : qn__distribute_rest(part->kernel, &part->facts, &p->distribution);
    if (is_made && p->distribution.block_dim >= 0)
        part->facts.most[p->distribution.block_dim] = qn__block_iterations(&p->facts);
    if (is_made && !divide(part, depth + 1))
        plan(part);
    return is_made;
}

/** Divides a piece into parts, if that pays; false: it stays whole. */
static bool divide(qn_piece *p, int depth)
{
    if (depth == MOST_DEPTH || !qn__distribution_of(p->kernel, &p->facts, &p->distribution))
        return false;
    for (int d = 0; d < p->kernel->n_dims && p->is_free && p->split_dim < 0; d++)
        p->split_dim = p->distribution.dims >> d & 1 ? d : -1;
    if (make_part(p, 0, depth) && make_part(p, 1, depth))
        return true;
    forget_parts(p);
    if (p->is_free)
        p->split_dim = -1;
    return false;
}

/* ---------------------------------------------------------------- partition */

/** The dimension that threads divide in all sections. */
static int dim_of_threads(const qn_kernel *k, const qn_facts *f)
{
    int best = -1;
    for (int d = 0; d < k->n_dims; d++)
        if (qn__is_parallel(k, d) &&
            (best < 0 || (qn__trips(f, best) < ENOUGH_CHUNKS &&
                          qn__trips_or(f, d, INT32_MAX) > qn__trips(f, best))))
            best = d;
    return best;
}

static double iterations_of(const qn_kernel *k, const qn_facts *f)
{
    double n = 1;
    for (int d = 0; d < k->n_dims; d++)
        n *= qn__is_parallel(k, d) ? (double)qn__trips_or(f, d, INT32_MAX) : 1;
    return n;
}

static bool cut(qn_piece *p, int depth, double *cycles);

/** The plan of a section that stays whole. inside: the cycles of the interior, 0: it is that. */
static void plan_section(qn_piece *p, double inside)
{
    qn_straight x;
    p->facts.has_ranges = 1;
    p->facts.ranges[0] = p->split_dim;
    p->facts.ranges[1] = -1;
    if (inside > 0) {
        qn__plan_rim(p->kernel, &p->facts, LEAST_PART * inside, &p->planned);
    } else if (qn__plan_kernel(p->kernel, &p->facts, &p->planned, &x)) {
        qn__planned_release(&p->planned);
        qn_kernel_release(p->kernel);
        qn__facts_release(&p->facts);
        qn__straight_take(&x, &p->kernel, &p->facts, &p->planned);
    }
}

/** Section n of p, with what its ranges tell; NULL without memory. */
static qn_piece *new_section(const qn_piece *p, int n)
{
    const int d = p->sections.dim;
    const qn_section *s = &p->sections.of[n];
    qn_piece *part = new_piece(p->kernel, &p->facts);
    if (!part)
        return NULL;
    part->split_dim = p->split_dim;
    part->facts.begin[d].value = s->begin;
    part->facts.end[d].value = s->end;
    if (qn__straighten(part->kernel, &part->facts, &(qn_short_loops){0}))
        return part;
    qn__piece_release(part);
    return NULL;
}

/** Makes section n of p, and the cycles of its estimate. The interior is cut again where it has
 * sections. */
static bool make_section(qn_piece *p, int n, int depth, double inside, double *cycles)
{
    qn_piece *part = p->part[n] = new_section(p, n);
    if (!part)
        return false;
    if (n + 1 == p->sections.n && depth < MOST_CUTS && cut(part, depth + 1, cycles))
        return true;
    plan_section(part, inside);
    *cycles = part->planned.cycles + CYCLES_OF_CALL;
    return true;
}

/** Cuts a piece into sections; false: it stays whole. */
static bool cut(qn_piece *p, int depth, double *cycles)
{
    double one, inside = 0;
    bool is_cut = qn__sections_of(p->kernel, &p->facts, &p->sections);
    *cycles = 0;
    p->n_parts = is_cut ? p->sections.n : 0;
    for (int n = p->n_parts; is_cut && n-- > 0;) {
        is_cut = make_section(p, n, depth, inside, &one);
        inside = inside > 0 ? inside : one;
        *cycles += one;
    }
    if (!is_cut) {
        forget_parts(p);
        p->sections.n = 0;
    }
    return is_cut;
}

/** The sections of a kernel, if these take less time than the whole. */
static qn_piece *sections_of(const qn_kernel *k, const qn_facts *f)
{
    qn_sections sections;
    qn_straight x;
    double cycles = 0;
    if (iterations_of(k, f) < (double)LEAST_CUT || !qn__sections_of(k, f, &sections))
        return NULL;
    qn_piece *p = new_piece(k, f);
    if (!p)
        return NULL;
    p->split_dim = dim_of_threads(k, f);
    bool is_cut = cut(p, 0, &cycles);
    (void)qn__plan_kernel(p->kernel, &p->facts, &p->planned, &x);
    double whole = x.kernel ? x.planned.cycles : p->planned.cycles;
    qn__straight_release(&x);
    if (is_cut && cycles < QN_OTHER_FORM * whole)
        return p;
    qn__piece_release(p);
    return NULL;
}

qn_piece *qn__pieces_of(const qn_kernel *k, const qn_facts *f, bool may_cut)
{
    qn_distribution d;
    if (f->plan.distribute < 0)
        return NULL;
    if (!qn__distribution_of(k, f, &d)) /* most kernels: nothing is copied */
        return may_cut ? sections_of(k, f) : NULL;
    qn_piece *p = new_piece(k, f);
    if (!p)
        return NULL;
    p->is_free = true;
    if (divide(p, 0))
        return p;
    qn__piece_release(p);
    return NULL;
}

void qn__piece_print(const qn_piece *p, qn_text *out)
{
    if (p->n_parts == 0) {
        qn__planned_print(&p->planned, out);
        return;
    }
    if (p->sections.n)
        qn__text_add(out, "cut dimension %d\n", p->sections.dim);
    else if (p->distribution.block_dim >= 0)
        qn__text_add(out, "distributed %d reduces, in blocks of %d of dimension %d\n",
                     p->distribution.n, (int)qn__block_iterations(&p->facts),
                     p->distribution.block_dim);
    else
        qn__text_add(out, "distributed %d reduces\n", p->distribution.n);
    for (int n = 0; n < p->n_parts; n++) {
        const qn_section *s = &p->sections.of[n];
        if (p->sections.n)
            qn__text_add(out, "-- from %lld up to %lld\n", (long long)s->begin, (long long)s->end);
        else
            qn__text_add(out, n == 0 ? "-- the reduces\n" : "-- the rest\n");
        qn__piece_print(p->part[n], out);
    }
}
