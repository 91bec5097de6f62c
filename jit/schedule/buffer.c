/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c: how the elements of a buffer lie in memory, and by which loops a buffer is filled. A
 * copy that was verified but is made or used in a way that the code generator has no code for is
 * named here.
 */
#include "jit/schedule/buffer.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/shape.h"

/* ---------------------------------------------------------------- places of elements */

int64_t qn__buffers_scratch(const qn_schedule *s, int n)
{
    int64_t bytes = 0;
    for (int b = 0; b < n; b++)
        if (s->buffer[b].storage == QN_STORAGE_SCRATCH)
            bytes += (s->buffer[b].bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return bytes;
}

/** The next slower digit of the dimension of digit n; NULL: there is none. */
static const qn_buffer_digit *slower(const qn_buffer_layout *l, int n)
{
    for (int m = n - 1; m >= 0; m--)
        if (l->digit[m].d == l->digit[n].d)
            return &l->digit[m];
    return NULL;
}

void qn__buffer_layout(const qn_analysis *x, const qn_schedule *s, int buffer,
                       qn_buffer_layout *out)
{
    const qn_buffer_info *b = &s->buffer[buffer];
    int64_t bytes = qn__access_bytes(x->k, b->inst);
    *out = (qn_buffer_layout){.n = 0};
    if (b->storage == QN_STORAGE_SCRATCH)
        out->offset = qn__buffers_scratch(s, buffer);
    qn_buffer_digit fastest[QN_MOST_BUFFER_AXES]; /* first */
    int n = 0;
    for (int a = b->n_axes - 1; a >= 0; a--) {
        int64_t most = qn__axis_count(x, s, b->axis[a]).most;
        qn_buffer_digit own = {.d = qn__axis_dim(x, s, b->axis[a]),
                               .weight = qn__axis_weight(x, s, b->axis[a], NULL),
                               .range = most,
                               .bytes = bytes};
        qn_buffer_digit *last = n ? &fastest[n - 1] : NULL;
        bytes *= most;
        if (last && last->d == own.d && own.weight == last->weight * last->range)
            last->range *= most; /* so far the number of iterations, as in all digits here */
        else
            fastest[n++] = own;
    }
    out->n = n;
    for (int i = 0; i < n; i++) {
        out->digit[i] = fastest[n - 1 - i];
        const qn_buffer_digit *around = slower(out, i);
        out->digit[i].range = around ? around->weight : INT64_MAX;
    }
}

/* ---------------------------------------------------------------- loops of a fill */

typedef struct filler {
    const qn_analysis *x;
    const qn_schedule *s;
    const qn_buffer_info *b;
    int lane_dim; /* -1: there are no lanes */
} filler;

/** The role of the loop over an axis in the block of the statements; -1: none is. */
static int block_role(const qn_analysis *x, const qn_schedule *s, qn_axis a)
{
    int role = -1;
    for (uint16_t n = 1; n <= s->n_nodes; n++)
        if (s->node[n].axis.id == a.id && qn__is_of_block(x, s, (qn_node){n}))
            role = s->node[n].role;
    return role;
}

static bool has_streams(const qn_schedule *s)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].streams)
            return true;
    return false;
}

/** Whether the elements of the load lie side by side along dimension d. */
static bool is_contiguous(const filler *m, int d)
{
    int64_t stride;
    return qn__access_stride(m->x, m->b->inst, d, &stride) && stride == 1;
}

/** Whether the buffer is over points and lanes, maybe with several vectors of these, and the lanes
 * of the load are rows whose points lie side by side. */
static bool has_rows(const filler *m)
{
    const qn_analysis *x = m->x;
    const uint32_t i = m->b->inst;
    int points = -1, roles = 0; /* bits */
    int64_t across, lanes = 0;
    for (int a = 0; a < m->b->n_axes; a++) {
        const int d = qn__axis_dim(x, m->s, m->b->axis[a]),
                  role = block_role(x, m->s, m->b->axis[a]);
        if (role < 0)
            points = d;
        else if (d == m->lane_dim)
            roles |= 1 << role;
        if (role == QN_ROLE_VECTOR)
            lanes = qn__axis_count(x, m->s, m->b->axis[a]).most;
    }
    return m->b->n_axes == 1 + __builtin_popcount((unsigned)roles) && points >= 0 && lanes > 0 &&
           lanes <= QN_MOST_TRANSPOSED && qn__is_reduction(x->k, points) &&
           qn__is_exact(x->f, points) && qn__trips(x->f, points) > 0 &&
           qn__is_plain_access(x->k, x->f, i) && is_contiguous(m, points) &&
           qn__access_stride(x, i, m->lane_dim, &across) && across != 1 && across != 0 &&
           across != -1 && qn_dtype_bytes(x->k->inst[i].type) >= x->f->target->least_shuffled;
}

/** Adds the dimensions, but that of the lanes, which are walked in steps of the block, or index by
 * index, in the order of the buffer's axes. Bits of dimensions: that have an axis with a loop of
 * the block, and one without. A dimension of which only an unrolled loop is inside is walked at
 * once, one along which elements lie side by side in steps of the unrolled loop. */
static void add_dims(const filler *m, bool in_steps, uint32_t with, uint32_t without,
                     qn_fill_loops *out)
{
    uint32_t done = 0;
    for (int a = 0; a < m->b->n_axes; a++) {
        const int d = qn__axis_dim(m->x, m->s, m->b->axis[a]);
        if (d < 0 || d == m->lane_dim || !((without & ~done) >> d & 1) ||
            ((with >> d & 1) && is_contiguous(m, d)) != in_steps)
            continue;
        done |= UINT32_C(1) << d;
        out->dim[out->n++] = d;
    }
    out->in_steps |= in_steps ? done : 0;
}

const char *qn__fill_of(const qn_analysis *x, const qn_schedule *s, qn_node fill,
                        qn_fill_loops *out)
{
    const filler m = {
        .x = x, .s = s, .b = &s->buffer[qn__node(s, fill)->index], .lane_dim = qn__lanes_of(x, s)};
    uint32_t dims[2] = {0}; /* of axes without a loop of the block, and with one */
    *out = (qn_fill_loops){.n = 0};
    for (int a = 0; a < m.b->n_axes; a++)
        dims[block_role(x, s, m.b->axis[a]) >= 0] |= qn__axis_dims(x, s, m.b->axis[a]);
    add_dims(&m, false, dims[1], dims[0], out);
    add_dims(&m, true, dims[1], dims[0], out);
    out->has_steps = m.lane_dim >= 0 && (dims[0] >> m.lane_dim & 1);
    out->is_transposed = has_rows(&m);
    if (out->has_steps && (qn__begins_early(x, s, m.lane_dim) || has_streams(s)))
        return "buffers over steps of lanes that overlap or are streamed";
    if (m.b->storage == QN_STORAGE_REGISTERS && (out->n > 0 || out->has_steps))
        return "registers that hold more than a block";
    return NULL;
}

/* ---------------------------------------------------------------- forms that have code */

/** Whether the parts of an axis that are sections have their loops around the fill. */
static bool has_sections_outside(const qn_schedule *s, qn_axis a, qn_node fill)
{
    for (; qn__axis(s, a)->kind == QN_AXIS_PART; a = qn__axis(s, a)->of) {
        if (s->cut[qn__axis(s, a)->cut].kind != QN_CUT_SECTIONS)
            continue;
        qn_node up = qn__node(s, fill)->parent;
        while (up.id && !(qn__node(s, up)->kind == QN_NODE_LOOP &&
                          qn__axis_is_of(s, qn__node(s, up)->axis, a)))
            up = qn__node(s, up)->parent;
        if (!up.id)
            return false;
    }
    return true;
}

/** What of the axes of a buffer has no code. */
static const char *axes_without_code(const qn_analysis *x, const qn_schedule *s,
                                     const qn_buffer_info *b)
{
    for (int a = 0; a < b->n_axes; a++) {
        qn_axis root, other;
        int64_t weight = qn__axis_weight(x, s, b->axis[a], &root);
        int kind = qn__axis(s, root)->kind;
        if (!weight || kind == QN_AXIS_TRIP)
            return "buffers over trips";
        if (kind == QN_AXIS_POINT && root.id != b->axis[a].id)
            return "buffers over parts of points";
        for (int m = a + 1; m < b->n_axes; m++)
            if (qn__axis_weight(x, s, b->axis[m], &other) >= weight && other.id == root.id)
                return "buffers that have faster digits before slower ones";
        if (a < b->n_axes - 1 && block_role(x, s, b->axis[a]) == QN_ROLE_VECTOR)
            return "buffers whose lanes do not lie together";
    }
    return NULL;
}

bool qn__begins_early(const qn_analysis *x, const qn_schedule *s, int d)
{
    for (int c = 0; c < s->n_cuts; c++)
        if (s->cut[c].kind == QN_CUT_DIGITS && s->cut[c].tail == QN_TAIL_OVERLAP &&
            qn__axis_dim(x, s, s->cut[c].of) == d)
            return true;
    return false;
}

bool qn__is_used_by_tails(const qn_schedule *s, int buffer)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].is_tail && s->record[n].method == QN_METHOD_THROUGH &&
            s->record[n].index == buffer + 1)
            return true;
    return false;
}

/** Whether a loop over an axis is in a piece of several steps, of which the last one of all may
 * begin before the piece. */
static bool is_in_early_piece(const qn_schedule *s, qn_axis a)
{
    for (int depth = 0; qn__axis(s, a)->kind == QN_AXIS_PART; depth++) {
        const qn_cut *c = &s->cut[qn__axis(s, a)->cut];
        if (depth > 0 && c->kind == QN_CUT_DIGITS && c->tail == QN_TAIL_OVERLAP)
            return true;
        a = c->of;
    }
    return false;
}

/** What of a fill has no code. */
static const char *fill_without_code(const qn_analysis *x, const qn_schedule *s, qn_node fill)
{
    const qn_buffer_info *b = &s->buffer[qn__node(s, fill)->index];
    bool is_in_steps = false; /* of the lanes */
    qn_fill_loops f;
    for (qn_node up = qn__node(s, fill)->parent; up.id; up = qn__node(s, up)->parent) {
        const qn_node_info *l = qn__node(s, up);
        if (l->kind == QN_NODE_PLACE)
            return "fills inside of reduces";
        if (qn__is_of_block(x, s, up))
            return "fills inside of lanes and unrolled loops";
        if (is_in_early_piece(s, l->axis))
            return "buffers of pieces whose last step begins early";
        is_in_steps |= qn__axis_dim(x, s, l->axis) == qn__lanes_of(x, s);
    }
    for (int a = 0; a < b->n_axes; a++)
        if (!has_sections_outside(s, b->axis[a], fill))
            return "buffers over sections";
    if (is_in_steps && has_streams(s) && qn__is_used_by_tails(s, qn__node(s, fill)->index))
        return "buffers that the first lanes of streamed rows use";
    return qn__fill_of(x, s, fill, &f);
}

const char *qn__buffers_without_code(const qn_analysis *x, const qn_schedule *s, uint32_t others)
{
    int lanes = s->n_buffers ? qn__lanes_of(x, s) : -1;
    if (lanes >= 0 && qn__is_reduction(x->k, lanes))
        return "buffers beside lanes over points";
    for (int b = 0; b < s->n_buffers; b++) {
        int content = s->buffer[b].content;
        if (content == QN_CONTENT_SUMS || (others >> b & 1))
            continue;
        if (content != QN_CONTENT_COPY)
            return "buffers other than sums and copies";
        const char *form = axes_without_code(x, s, &s->buffer[b]);
        if (form)
            return form;
    }
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        bool is_fill = s->node[n].kind == QN_NODE_FILL && !(others >> s->node[n].index & 1);
        const char *form = is_fill ? fill_without_code(x, s, (qn_node){n}) : NULL;
        if (form)
            return form;
    }
    return NULL;
}
