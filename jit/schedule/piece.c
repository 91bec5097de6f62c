/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.c: the pieces that a kernel becomes by distribution, each with a plan of its own. Data in,
 * data out; knows no LLVM.
 */
#include "jit/schedule/piece.h"
#include "jit/schedule/plan.h"

#include <string.h>

enum { MOST_DEPTH = 3 }; /* of distributions inside each other */

/** A piece that is whole, with copies of its own. */
static qn_piece *new_piece(const qn_kernel *k, const qn_facts *f)
{
    qn_piece *p = qn__zalloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->split_dim = p->second_dim = -1;
    p->kernel = qn__kernel_copy(k);
    if (!p->kernel || !qn__facts_copy(f, &p->facts)) {
        qn__piece_release(p);
        return NULL;
    }
    return p;
}

void qn__piece_release(qn_piece *p)
{
    if (!p)
        return;
    qn__piece_release(p->part[0]);
    qn__piece_release(p->part[1]);
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

static bool divide(qn_piece *p, int depth);

/** Part n of p, which may have parts of its own. */
static bool make_part(qn_piece *p, int n, int depth)
{
    qn_piece *part = p->part[n] = new_piece(p->kernel, &p->facts);
    if (!part || !give_ranges(p, n, part))
        return false;
    bool is_made = n == 0 ? qn__distribute_first(part->kernel, &part->facts, &p->distribution)
                          : qn__distribute_rest(part->kernel, &part->facts, &p->distribution);
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
    for (int n = 0; n < 2; n++) {
        qn__piece_release(p->part[n]);
        p->part[n] = NULL;
    }
    if (p->is_free)
        p->split_dim = -1;
    return false;
}

qn_piece *qn__pieces_of(const qn_kernel *k, const qn_facts *f)
{
    qn_distribution d;
    if (f->plan.distribute < 0 ||
        !qn__distribution_of(k, f, &d)) /* most kernels: nothing is copied */
        return NULL;
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
    if (!p->part[0]) {
        qn__planned_print(&p->planned, out);
        return;
    }
    if (p->distribution.block_dim >= 0)
        qn__text_add(out, "distributed %d reduces, in blocks of %d of dimension %d\n",
                     p->distribution.n, (int)qn__block_iterations(&p->facts),
                     p->distribution.block_dim);
    else
        qn__text_add(out, "distributed %d reduces\n", p->distribution.n);
    for (int n = 0; n < 2; n++) {
        qn__text_add(out, n == 0 ? "-- the reduces\n" : "-- the rest\n");
        qn__piece_print(p->part[n], out);
    }
}
