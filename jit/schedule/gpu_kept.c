/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_kept.c: values of points that a team of a GPU keeps in shared memory: those that a
 * reduce computes, and a later reduce or a loop behind it computes again from the same loads. In
 * softmax these are the elements of a row, and their exponentials. What stands behind the reduces
 * for a dimension of grid->rest_dims is such a region, too, without an instruction of its own:
 * QN_KEPT_BODY. A lane of a warp reads only what it has written, as its points are l, l + 32, ...
 * in all of them. A block keeps whole rows, and what each of its reduces adds as well, which one
 * thread of each row then adds in order.
 */
#include "jit/schedule/gpu.h"

#include <string.h>

/** Larger regions are not looked at: the search is quadratic. */
enum { LARGEST_REGION = 256 };
/** A multiprocessor should have room for so many teams, or rows of blocks: with fewer, too few
 * loads are under way. */
enum { FEWEST_TEAMS = 8, FEWEST_ROWS = 3 };

/** Two regions over the same points, an earlier and a later one. */
typedef struct regions {
    const gpu_planner *s;
    uint32_t from, to;     /* the reduce; the reduce or loop, or QN_KEPT_BODY */
    uint32_t point, index; /* the dimension's index in the first; the index in the second */
    const uint32_t
        *same; /* [n_insts] of values of the second: the value of the first that is equal, or 0 */
} regions;

static bool is_within(const qn_kernel *k, uint32_t owner, uint32_t i)
{
    return i > owner && i < k->inst[owner].region[2];
}

static uint32_t begin_of(const qn_kernel *k, uint32_t region)
{
    return region == QN_KEPT_BODY ? k->body : k->inst[region].region[0];
}

static uint32_t end_of(const qn_kernel *k, uint32_t region)
{
    return region == QN_KEPT_BODY ? k->n_insts : k->inst[region].region[2];
}

/** Whether value v belongs to the second region. */
static bool is_of_second(const regions *r, uint32_t v)
{
    if (r->to == QN_KEPT_BODY)
        return v >= r->s->k->body && (r->s->a.value[v].deps & r->s->p->rest_dims);
    return is_within(r->s->k, r->to, v);
}

/** The value of the first region, or outside of both, that operand v of the second one is equal to;
 * 0: none is known. */
static uint32_t counterpart(const regions *r, uint32_t v)
{
    if (v == r->index)
        return r->point;
    bool is_matched = is_of_second(r, v) || (v >= r->s->k->body && r->same[v]);
    return is_matched ? r->same[v] : v;
}

/** Whether a value depends on nothing but its operands: a load of what nobody writes and that
 * cannot fail is one. */
static bool is_repeatable(const gpu_planner *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    if (x->op != QN_I_LOAD)
        return qn__is_pure(x) || x->op == QN_I_YIELD || x->op == QN_I_IF || x->op == QN_I_RESULT;
    return !qn__is_checked(s->f, s->k, qn__site_of(s->k, i)) &&
           s->f->param[x->imm].is_constant_memory && !(s->k->param[x->imm].traits & QN_ATOMIC);
}

/** Whether two indices are of dimensions that have one index, and the same. */
static bool is_one_index(const gpu_planner *s, uint32_t v, uint32_t w)
{
    const qn_inst *x = &s->k->inst[v], *y = &s->k->inst[w];
    return x->op == QN_I_DIM && y->op == QN_I_DIM && qn__trips(s->f, (int)x->imm) == 1 &&
           qn__trips(s->f, (int)y->imm) == 1 &&
           s->f->begin[x->imm].value == s->f->begin[y->imm].value;
}

/** Whether instruction b of the second region is what a of the first is. Of two ifs at the same
 * place, operands inside them are compared by their place. */
static bool is_equal(const regions *r, uint32_t a, uint32_t b, uint32_t if_a, uint32_t if_b)
{
    const qn_kernel *k = r->s->k;
    const qn_inst *x = &k->inst[a], *y = &k->inst[b];
    if (x->op != y->op || x->type != y->type || x->sub != y->sub || x->imm != y->imm ||
        x->n_args != y->n_args || x->region[2] - a != y->region[2] - b || !is_repeatable(r->s, a) ||
        !is_repeatable(r->s, b))
        return false;
    if (x->op == QN_I_IF && x->region[1] - a != y->region[1] - b)
        return false;
    for (int n = 0; n < x->n_args; n++) {
        uint32_t v = qn__args(k, a)[n], w = qn__args(k, b)[n];
        bool is_inside = if_b && w >= if_b && is_within(k, if_b, w);
        if (is_inside ? v - if_a != w - if_b : !is_one_index(r->s, v, w) && counterpart(r, w) != v)
            return false;
    }
    for (uint32_t n = 1; x->op == QN_I_IF && a + n < x->region[2]; n++)
        if (!is_equal(r, a + n, b + n, if_b ? if_a : a, if_b ? if_b : b))
            return false;
    return true;
}

/** Finds for each value at the top of the second region one of the first that is equal. */
static void match(const regions *r, uint32_t *same)
{
    const qn_kernel *k = r->s->k;
    uint32_t end = k->inst[r->from].region[2];
    for (uint32_t b = begin_of(k, r->to); b < end_of(k, r->to); b = k->inst[b].region[2]) {
        int op = k->inst[b].op;
        if (op == QN_I_YIELD || b == r->index || (op != QN_I_CONST && !is_of_second(r, b)))
            continue;
        for (uint32_t a = k->inst[r->from].region[0]; a < end && !same[b]; a = k->inst[a].region[2])
            same[b] = k->inst[a].op != QN_I_YIELD && is_equal(r, a, b, 0, 0) ? a : 0;
    }
}

/** Whether a value of the second region that has a counterpart is needed by an instruction that has
 * none. */
static bool is_needed(const regions *r, uint32_t v)
{
    const qn_kernel *k = r->s->k;
    for (uint32_t b = begin_of(k, r->to); b < end_of(k, r->to); b++) {
        uint32_t at = b;
        while (k->inst[at].parent !=
               (r->to == QN_KEPT_BODY
                    ? 0
                    : r->to)) /* the instruction at the top of the region that b is, or stands in */
            at = k->inst[at].parent;
        if (r->same[at])
            continue;
        for (int n = 0; n < k->inst[b].n_args; n++)
            if (qn__args(k, b)[n] == v)
                return true;
    }
    return false;
}

static bool is_kept(const qn_grid *p, uint32_t to, uint32_t region)
{
    for (int n = 0; n < p->n_kept; n++)
        if (p->kept[n].to == to && p->kept[n].region == region)
            return true;
    return false;
}

/** The first entry of the value that entry n keeps. */
static int first_of(const qn_grid *p, int n)
{
    int first = 0;
    while (p->kept[first].from != p->kept[n].from)
        first++;
    return first;
}

uint32_t qn__added_value(const qn_kernel *k, uint32_t reduce, int n)
{
    const uint32_t product = qn__contracted_product(k, reduce);
    return qn__args(k, product ? product : k->inst[reduce].region[2] - 1)[n];
}

static int n_added(const qn_kernel *k, uint32_t reduce)
{
    return qn__contracted_product(k, reduce) ? 2 : 1;
}

/** Values of a point from which what it adds is computed again. */
typedef struct roots {
    int n, left; /* operations that are worth less than what they save to keep */
    uint32_t of[4];
} roots;

/** Adds what is kept and the loads that v is computed from, but those that are the same for all
 * rows; false if that is not cheap. */
static bool add_roots(const gpu_planner *s, uint32_t reduce, uint32_t v, roots *out)
{
    const qn_inst *x = &s->k->inst[v];
    const bool is_load = x->op == QN_I_LOAD;
    if (!is_within(s->k, reduce, v))
        return true;
    for (int n = 0; n < out->n; n++)
        if (out->of[n] == v)
            return true;
    if (is_kept(s->p, v, reduce) || (is_load && (s->a.value[v].deps >> s->p->axis[0] & 1))) {
        if (out->n == sizeof out->of / sizeof *out->of)
            return false;
        out->of[out->n++] = v;
        return true;
    }
    if (x->parent != reduce || (!is_load && !qn__is_pure(x)) || out->left-- == 0)
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!add_roots(s, reduce, qn__args(s->k, v)[n], out))
            return false;
    return true;
}

/** What a block keeps of each point of a reduce, so that it can be added: what is added, or what
 * the lanes that add compute this from. */
static roots roots_of(const gpu_planner *s, uint32_t reduce)
{
    enum { FEW_OPERATIONS = 6 };
    roots r = {.left = FEW_OPERATIONS};
    bool are_cheap = qn__block_is_by_lanes(s->k, s->p, reduce);
    for (int n = 0; n < n_added(s->k, reduce); n++)
        are_cheap = are_cheap && add_roots(s, reduce, qn__added_value(s->k, reduce, n), &r);
    for (r.n = are_cheap ? r.n : 0; r.n < n_added(s->k, reduce) && !are_cheap; r.n++)
        r.of[r.n] = qn__added_value(s->k, reduce, r.n);
    return r;
}

/** When the value of entry n is read for the last time: an even number in a point of a region, as
 * is 2 x writer, or the odd one behind it where a block adds the values of all points. */
static uint64_t last_read(const gpu_planner *s, int n)
{
    const qn_grid *p = s->p;
    uint64_t last = 0;
    for (int m = 0; m < p->n_kept; m++) {
        const qn_kept *x = &p->kept[m];
        bool is_added = false;
        const bool is_block = p->team == QN_TEAM_BLOCK && x->region != QN_KEPT_BODY;
        const roots r = is_block ? roots_of(s, x->region) : (roots){.n = 0};
        for (int a = 0; a < r.n; a++)
            is_added |= r.of[a] == x->to;
        const uint64_t here = 2 * (uint64_t)x->region + is_added;
        if (x->from == p->kept[n].from && here > last)
            last = here;
    }
    return last;
}

/** Bytes of the value of entry n at all points of a row, or at so many that no shared memory has
 * them. Rows of a block begin an odd number of pieces of 16 bytes apart, as threads side by side
 * read such pieces of a row each. */
static int64_t bytes_of(const gpu_planner *s, int n)
{
    enum { TOO_MANY = 1 << 24 };
    const qn_kept *x = &s->p->kept[n];
    int64_t trips = qn__trips(s->f, qn__gpu_reduced_dim(s, x->writer)),
            points = trips < TOO_MANY ? trips : TOO_MANY,
            pieces = (points * qn_dtype_bytes(s->k->inst[x->from].type) + 15) / 16;
    return 16 * (s->p->team == QN_TEAM_BLOCK ? pieces | 1 : pieces);
}

/** Whether the values of two entries may stand in one area: each point has as many bytes, so that
 * it is the same lane's, and one is read for the last time before, or where, the other is written.
 */
static bool may_share_area(const gpu_planner *s, int n, int m)
{
    const qn_kept *x = &s->p->kept[n], *y = &s->p->kept[m];
    const qn_inst *inst = s->k->inst;
    bool is_over =
        last_read(s, n) <= 2 * (uint64_t)y->writer || last_read(s, m) <= 2 * (uint64_t)x->writer;
    return is_over && bytes_of(s, n) == bytes_of(s, m) &&
           qn_dtype_bytes(inst[x->from].type) == qn_dtype_bytes(inst[y->from].type);
}

/* When all readers are known, as an area that has another value too early would be read as the
 * first one. */
void qn__gpu_place_kept(const gpu_planner *s)
{
    qn_grid *p = s->p;
    const int64_t rows = p->team == QN_TEAM_BLOCK ? p->block[p->axis[0]] : 1;
    p->kept_bytes = 0;
    for (int n = 0; n < p->n_kept; n++) {
        int64_t bytes = rows * bytes_of(s, n);
        p->kept[n].pitch = (int32_t)bytes_of(s, n);
        int first = first_of(p, n), shared = -1;
        for (int m = 0; m < n && shared < 0; m++) {
            bool is_free = true;
            for (int other = 0; other < n; other++)
                is_free =
                    is_free && (p->kept[other].at != p->kept[m].at || may_share_area(s, n, other));
            shared = is_free ? m : -1;
        }
        p->kept[n].at = first < n     ? p->kept[first].at
                        : shared >= 0 ? p->kept[shared].at
                                      : p->kept_bytes;
        if (first == n && shared < 0) {
            bytes += p->kept_bytes;
            p->kept_bytes = bytes < INT32_MAX ? (int32_t)bytes : INT32_MAX;
        }
    }
}

/** What is kept for a value of the second region: if it has been converted from fewer bytes, those.
 */
static uint32_t narrowest(const regions *r, uint32_t v)
{
    const qn_kernel *k = r->s->k;
    for (uint32_t from = v; k->inst[v].op == QN_I_CAST; v = from) {
        from = qn__args(k, v)[0];
        if (!is_of_second(r, from) || !r->same[from] ||
            qn_dtype_bytes(k->inst[from].type) >= qn_dtype_bytes(k->inst[v].type))
            break;
    }
    return v;
}

/** Adds what the second region reads, if that is not too much. */
static void add_region(const regions *r, int64_t most)
{
    const qn_kernel *k = r->s->k;
    qn_grid *p = r->s->p, before = *p;
    for (uint32_t b = begin_of(k, r->to); b < end_of(k, r->to); b = k->inst[b].region[2]) {
        if (!r->same[b] || k->inst[b].type == QN_VOID || k->inst[b].op == QN_I_CONST ||
            !is_needed(r, b))
            continue;
        const uint32_t to = narrowest(r, b);
        if (!(r->s->a.value[r->same[b]].deps >> k->inst[r->point].imm & 1) || is_kept(p, to, r->to))
            continue; /* the same at all points, or kept */
        if (p->n_kept == QN_MOST_KEPT) {
            *p = before;
            return;
        }
        p->kept[p->n_kept++] =
            (qn_kept){.from = r->same[to], .to = to, .writer = r->from, .region = r->to};
    }
    qn__gpu_place_kept(r->s);
    if (p->kept_bytes > most)
        *p = before;
}

/** The index of a loop over all points of dimension d, or of a reduce over d alone, that a team
 * shares; 0: it is neither. */
static uint32_t index_of(const gpu_planner *s, uint32_t i, int d)
{
    const qn_inst *x = &s->k->inst[i];
    const uint32_t *arg = qn__args(s->k, i);
    if (x->region[2] - i > LARGEST_REGION)
        return 0;
    if (x->op == QN_I_REDUCE)
        return qn__gpu_reduced_dim(s, i) == d &&
                       (s->p->team == QN_TEAM_BLOCK || qn__may_share_points(s->k, i) ||
                        qn__is_associative(s->k, i))
                   ? s->k->dim[d]
                   : 0;
    if (x->op != QN_I_FOR || s->p->team == QN_TEAM_BLOCK || x->n_args != 2 || x->imm != 1)
        return 0;
    for (int n = 0; n < 2; n++) {
        const qn_affine *a = &s->a.affine[arg[n]];
        bool is_known = !a->sym[0] && !a->sym[1];
        for (int e = 0; e < QN_MAX_RANK; e++)
            is_known = is_known && !a->coef[e];
        if (!is_known || a->constant != (n ? s->f->end[d].value : s->f->begin[d].value))
            return 0;
    }
    return x->region[0];
}

/** Keeps what region `to` computes again, of the reduce that computes the most of it. */
static void choose_for(const gpu_planner *s, uint32_t to, uint32_t index, int d, uint32_t *same)
{
    const qn_kernel *k = s->k;
    int64_t most =
        s->f->machine.shared_bytes / (s->p->team == QN_TEAM_BLOCK ? FEWEST_ROWS : FEWEST_TEAMS);
    most = most < s->f->machine.block_shared_bytes ? most : s->f->machine.block_shared_bytes;
    uint32_t best = 0, most_equal = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t from = pass ? best : k->body; from && from < to && from < k->n_insts;
             from = pass ? to : k->inst[from].region[2]) {
            if (k->inst[from].op != QN_I_REDUCE || !index_of(s, from, d))
                continue;
            regions r = {
                .s = s, .from = from, .to = to, .point = k->dim[d], .index = index, .same = same};
            uint32_t n = 0;
            memset(same, 0, k->n_insts * sizeof *same);
            match(&r, same);
            for (uint32_t b = begin_of(k, to); b < end_of(k, to); b++)
                n += same[b] != 0 && k->inst[b].op != QN_I_CONST;
            if (pass)
                add_region(&r, most);
            best = n > most_equal ? from : best;
            most_equal = n > most_equal ? n : most_equal;
        }
}

/** The only dimension of the rest; -1: there is none, or there are several. */
static int dimension_of_rest(const gpu_planner *s)
{
    for (int d = 0; d < s->k->n_dims; d++)
        if (s->p->rest_dims == UINT32_C(1) << d)
            return d;
    return -1;
}

/** Whether two dimensions have the same indices, which are known. */
static bool has_range_of(const gpu_planner *s, int a, int b)
{
    const qn_facts *f = s->f;
    return qn__is_exact(f, a) && qn__is_exact(f, b) && f->begin[a].value == f->begin[b].value &&
           f->end[a].value == f->end[b].value;
}

/** Adds what each reduce of a block adds, for each point of each row; false if some of it is not
 * known so, or is the same for all rows. */
static bool add_added(const gpu_planner *s)
{
    const qn_kernel *k = s->k;
    qn_grid *p = s->p;
    FOR_TOP_REDUCES (k, r) {
        const int d = qn__gpu_reduced_dim(s, r);
        if (d < 0 || qn__trips(s->f, d) < 1)
            return false;
        const roots of = roots_of(s, r);
        const bool by_lanes = qn__block_is_by_lanes(k, p, r);
        for (int n = 0; n < of.n; n++) {
            const uint32_t v = of.of[n];
            const bool is_there = is_kept(p, v, r);
            const bool is_same = !(s->a.value[v].deps >> p->axis[0] & 1);
            if ((is_same && !by_lanes) || !is_within(k, r, v) ||
                (!is_there && p->n_kept == QN_MOST_KEPT))
                return false;
            if (!is_there)
                p->kept[p->n_kept++] = (qn_kept){.from = v, .to = v, .writer = r, .region = r};
        }
    }
    return true;
}

void qn__gpu_choose_kept(const gpu_planner *s)
{
    const qn_kernel *k = s->k;
    const bool is_team = s->p->team == QN_TEAM_WARP || s->p->team == QN_TEAM_BLOCK;
    if (!is_team || s->has_assertions)
        return;
    uint32_t *same = qn__zalloc(k->n_insts, sizeof *same);
    for (uint32_t to = k->body; same && to < k->n_insts; to = k->inst[to].region[2])
        for (int d = 0; d < k->n_dims; d++) {
            uint32_t index =
                qn__is_reduction(k, d) && qn__is_exact(s->f, d) ? index_of(s, to, d) : 0;
            if (index)
                choose_for(s, to, index, d, same);
        }
    for (int d = 0; same && d < k->n_dims; d++) {
        int rest = dimension_of_rest(s);
        if (rest >= 0 && qn__is_reduction(k, d) && has_range_of(s, rest, d))
            choose_for(s, QN_KEPT_BODY, k->dim[rest], d, same);
    }
    if (s->p->team == QN_TEAM_BLOCK && s->p->n_kept && !add_added(s))
        s->p->n_kept = 0;
    qn__gpu_place_kept(s);
    qn__free(same);
}
