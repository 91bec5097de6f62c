/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate_bytes.c: what caches move. Accesses of a view whose indices differ by constants are a
 * group; a node of the schedule has the box that each group touches in one execution of it, and
 * its lines. What one iteration of a loop touches stays in a cache that has room for it: then all
 * iterations together move the lines of the loop's box, else each moves its own (the layer
 * condition). A half of a cache counts as room, the usual margin, as replacement is no perfect LRU.
 * Lines far apart that share few sets have less room.
 */
#include "jit/analysis/group.h"
#include "jit/schedule/estimate_parts.h"

enum { MOST_GROUPS = 64 };

typedef struct group {
    int buffer;     /* 1 + number of the buffer that is accessed instead of the view; 0: none */
    uint32_t inst;  /* an access of it */
    uint32_t parts; /* accesses that it has, of different parts of elements */
    bool is_written, is_stream, is_anywhere; /* data says where */
    bool has_rows;       /* data says which row, of which it is walked from element to element */
    bool is_interleaved; /* one step has several runs of lines of one page */
    bool is_copied;      /* fills of buffers alone access it */
} group;

/** What a node touches of a group. */
typedef struct touched {
    bool is_touched;
    double accesses; /* of elements */
    qn_box box;
} touched;

/** Lines of a box: how many there are, how many of the cache have room for them, and whether each
 * stands so far from the next that nothing fetches it ahead. */
typedef struct lines {
    double n, room;
    bool is_far;
} lines;

typedef struct mover {
    const qn_estimator *e;
    group group[MOST_GROUPS];
    int n_groups;
    touched *at; /* [n_nodes + 1][n_groups]; [0] is the whole schedule */
    const qn_cache_level *cache;
} mover;

static touched *touched_at(const mover *m, qn_node n, int g)
{
    return &m->at[(size_t)n.id * (size_t)m->n_groups + (size_t)g];
}

/* ---------------------------------------------------------------- groups */

static int group_of(const mover *m, uint32_t inst)
{
    const qn_kernel *k = m->e->x->k;
    for (int g = 0; g < m->n_groups; g++)
        if (!m->group[g].buffer && k->inst[m->group[g].inst].imm == k->inst[inst].imm &&
            qn__walk_alike(m->e->x, m->group[g].inst, inst))
            return g;
    return -1;
}

static int group_of_buffer(const mover *m, int buffer)
{
    for (int g = 0; g < m->n_groups; g++)
        if (m->group[g].buffer == 1 + buffer)
            return g;
    return -1;
}

/** Dimensions that data of an index depends on. */
static uint32_t dims_of_data(const qn_estimator *e, uint32_t index)
{
    const qn_affine *a = &e->x->affine[index];
    return (a->sym[0] ? e->x->value[a->sym[0]].deps : 0) |
           (a->sym[1] ? e->x->value[a->sym[1]].deps : 0);
}

/** How data says where an access is. */
static void find_data(const qn_estimator *e, uint32_t inst, group *g)
{
    const uint32_t *index = qn__args(e->x->k, inst);
    uint32_t of_data = 0;
    for (int r = 0; r < qn__n_indices(e->x->k, inst); r++)
        of_data |= dims_of_data(e, index[r]);
    g->is_anywhere = of_data != 0;
    for (int r = 0; r < qn__n_indices(e->x->k, inst); r++) {
        const qn_dim_fact *d = &e->x->f->param[e->x->k->inst[inst].imm].dim[r];
        const uint32_t own = e->x->value[index[r]].deps;
        const qn_fact *stride = &e->x->f->digit[d->first_digit].stride;
        g->has_rows |= g->is_anywhere && d->n_digits == 1 && stride->kind == QN_FACT_EXACT &&
                       stride->value == 1 && own && !(own & of_data);
    }
}

static void make_groups(mover *m)
{
    const qn_kernel *k = m->e->x->k;
    FOR_ACCESSES (k, n, i) {
        int g = group_of(m, i);
        if (g < 0 && m->n_groups == MOST_GROUPS)
            continue; /* a kernel of so many has others to tell schedules apart */
        if (g < 0) {
            m->group[g = m->n_groups++] = (group){.inst = i, .is_copied = true};
            find_data(m->e, i, &m->group[g]);
        }
        m->group[g].parts |= UINT32_C(1)
                             << (k->inst[i].op == QN_I_ATOMIC ? 0 : k->inst[i].sub & 31);
        m->group[g].is_written |= k->inst[i].op != QN_I_LOAD;
    }
    for (int r = 0; r < m->e->s->n_records; r++) {
        int g = m->e->s->record[r].streams ? group_of(m, m->e->s->record[r].inst) : -1;
        if (g >= 0)
            m->group[g].is_stream = true;
    }
    for (int b = 0; b < m->e->s->n_buffers && m->n_groups < MOST_GROUPS; b++)
        m->group[m->n_groups++] =
            (group){.buffer = 1 + b, .inst = m->e->s->buffer[b].inst, .is_written = true};
}

/* ---------------------------------------------------------------- boxes */

static void touch(touched *t, const qn_box *box, double accesses)
{
    if (t->is_touched)
        qn__box_widen(&t->box, box);
    else
        t->box = *box;
    t->is_touched = true;
    t->accesses += accesses;
}

/** Widens the spans of dimensions by a loop over an axis. */
static void add_span(const qn_estimator *e, qn_axis axis, int64_t *span)
{
    int d = qn__axis_dim(e->x, e->s, axis);
    int64_t weight = qn__axis_weight(e->x, e->s, axis, NULL);
    qn_count count = qn__axis_count(e->x, e->s, axis);
    uint32_t dims = qn__axis_dims(e->x, e->s, axis);
    for (int n = 0; n < e->x->k->n_dims; n++) {
        int64_t trips = qn__usual_trips(e->x->f, n, QN_NOMINAL_EXTENT), more;
        if (!(dims >> n & 1))
            continue;
        if (n != d || count.most == INT64_MAX ||
            __builtin_mul_overflow(weight, count.most - 1, &more) ||
            __builtin_add_overflow(span[n], more, &more) || more > trips)
            more = trips;
        span[n] = more > 1 ? more : 1;
    }
}

/** Whether elements of a box lie in runs of lines that begin in one page, but too far apart for
 * lines between them to be fetched with them. */
static bool is_interleaved(const mover *m, uint32_t inst, const qn_box *box)
{
    const qn_machine *machine = m->e->m;
    qn_stretch s[QN_MOST_STRETCHES];
    double line = machine->cache[0].line, apart = machine->page_bytes;
    for (int n = qn__stretches_of(m->e->x, inst, box, s); n-- > 0;)
        if (s[n].stride > machine->next_lines * line)
            apart = s[n].stride;
    return apart < machine->page_bytes;
}

/** Adds an access, which stands in `at`, to the boxes of all nodes around it. */
static void touch_around(mover *m, qn_node at, uint32_t inst, int64_t *span, double accesses)
{
    const qn_estimator *e = m->e;
    int g = group_of(m, inst);
    bool is_step = true;
    qn_box box = {0};
    for (qn_node n = at; g >= 0; n = qn__node(e->s, n)->parent) {
        const qn_node_info *l = qn__node(e->s, n);
        if (is_step && n.id != at.id && !qn__is_together(l)) {
            m->group[g].is_interleaved |= is_interleaved(m, inst, &box);
            is_step = false;
        }
        if (l->kind == QN_NODE_LOOP) {
            add_span(e, l->axis, span);
            accesses *= qn__nominal_count(e, l->axis);
        }
        qn__box_of_spans(e->x, inst, span, &box);
        touch(touched_at(m, n, g), &box, accesses);
        if (!n.id)
            return;
    }
}

/** Adds an element of a buffer to the boxes of all nodes around its use. */
static void touch_buffer(mover *m, qn_node at, int buffer, double accesses)
{
    const qn_estimator *e = m->e;
    const qn_buffer_info *b = &e->s->buffer[buffer];
    int g = group_of_buffer(m, buffer);
    qn_box box = {.rank = b->n_axes};
    for (int a = 0; a < b->n_axes; a++)
        box.extent[a] = at.id && qn__node(e->s, at)->kind != QN_NODE_DO
                            ? qn__extent_of(qn__nominal_count(e, b->axis[a]))
                            : 1;
    for (qn_node n = at; g >= 0; n = qn__node(e->s, n)->parent) {
        const qn_node_info *l = qn__node(e->s, n);
        if (l->kind == QN_NODE_LOOP)
            accesses *= qn__nominal_count(e, l->axis);
        for (int a = 0; a < b->n_axes && l->kind == QN_NODE_LOOP; a++) {
            double most = qn__nominal_count(e, b->axis[a]);
            double more = (double)box.extent[a] * qn__nominal_count(e, l->axis);
            if (qn__axis_is_of(e->s, l->axis, b->axis[a]))
                box.extent[a] = qn__extent_of(more < most ? more : most);
        }
        touch(touched_at(m, n, g), &box, accesses);
        if (!n.id)
            return;
    }
}

/** How often an instruction runs for one execution of its statement: trips of loops of the body,
 * and points of reduces in them. */
static double runs_of(const qn_estimator *e, uint32_t first, uint32_t i)
{
    const qn_kernel *k = e->x->k;
    double runs = 1;
    for (i = k->inst[i].parent; i >= first && i; i = k->inst[i].parent)
        runs *= k->inst[i].op == QN_I_IF ? 1 : qn__nominal_trips(e->x, i);
    return runs;
}

/** Accesses of a DO, and accumulators in memory that it adds to. */
static void touch_statement(mover *m, qn_node at)
{
    const qn_schedule *s = m->e->s;
    const qn_kernel *k = m->e->x->k;
    const qn_node_info *l = qn__node(s, at);
    for (uint32_t i = l->first; i < l->end; i++) {
        int64_t span[QN_MAX_RANK];
        for (int d = 0; d < QN_MAX_RANK; d++)
            span[d] = 1;
        const qn_record_info *r = qn__record_at(s, at, i, 0);
        if (r && r->method == QN_METHOD_THROUGH) {
            touch_buffer(m, at, r->index - 1, 1);
        } else if (qn__is_access(&k->inst[i])) {
            touch_around(m, at, i, span, runs_of(m->e, l->first, i));
            int g = group_of(m, i);
            if (g >= 0)
                m->group[g].is_copied = false;
        }
        for (int n = 0; n < s->n_reductions && k->inst[i].op == QN_I_YIELD; n++)
            if (s->reduction[n].buffer && s->reduction[n].inst[0] == k->inst[i].parent)
                touch_buffer(m, at, s->reduction[n].buffer - 1, 1);
    }
}

static void make_boxes(mover *m)
{
    const qn_estimator *e = m->e;
    for (uint16_t n = 1; n <= e->s->n_nodes; n++) {
        const qn_node_info *l = &e->s->node[n];
        if (l->kind == QN_NODE_DO)
            touch_statement(m, (qn_node){n});
        if (l->kind != QN_NODE_FILL && l->kind != QN_NODE_FLUSH)
            continue;
        const qn_buffer_info *b = &e->s->buffer[l->index];
        int64_t span[QN_MAX_RANK];
        double accesses = 1;
        for (int d = 0; d < QN_MAX_RANK; d++)
            span[d] = 1;
        for (int a = 0; a < b->n_axes; a++) {
            add_span(e, b->axis[a], span);
            accesses *= qn__nominal_count(e, b->axis[a]);
        }
        if (qn__is_access(&e->x->k->inst[b->inst]))
            touch_around(m, (qn_node){n}, b->inst, span, accesses);
        touch_buffer(m, (qn_node){n}, l->index, accesses);
    }
}

/* ---------------------------------------------------------------- lines */

int qn__stretches_of(const qn_analysis *x, uint32_t inst, const qn_box *box, qn_stretch *out)
{
    const qn_facts *f = x->f;
    uint64_t p = x->k->inst[inst].imm;
    double unit = (double)qn__unit_of(x->k, f, inst);
    int n_out = 0;
    for (int r = 0; r < box->rank; r++) {
        const qn_dim_fact *d = &f->param[p].dim[r];
        double left = (double)(box->extent[r] < 0 ? QN_NOMINAL_EXTENT : box->extent[r]);
        for (int n = 0; n < d->n_digits && left > 1 && n_out < QN_MOST_STRETCHES; n++) {
            const qn_digit_fact *digit = &f->digit[d->first_digit + n];
            double most = n + 1 == d->n_digits || digit->extent.kind != QN_FACT_EXACT
                              ? left
                              : (double)digit->extent.value;
            bool is_known = digit->stride.kind == QN_FACT_EXACT;
            double own = most < left ? most : left,
                   stride = is_known ? (double)digit->stride.value
                                     : (double)QN_NOMINAL_EXTENT;
            stride = (stride < 0 ? -stride : stride) * unit;
            left = most > 0 ? left / most : 1;
            int at = stride > 0 && own > 1 ? n_out++ : -1;
            for (; at > 0 && out[at - 1].stride > stride; at--)
                out[at] = out[at - 1];
            if (at >= 0)
                out[at] = (qn_stretch){own, stride, is_known};
        }
    }
    return n_out;
}

static double greatest_divisor(double a, double b)
{
    uint64_t x = (uint64_t)qn__extent_of(a), y = (uint64_t)qn__extent_of(b);
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x ? (double)x : 1;
}

/** Of a buffer, whose elements stand side by side: the part of it that a box has. */
static lines lines_of_buffer(const mover *m, const touched *t, int g)
{
    const qn_buffer_info *b = &m->e->s->buffer[m->group[g].buffer - 1];
    double part = 1, line = m->cache->line;
    for (int a = 0; a < b->n_axes; a++)
        part *= (double)t->box.extent[a] / qn__nominal_count(m->e, b->axis[a]);
    double n = (double)b->bytes * part / line;
    return (lines){.n = n < 1 ? 1 : n, .room = (double)m->cache->bytes / line};
}

static lines lines_of(const mover *m, const touched *t, int g)
{
    qn_stretch s[QN_MOST_STRETCHES];
    const qn_kernel *k = m->e->x->k;
    const group *own = &m->group[g];
    if (!t->is_touched)
        return (lines){0};
    if (own->buffer) /* that of sums is of a reduce, which accesses no view */
        return lines_of_buffer(m, t, g);
    double line = m->cache->line, way = (double)qn__way_bytes(m->cache);
    const qn_kernel_parameter *p = &k->param[k->inst[own->inst].imm];
    double whole = (double)(p->record ? p->record->bytes : qn_dtype_bytes(p->dtype));
    double run = own->parts & (own->parts - 1) ? whole : (double)qn__access_bytes(k, own->inst);
    double element = run, runs = 1, apart = 0, sets = 1, of_run = 1;
    bool is_aligned = true;
    int n = qn__stretches_of(m->e->x, own->inst, &t->box, s);
    for (int i = 0; i < n; i++) {
        if (runs == 1 && (s[i].stride <= run || s[i].stride < line)) {
            run += (s[i].n - 1) * s[i].stride;
            of_run *= s[i].n;
            continue;
        }
        /* runs a distance apart that is not known are not taken to share sets */
        double distinct = s[i].is_known ? way / greatest_divisor(s[i].stride, way) : s[i].n;
        is_aligned &= s[i].is_known && greatest_divisor(s[i].stride, line) == line;
        apart = runs == 1 ? s[i].stride : apart;
        runs *= s[i].n;
        sets *= distinct < s[i].n ? distinct : s[i].n;
    }
    /* runs that begin anywhere in a line have the lines of all places in the mean */
    double own_lines = is_aligned ? qn__whole((run + line - 1) / line) : (run - element) / line + 1;
    lines r = {.n = runs * own_lines, .room = (double)m->cache->bytes / line};
    const double most = own->has_rows ? t->accesses / of_run * own_lines : t->accesses;
    if (r.n > most)
        r.n = most > 1 ? most : 1;
    sets *= own_lines;
    if (sets * m->cache->ways < r.room && runs > 1)
        r.room = sets * m->cache->ways;
    r.is_far = own->is_anywhere || own->is_interleaved ||
               (run <= line && runs > 1 && apart >= m->e->m->page_bytes);
    return r;
}

/* ---------------------------------------------------------------- what moves */

/** Lines that a cache gets for a group. */
typedef struct moved {
    double n, far;
} moved;

/** What one iteration of a loop touches of a group. */
static touched iteration_of(const mover *m, qn_node loop, int g)
{
    touched all = {0};
    for (qn_node n = qn__node(m->e->s, loop)->child; n.id; n = qn__node(m->e->s, n)->next) {
        const touched *t = touched_at(m, n, g);
        if (t->is_touched)
            touch(&all, &t->box, t->accesses);
    }
    return all;
}

/** Bit g: what one iteration of a loop touches of group g stays in the cache. */
static uint64_t kept_of(const mover *m, qn_node loop)
{
    double all = 0, room = (double)m->cache->bytes / m->cache->line / 2;
    uint64_t kept = 0;
    for (int g = 0; g < m->n_groups; g++) {
        touched t = iteration_of(m, loop, g);
        lines l = lines_of(m, &t, g);
        all += l.n;
        if (l.n <= l.room)
            kept |= UINT64_C(1) << g;
    }
    return all <= room ? kept : 0;
}

static void moved_by(const mover *m, qn_node n, moved *out);

static void moved_by_children(const mover *m, qn_node first, moved *out)
{
    for (qn_node n = first; n.id; n = qn__node(m->e->s, n)->next) {
        moved own[MOST_GROUPS];
        moved_by(m, n, own);
        for (int g = 0; g < m->n_groups; g++) {
            out[g].n += own[g].n;
            out[g].far += own[g].far;
        }
    }
}

static void moved_by(const mover *m, qn_node n, moved *out)
{
    const qn_node_info *l = qn__node(m->e->s, n);
    bool is_loop = l->kind == QN_NODE_LOOP && !qn__is_together(l);
    uint64_t kept = is_loop ? kept_of(m, n) : l->kind == QN_NODE_PLACE ? 0 : UINT64_MAX;
    uint64_t groups = m->n_groups < 64 ? (UINT64_C(1) << m->n_groups) - 1 : UINT64_MAX;
    for (int g = 0; g < m->n_groups; g++)
        out[g] = (moved){0};
    if ((kept & groups) != groups)
        moved_by_children(m, l->child, out);
    double steps = is_loop ? qn__steps(m->e, l->axis) : 1, rest = steps - qn__whole(steps);
    for (int g = 0; g < m->n_groups; g++) {
        lines own = lines_of(m, touched_at(m, n, g), g);
        touched each = is_loop ? iteration_of(m, n, g) : (touched){0};
        bool is_again = is_loop && rest > 0 && lines_of(m, &each, g).n >= own.n;
        double count = is_again ? steps - rest + 1 : steps; /* the last iteration moves all, too */
        out[g].n *= count;
        out[g].far *= count;
        if (kept >> g & 1)
            out[g] = (moved){own.n, own.is_far ? own.n : 0};
    }
}

/** One level: what calls before left in the cache is not moved. A large launch leaves nothing that
 * a next one finds. */
static void move(mover *m, int level)
{
    const qn_machine *machine = m->e->m;
    moved all[MOST_GROUPS] = {{0, 0}};
    lines whole[MOST_GROUPS];
    double bytes = 0, copied = 0, far = 0, line = machine->cache[level].line, in_all = 0;
    m->cache = &machine->cache[level];
    for (int g = 0; g < m->n_groups; g++) {
        whole[g] = lines_of(m, touched_at(m, (qn_node){0}, g), g);
        in_all += whole[g].n;
    }
    bool has_room = !m->e->x->f->is_large && in_all * line <= (double)m->cache->bytes;
    moved_by_children(m, m->e->s->root, all);
    for (int g = 0; g < m->n_groups; g++) {
        const group *own = &m->group[g];
        if (own->is_stream) { /* past the caches */
            bytes += level == QN_CACHE_LAST ? whole[g].n * line : 0;
        } else if (!has_room || whole[g].n > whole[g].room) {
            double *to = own->is_copied ? &copied : &bytes;
            *to += (own->is_written ? 2 : 1) * all[g].n * line;
            far += all[g].far;
        }
    }
    double away =
        level == QN_CACHE_LAST ? machine->memory_cycles : machine->cache_cycles[level + 1];
    m->e->out->bytes[level] = bytes + copied;
    m->e->out->transfer[level] = bytes / machine->bytes_a_cycle[level];
    away -= (double)machine->window / machine->instructions; /* meanwhile others begin */
    m->e->out->waiting[level] =
        copied / machine->bytes_a_cycle[level] + (away > 0 ? far * away / machine->misses : 0);
}

qn_status qn__estimate_bytes(const qn_estimator *e, qn_error *err)
{
    mover m = {.e = e};
    make_groups(&m);
    size_t n = (size_t)(e->s->n_nodes + 1) * (size_t)(m.n_groups ? m.n_groups : 1);
    m.at = qn__zalloc(n, sizeof *m.at);
    if (!m.at)
        return qn__fail(err, QN_ERR_MEMORY, "estimate: no memory for kernel \"%s\"", e->x->k->name);
    make_boxes(&m);
    for (int level = 0; level < QN_N_CACHES && e->m->cache[level].bytes; level++)
        move(&m, level);
    qn__free(m.at);
    return QN_OK;
}
