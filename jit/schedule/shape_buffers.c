/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_buffers.c: the buffers that lower/line_ends.c has code for: what a store leaves, in each
 * iteration of a dimension of which some are unrolled around the lanes, until their next step.
 */
#include "jit/schedule/plan.h"
#include "jit/schedule/shape.h"

/** The product of the extents of the axes [*at, ...) of a buffer that are over dimension d; *at:
 * the first axis that is not. The last of them must be one iteration apart. 0: it is not. */
static int64_t extent_over(const qn_analysis *x, const qn_schedule *s, const qn_buffer_info *b,
                           int d, int *at)
{
    int64_t all = 1, weight = 1;
    for (; *at < b->n_axes && qn__axis_dim(x, s, b->axis[*at]) == d; ++*at) {
        all *= qn__axis_count(x, s, b->axis[*at]).most;
        weight = qn__axis_weight(x, s, b->axis[*at], NULL);
    }
    return weight == 1 ? all : 0;
}

/** Whether the loops around all that fills or flushes a buffer walk steps of `size` iterations of
 * dimension d. */
static bool has_steps(const qn_analysis *x, const qn_schedule *s, int buffer, int d, int64_t size)
{
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        const qn_node_info *l = &s->node[n], *around = qn__node(s, l->parent);
        bool is_it = (l->kind == QN_NODE_FILL || l->kind == QN_NODE_FLUSH) && l->index == buffer;
        if (!is_it)
            continue;
        if (around->kind != QN_NODE_LOOP || qn__axis_dim(x, s, around->axis) != d ||
            qn__axis_weight(x, s, around->axis, NULL) != size)
            return false;
    }
    return true;
}

/** Whether a loop walks steps of the block inside of `size` iterations of dimension d. */
static bool has_loop_inside(const qn_block *b, int d, int64_t size)
{
    int64_t step = 1;
    for (int n = 0; n < b->n; n++)
        step *= b->dim[n] == d ? b->extent[n] : 1;
    return size > step;
}

int64_t qn__rows_of_ends(const qn_analysis *x, const qn_schedule *s, int buffer)
{
    const qn_buffer_info *ends = &s->buffer[buffer];
    int at = 0;
    return ends->n_axes ? extent_over(x, s, ends, qn__axis_dim(x, s, ends->axis[0]), &at) : 0;
}

bool qn__are_line_ends(const qn_analysis *x, const qn_schedule *s, const qn_block *b, int buffer)
{
    const qn_buffer_info *ends = &s->buffer[buffer];
    int d = qn__across(b), at = 0;
    if (ends->content != QN_CONTENT_ENDS || ends->storage != QN_STORAGE_SCRATCH || d < 0 ||
        b->n != 1 || b->unroll != 1 || !x->f->target->permutes_pairs)
        return false;
    int64_t rows = extent_over(x, s, ends, d, &at), bytes = qn__access_bytes(x->k, ends->inst);
    return rows > 0 && at == ends->n_axes - 1 &&
           extent_over(x, s, ends, b->lane_dim, &at) == b->width && bytes >= 2 &&
           bytes * b->width == LINE_BYTES && has_loop_inside(b, d, rows) &&
           has_steps(x, s, buffer, d, rows);
}

uint32_t qn__ends_behind(const qn_schedule *s, qn_node loop)
{
    uint32_t ends = 0;
    for (qn_node n = qn__node(s, loop)->next; n.id && qn__node(s, n)->kind == QN_NODE_FLUSH;
         n = qn__node(s, n)->next)
        if (s->buffer[qn__node(s, n)->index].content == QN_CONTENT_ENDS)
            ends |= UINT32_C(1) << qn__node(s, n)->index;
    return ends;
}
