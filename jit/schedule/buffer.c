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

/** A loop of a fill. */
typedef struct fill_loop {
    qn_axis axis;
    int role, d;
    int block_role;   /* of the loop over the axis in the block of the statements; -1: none is */
    bool is_of_lanes; /* it walks the dimension of their lanes */
} fill_loop;

typedef struct filler {
    const qn_analysis *x;
    const qn_schedule *s;
    const qn_buffer_info *b;
    int lane_dim; /* -1: there are no lanes */
    fill_loop loop[QN_MOST_BUFFER_AXES];
    int n;
} filler;

/** Whether node n stands below a node of one of two kinds. */
static bool is_inside(const qn_schedule *s, qn_node n, int kind, int other)
{
    qn_node up = qn__node(s, n)->parent;
    while (up.id && qn__node(s, up)->kind != kind && qn__node(s, up)->kind != other)
        up = qn__node(s, up)->parent;
    return up.id != 0;
}

/** Whether a node is a loop of the block of the statements. */
static bool is_block_loop(const qn_analysis *x, const qn_schedule *s, qn_node n)
{
    return qn__node(s, n)->kind == QN_NODE_LOOP && qn__is_of_block(x, s, n) &&
           !is_inside(s, n, QN_NODE_FILL, QN_NODE_FLUSH);
}

static fill_loop describe_loop(const filler *m, qn_axis a)
{
    fill_loop l = {.axis = a, .d = qn__axis_dim(m->x, m->s, a), .block_role = -1};
    for (uint16_t n = 1; n <= m->s->n_nodes; n++)
        if (m->s->node[n].axis.id == a.id && is_block_loop(m->x, m->s, (qn_node){n}))
            l.block_role = m->s->node[n].role;
    l.role = l.block_role < 0 ? QN_ROLE_SEQUENTIAL : l.block_role;
    l.is_of_lanes = m->lane_dim >= 0 && l.d == m->lane_dim;
    return l;
}

/** Whether the lanes of the load are rows whose points lie side by side. */
static bool has_rows(const filler *m, const fill_loop *points)
{
    const qn_analysis *x = m->x;
    uint32_t i = m->b->inst;
    int64_t along, across;
    return qn__is_reduction(x->k, points->d) && qn__is_exact(x->f, points->d) &&
           qn__trips(x->f, points->d) > 0 && qn__is_plain_access(x->k, x->f, i) &&
           qn__access_stride(x, i, points->d, &along) && along == 1 &&
           qn__access_stride(x, i, m->lane_dim, &across) && across != 1 && across != 0 &&
           across != -1 && qn_dtype_bytes(x->k->inst[i].type) >= x->f->target->least_shuffled;
}

/** Whether a fill walks points, inside of vectors of the lanes if there are several, and the lanes.
 */
static bool walks_rows(const filler *m)
{
    if (m->n < 2 || m->n > 3)
        return false;
    const fill_loop *points = &m->loop[m->n - 2], *lanes = &m->loop[m->n - 1];
    return lanes->role == QN_ROLE_VECTOR && lanes->is_of_lanes && !points->is_of_lanes &&
           qn__axis_count(m->x, m->s, lanes->axis).most <= QN_MOST_TRANSPOSED &&
           points->role == QN_ROLE_SEQUENTIAL && has_rows(m, points) &&
           (m->n == 2 || (m->loop[0].is_of_lanes && m->loop[0].block_role == QN_ROLE_UNROLLED &&
                          m->loop[0].role == QN_ROLE_SEQUENTIAL));
}

/** Whether the elements of the load lie side by side along dimension d. */
static bool is_contiguous(const filler *m, int d)
{
    int64_t stride;
    return qn__access_stride(m->x, m->b->inst, d, &stride) && stride == 1;
}

/** Where a loop stands that the text leaves out: those over dimensions and points, steps, those of
 * the lanes, unrolled loops, vectors, lanes. A dimension of which only the unrolled loop is inside
 * is walked at once, one along which elements lie side by side in steps of the unrolled loop,
 * others index by index. */
enum {
    PLACE_DIMS,
    PLACE_STEPS,
    PLACE_LANE_STEPS,
    PLACE_UNROLLED,
    PLACE_VECTORS,
    PLACE_LANES,
    N_PLACES
};
static int place_of(const filler *m, const fill_loop *l)
{
    bool has_others = false, has_block = false; /* loops over its dimension: of the block, others */
    if (l->block_role == QN_ROLE_VECTOR)
        return PLACE_LANES;
    if (l->is_of_lanes)
        return l->block_role < 0 ? PLACE_LANE_STEPS : PLACE_VECTORS;
    for (int a = 0; a < m->b->n_axes; a++) {
        fill_loop other = describe_loop(m, m->b->axis[a]);
        has_others |= other.d == l->d && other.block_role < 0;
        has_block |= other.d == l->d && other.block_role >= 0;
    }
    if (has_others && has_block && is_contiguous(m, l->d))
        return l->block_role < 0 ? PLACE_STEPS : PLACE_UNROLLED;
    return has_others ? PLACE_DIMS : PLACE_UNROLLED;
}

/** Whether an axis before axis a of the buffer is of its dimension. */
static bool is_not_first(const filler *m, int a, int d)
{
    for (int before = 0; before < a; before++)
        if (qn__axis_dim(m->x, m->s, m->b->axis[before]) == d)
            return true;
    return false;
}

/** Adds the loops of a place, those over one dimension together. */
static void add_loops(filler *m, int place)
{
    for (int a = 0; a < m->b->n_axes; a++) {
        int d = qn__axis_dim(m->x, m->s, m->b->axis[a]);
        for (int same = a; same < m->b->n_axes && !is_not_first(m, a, d); same++) {
            fill_loop l = describe_loop(m, m->b->axis[same]);
            if (l.d != d || place_of(m, &l) != place)
                continue;
            l.role = place < PLACE_UNROLLED ? QN_ROLE_SEQUENTIAL : l.role;
            m->loop[m->n++] = l;
        }
    }
}

/** Loops over the axes of the buffer. */
static void make_loops(filler *m)
{
    for (int place = 0; place < N_PLACES; place++)
        add_loops(m, place);
    const filler as_rows = {.x = m->x, .s = m->s, .b = m->b, .lane_dim = m->lane_dim, .n = 3,
                            .loop = {m->loop[1], m->loop[0], m->loop[2]}};
    filler rows = as_rows;
    rows.loop[0].role = QN_ROLE_SEQUENTIAL;
    if (m->n == 3 && walks_rows(&rows))
        *m = rows;
}

static void read_loops(filler *m, qn_node n)
{
    for (; n.id && m->n < QN_MOST_BUFFER_AXES; n = qn__node(m->s, n)->child) {
        m->loop[m->n] = describe_loop(m, qn__node(m->s, n)->axis);
        m->loop[m->n++].role = qn__node(m->s, n)->role;
    }
}

/** The loops from loop n on over all digits of its dimension, slowest first, but for that of the
 * block; how many. 0: others stand between them, or they have another order. */
static int take_dimension(const filler *m, int n, bool *has_steps)
{
    int64_t before = INT64_MAX;
    int taken = 0, wanted = 0, d = m->loop[n].d;
    *has_steps = false;
    for (int i = 0; i < m->n; i++) {
        bool is_unrolled = m->loop[i].d == d && m->loop[i].role == QN_ROLE_UNROLLED;
        wanted += m->loop[i].d == d && !is_unrolled;
        *has_steps |= is_unrolled;
    }
    for (; n + taken < m->n && m->loop[n + taken].d == d && taken < wanted; taken++) {
        int64_t weight = qn__axis_weight(m->x, m->s, m->loop[n + taken].axis, NULL);
        if (m->loop[n + taken].role != QN_ROLE_SEQUENTIAL || weight >= before)
            return 0;
        before = weight;
    }
    return taken == wanted ? taken : 0;
}

const char *qn__fill_of(const qn_analysis *x, const qn_schedule *s, qn_node fill,
                        qn_fill_loops *out)
{
    const qn_node_info *f = qn__node(s, fill);
    filler m = {.x = x, .s = s, .b = &s->buffer[f->index], .lane_dim = qn__lanes_of(x, s)};
    int n = 0;
    *out = (qn_fill_loops){.n = 0};
    if (f->child.id)
        read_loops(&m, f->child);
    else
        make_loops(&m);
    if (walks_rows(&m)) {
        out->is_transposed = true;
        out->dim[out->n++] = m.loop[m.n - 2].d;
        return NULL;
    }
    while (n < m.n && m.loop[n].role == QN_ROLE_SEQUENTIAL && !m.loop[n].is_of_lanes) {
        bool has_steps;
        int taken = take_dimension(&m, n, &has_steps);
        if (!taken || out->n == QN_MAX_RANK)
            return "fills that walk parts of a dimension in this order";
        out->in_steps |= has_steps ? UINT32_C(1) << m.loop[n].d : 0;
        out->dim[out->n++] = m.loop[n].d;
        n += taken;
    }
    for (; n < m.n && m.loop[n].role == QN_ROLE_SEQUENTIAL && m.loop[n].is_of_lanes &&
           m.loop[n].block_role < 0;
         n++)
        out->has_steps = true;
    for (; n < m.n; n++)
        if (m.loop[n].block_role < 0 || m.loop[n].role != m.loop[n].block_role)
            return "fills whose lanes and unrolled loops are not those of the statements";
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
        for (uint16_t n = 1; n <= s->n_nodes && a < b->n_axes - 1; n++)
            if (s->node[n].axis.id == b->axis[a].id && s->node[n].role == QN_ROLE_VECTOR &&
                is_block_loop(x, s, (qn_node){n}))
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

static bool has_streams(const qn_schedule *s)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].streams)
            return true;
    return false;
}

/** Whether a fill stands inside of a piece of several steps, of which the last one of all may begin
 * before the piece. */
static bool is_in_early_piece(const qn_schedule *s, qn_node fill)
{
    for (qn_node up = qn__node(s, fill)->parent; up.id; up = qn__node(s, up)->parent) {
        qn_axis a = qn__node(s, up)->axis;
        for (int depth = 0; qn__axis(s, a)->kind == QN_AXIS_PART; depth++) {
            const qn_cut *c = &s->cut[qn__axis(s, a)->cut];
            if (depth > 0 && c->kind == QN_CUT_DIGITS && c->tail == QN_TAIL_OVERLAP)
                return true;
            a = c->of;
        }
    }
    return false;
}

/** Whether a fill stands inside of a loop over the dimension of the lanes. */
static bool is_in_steps(const qn_analysis *x, const qn_schedule *s, qn_node fill)
{
    for (qn_node up = qn__node(s, fill)->parent; up.id; up = qn__node(s, up)->parent)
        if (qn__node(s, up)->kind == QN_NODE_LOOP &&
            qn__axis_dim(x, s, qn__node(s, up)->axis) == qn__lanes_of(x, s))
            return true;
    return false;
}

/** What of a fill has no code. */
static const char *fill_without_code(const qn_analysis *x, const qn_schedule *s, qn_node fill)
{
    const qn_buffer_info *b = &s->buffer[qn__node(s, fill)->index];
    qn_fill_loops f;
    if (is_inside(s, fill, QN_NODE_PLACE, QN_NODE_PLACE))
        return "fills inside of reduces";
    for (qn_node up = qn__node(s, fill)->parent; up.id; up = qn__node(s, up)->parent)
        if (is_block_loop(x, s, up))
            return "fills inside of lanes and unrolled loops";
    for (int a = 0; a < b->n_axes; a++)
        if (!has_sections_outside(s, b->axis[a], fill))
            return "buffers over sections";
    if (is_in_early_piece(s, fill))
        return "buffers of pieces whose last step begins early";
    if (has_streams(s) && qn__is_used_by_tails(s, qn__node(s, fill)->index) &&
        is_in_steps(x, s, fill))
        return "buffers that the first lanes of streamed rows use";
    const char *form = qn__fill_of(x, s, fill, &f);
    if (form)
        return form;
    if (f.has_steps && (qn__begins_early(x, s, qn__lanes_of(x, s)) || has_streams(s)))
        return "buffers over steps of lanes that overlap or are streamed";
    if (b->storage == QN_STORAGE_REGISTERS && (f.n > 0 || f.has_steps))
        return "registers that hold more than a block";
    return NULL;
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
