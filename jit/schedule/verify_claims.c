/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_claims.c: what a schedule claims of axes, buffers, reductions and accesses, each compared
 * with what kernel and facts say.
 */
#include "jit/analysis/group.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/verify.h"

#include <string.h>

/* ---------------------------------------------------------------- axes */

static bool verify_root(qn_verifier *v, qn_axis axis)
{
    const qn_kernel *k = v->x->k;
    const qn_axis_info *a = qn__axis(v->s, axis);
    qn_axis_text name = qn__axis_text(v, axis);
    bool is_right = a->number < k->n_dims && !qn__is_reduction(k, a->number);
    if (a->kind == QN_AXIS_POINT) {
        is_right = a->inst >= k->body && a->inst < k->n_insts && k->inst[a->inst].op == QN_I_REDUCE;
        bool has_dim = false;
        for (int n = 0; is_right && n < k->inst[a->inst].n_args; n++)
            has_dim |= qn__dim_of(k, a->inst, n) == a->number;
        is_right &= has_dim;
    } else if (a->kind == QN_AXIS_TRIP) {
        is_right = a->inst >= k->body && a->inst < k->n_insts && qn__is_body_loop(k, a->inst);
    }
    if (!is_right)
        return qn__refuse(v, "axis %s: the kernel has no such dimension, reduce or loop",
                          name.name);
    qn_count count = qn__axis_count(v->x, v->s, axis);
    return (count.kind == a->count.kind && count.most == a->count.most) ||
           qn__refuse(v, "axis %s: it has not so many iterations", name.name);
}

/** Whether an axis has at least n iterations, and they are a multiple of n, in every launch. */
static bool is_multiple(const qn_verifier *v, qn_axis axis, int64_t n)
{
    const qn_axis_info *a = qn__axis(v->s, axis);
    qn_count count = qn__axis_count(v->x, v->s, axis);
    if (count.kind == QN_COUNT_EXACT)
        return count.most % n == 0;
    return (a->kind == QN_AXIS_DIM || a->kind == QN_AXIS_POINT) && n <= QN_MOST_MULTIPLE &&
           (n & (n - 1)) == 0 && qn__is_multiple(v->x->f, a->number, n);
}

/** The last step of an axis may begin so early that it ends with the axis: then some iterations run
 * twice. */
static bool may_overlap(const qn_verifier *v, const qn_cut *c, int64_t step)
{
    qn_count count = qn__axis_count(v->x, v->s, c->of);
    qn_axis root;
    bool is_parallel = qn__axis_weight(v->x, v->s, c->of, &root) &&
                       qn__axis(v->s, root)->kind == QN_AXIS_DIM &&
                       qn__dim_kind(v->x->k, qn__axis(v->s, root)->number) == QN_DIM_PARALLEL;
    return is_parallel && count.kind == QN_COUNT_EXACT && count.most >= step &&
           !v->x->f->is_ordered && qn__may_repeat(v->x);
}

/** That the numbers of a cut are in their ranges, so that counts and weights can be computed. */
static bool verify_shape(qn_verifier *v, const qn_cut *c)
{
    int64_t step = 1;
    bool is_right = c->n >= 2 && c->n <= QN_MOST_PARTS && c->first.id + c->n - 1 <= v->s->n_axes &&
                    c->of.id < c->first.id && c->of.id && c->kind <= QN_CUT_SECTIONS &&
                    c->tail < QN_N_TAILS && c->letter < 26;
    for (int n = 1; is_right && n < c->n && c->kind == QN_CUT_DIGITS; n++)
        is_right = c->extent[n] >= 1 && !__builtin_mul_overflow(step, c->extent[n], &step);
    for (int n = 0; is_right && n < c->n - 1 && c->kind == QN_CUT_SECTIONS; n++)
        is_right = c->bound[n].from <= QN_FROM_AXIS && c->bound[n].offset <= INT64_MAX / 4 &&
                   c->bound[n].offset >= INT64_MIN / 4;
    for (int n = 0; is_right && n < c->n; n++)
        is_right = v->s->axis[c->first.id + n].kind == QN_AXIS_PART &&
                   &v->s->cut[v->s->axis[c->first.id + n].cut] == c;
    return is_right ||
           qn__refuse(v, "cut number %d: its parts are none, too large, or too far away",
                      (int)(c - v->s->cut));
}

static bool verify_cut(qn_verifier *v, const qn_cut *c)
{
    int64_t step = 1;
    qn_axis_text name = qn__axis_text(v, c->of);
    for (int n = 0; n < c->n - 1 && c->kind == QN_CUT_SECTIONS; n++)
        if (c->bound[n].from == QN_FROM_AXIS &&
            (qn__axis(v->s, c->bound[n].axis)->kind != QN_AXIS_DIM ||
             qn__axis(v->s, c->of)->kind != QN_AXIS_DIM || c->of.id == c->bound[n].axis.id))
            return qn__refuse(
                v, "cut %s: only a section of a dimension ends at the index of another dimension",
                name.name);
    if (c->kind == QN_CUT_SECTIONS)
        return true;
    for (int n = 1; n < c->n; n++)
        step *= c->extent[n];
    if (c->tail == QN_TAIL_NONE && !is_multiple(v, c->of, step))
        return qn__refuse(
            v, "cut %s: its iterations need not be a multiple of %lld, and it has no tail",
            name.name, (long long)step);
    if (c->tail == QN_TAIL_OVERLAP && !may_overlap(v, c, step))
        return qn__refuse(v,
                          "cut %s: steps of %lld may not overlap, as iterations may not run twice, "
                          "or are too few",
                          name.name, (long long)step);
    return true;
}

/** Whether an axis is made of axes before it. */
static bool is_formed(const qn_schedule *s, uint16_t n)
{
    const qn_axis_info *a = &s->axis[n];
    if (a->kind == QN_AXIS_PART)
        return a->cut < s->n_cuts && s->cut[a->cut].of.id == a->of.id &&
               a->number < s->cut[a->cut].n && s->cut[a->cut].first.id + a->number == n &&
               a->of.id < n && a->of.id;
    return a->kind == QN_AXIS_DIM || a->kind == QN_AXIS_POINT || a->kind == QN_AXIS_TRIP;
}

bool qn__verify_axes(qn_verifier *v)
{
    const qn_schedule *s = v->s;
    for (int c = 0; c < s->n_cuts; c++)
        if (!verify_shape(v, &s->cut[c]))
            return false;
    for (uint16_t n = 1; n <= s->n_axes; n++)
        if (!is_formed(s, n))
            return qn__refuse(v, "axis number %d: it is made of nothing that can be walked so", n);
    for (uint16_t n = 1; n <= s->n_axes; n++)
        if (s->axis[n].kind < QN_AXIS_PART && !verify_root(v, (qn_axis){n}))
            return false;
    for (int c = 0; c < s->n_cuts; c++)
        if (!verify_cut(v, &s->cut[c]))
            return false;
    return true;
}

/* ---------------------------------------------------------------- buffers */

static const int64_t most_bytes[QN_N_STORAGES] = {[QN_STORAGE_REGISTERS] = 64 * 256,
                                                  [QN_STORAGE_FRAME] = 1 << 16,
                                                  [QN_STORAGE_SCRATCH] = 1 << 26};

/** Whether every reduce around access i has points: else all that is inside counts as in range. */
static bool has_points(const qn_verifier *v, uint32_t i)
{
    const qn_kernel *k = v->x->k;
    for (uint32_t up = qn__enclosing_reduce(k, i); up; up = qn__enclosing_reduce(k, up))
        for (int n = 0; n < k->inst[up].n_args; n++)
            if (!qn__is_at_least(v->x->f, qn__dim_of(k, up, n), 1))
                return false;
    return true;
}

/** Whether every iteration performs access i: it stands in no branch and no loop of the body, and
 * reduces around it have points. Else no element need be in range. */
static bool is_performed(const qn_verifier *v, uint32_t i)
{
    const qn_kernel *k = v->x->k;
    for (uint32_t up = k->inst[i].parent; up; up = k->inst[up].parent)
        if (k->inst[up].op != QN_I_REDUCE)
            return false;
    return has_points(v, i);
}

/** Whether the elements that access i may meet are in range, also where no iteration meets them. */
static bool is_in_range(const qn_verifier *v, uint32_t i)
{
    uint32_t site = qn__site_of(v->x->k, i);
    return qn__is_in_range(v->x->f, site)
               ? has_points(v, i)
               : !qn__is_checked(v->x->f, v->x->k, site) && is_performed(v, i);
}

/** Whether each iteration reads by a load what is in memory before the iteration: no other one
 * writes that, and the load stands before all that writes. */
static bool is_read_first(const qn_verifier *v, uint32_t load)
{
    const qn_kernel *k = v->x->k;
    FOR_ACCESSES (k, n, i)
        if (i < load && k->inst[i].op != QN_I_LOAD)
            return false;
    return !k->inst[load].parent && !v->x->f->is_ordered && qn__n_sequential(k) == 0;
}

/** Whether nothing that comes after a store meets the element: so the element may get there later.
 * Other iterations have other elements, but for those of sequential dimensions. */
static bool is_met_last(const qn_verifier *v, uint32_t store)
{
    const qn_kernel *k = v->x->k;
    bool is_in_steps = qn__n_sequential(k) > 0;
    int64_t apart;
    FOR_ACCESSES (k, n, i) {
        if (i == store || (i < store && !is_in_steps) ||
            !qn__may_meet(v->x, k->inst[store].imm, k->inst[i].imm))
            continue;
        bool is_apart = k->inst[i].imm == k->inst[store].imm && !is_in_steps &&
                        qn__elements_apart(v->x, store, i, &apart) && apart != 0;
        if (!is_apart)
            return false;
    }
    return true;
}

/** Whether the instruction of a buffer is what its content needs. */
static bool fits_content(const qn_verifier *v, const qn_buffer_info *b)
{
    const qn_kernel *k = v->x->k;
    if (b->inst < k->body || b->inst >= k->n_insts)
        return false;
    const qn_inst *x = &k->inst[b->inst];
    const qn_kernel_parameter *p = qn__is_access(x) ? &k->param[x->imm] : NULL;
    bool is_plain = p && !(p->traits & QN_ATOMIC) && qn__is_known_ahead(k, b->inst);
    switch (b->content) {
    case QN_CONTENT_COPY: /* elements that nobody writes meanwhile */
        return x->op == QN_I_LOAD && is_plain &&
               (!qn__is_written_too(v->x, x->imm) || is_read_first(v, b->inst)) &&
               is_in_range(v, b->inst);
    case QN_CONTENT_ENDS:
        return x->op == QN_I_STORE && is_plain && !p->is_read && !p->has_atomics && !x->parent &&
               !qn__is_checked(v->x->f, k, qn__site_of(k, b->inst)) && !v->x->f->is_ordered &&
               qn__may_have_ends(v->x, b->inst) && is_met_last(v, b->inst);
    default:
        return x->op == QN_I_REDUCE;
    }
}

bool qn__verify_buffers(qn_verifier *v)
{
    int64_t total[QN_N_STORAGES] = {0};
    for (int n = 0; n < v->s->n_buffers; n++) {
        const qn_buffer_info *b = &v->s->buffer[n];
        if (b->content >= QN_N_CONTENTS || b->storage >= QN_N_STORAGES ||
            b->n_axes > QN_MOST_BUFFER_AXES || !fits_content(v, b))
            return qn__refuse(v, "b%d: instruction %%%u cannot be kept so", n, b->inst);
        const qn_inst *x = &v->x->k->inst[b->inst];
        int64_t bytes =
            qn__is_access(x) ? qn__access_bytes(v->x->k, b->inst) : qn_dtype_bytes(x->type);
        for (int a = 0; a < b->n_axes; a++) {
            qn_count count = qn__axis_count(v->x, v->s, b->axis[a]);
            if (!b->axis[a].id || b->axis[a].id > v->s->n_axes || count.most == INT64_MAX ||
                __builtin_mul_overflow(bytes, count.most, &bytes))
                return qn__refuse(v, "b%d: its size is not known", n);
            for (int m = 0; m < a; m++)
                if (b->axis[m].id == b->axis[a].id)
                    return qn__refuse(v, "b%d: an axis stands in it twice", n);
        }
        if (bytes != b->bytes)
            return qn__refuse(v, "b%d: it has %lld bytes, not %lld", n, (long long)bytes,
                              (long long)b->bytes);
        int64_t most = most_bytes[b->storage];
        if (bytes > most || (total[b->storage] += bytes) > most)
            return qn__refuse(v, "b%d: %lld bytes are more than %s hold", n, (long long)bytes,
                              qn__storage_names[b->storage]);
    }
    return true;
}

bool qn__verify_through(qn_verifier *v, qn_node at, int buffer, qn_node fill)
{
    const qn_buffer_info *b = &v->s->buffer[buffer];
    qn_node around = b->content == QN_CONTENT_ENDS ? qn__verify_steps(v, at, buffer, fill)
                                                   : qn__node(v->s, fill)->parent;
    uint32_t deps = qn__moving_dims(v->x, b->inst), found = 0;
    if (v->status != QN_OK)
        return false;
    qn_node n = at;
    for (; n.id && n.id != around.id; n = qn__node(v->s, n)->parent) {
        const qn_node_info *l = qn__node(v->s, n);
        int place = qn__buffer_place(b, l->axis);
        if (l->kind != QN_NODE_LOOP)
            continue;
        found |= place >= 0 ? UINT32_C(1) << place : 0;
        bool is_own = l->role == QN_ROLE_THREADS && b->content == QN_CONTENT_COPY; /* of a chunk */
        if (!is_own && (l->role == QN_ROLE_THREADS || l->role == QN_ROLE_GRID))
            return qn__refuse(v, "b%d: threads inside its %s divide loop %s", buffer,
                              b->content == QN_CONTENT_COPY ? "fill" : "flush",
                              qn__axis_text(v, l->axis).name);
        if (place < 0 && (deps & qn__axis_dims(v->x, v->s, l->axis)))
            return qn__refuse(v, "b%d: it is not over loop %s, which moves %%%u", buffer,
                              qn__axis_text(v, l->axis).name, b->inst);
    }
    if (n.id != around.id)
        return qn__refuse(v, "b%d: a statement that uses it is outside of where it is valid",
                          buffer);
    for (n = at; n.id; n = qn__node(v->s, n)->parent)
        deps &= ~qn__axis_dims(v->x, v->s, qn__node(v->s, n)->axis);
    if (deps)
        return qn__refuse(v, "b%d: points that no loop walks move %%%u", buffer, b->inst);
    return found == (UINT32_C(1) << b->n_axes) - 1 ||
           qn__refuse(v, "b%d: it is over an axis without a loop around its use", buffer);
}

/* ---------------------------------------------------------------- reductions */

bool qn__verify_reduction(qn_verifier *v, const qn_node_info *place)
{
    const qn_kernel *k = v->x->k;
    const qn_reduced *r = &v->s->reduction[place->index];
    if (r->n < 1 || r->n > QN_MOST_TUPLE || r->buffer > v->s->n_buffers)
        return qn__refuse(v, "place: it has no reduces");
    for (int m = 0; m < r->n; m++) {
        uint32_t i = r->inst[m];
        if (i < k->body || i >= k->n_insts ||
            (k->inst[i].op != QN_I_REDUCE && !qn__is_body_loop(k, i)))
            return qn__refuse(v, "place %%%u: this is no reduce and no loop", i);
        if (m > 0 && (k->inst[i].op != QN_I_REDUCE || k->inst[r->inst[0]].op != QN_I_REDUCE ||
                      i <= r->inst[m - 1] || !qn__have_one_range(k, r->inst[0], i)))
            return qn__refuse(v, "place %%%u: it is not over the dimensions of %%%u", i,
                              r->inst[0]);
        int rule = k->inst[i].op == QN_I_REDUCE ? qn__order_rule(k, i) : QN_POINTS_ORDERED;
        if (r->order != rule)
            return qn__refuse(v, "place %%%u: its order rule is %s", i, qn__points_names[rule]);
    }
    if (r->n > 1 && !qn__may_be_tuple(v->x, r->n, r->inst))
        return qn__refuse(v,
                          "place %%%u: its reduces may fail, or need something of one another, or "
                          "of what stands between them",
                          r->inst[0]);
    if (r->buffer && (v->s->buffer[r->buffer - 1].inst != r->inst[0] ||
                      v->s->buffer[r->buffer - 1].content != QN_CONTENT_SUMS))
        return qn__refuse(v, "place %%%u: b%d holds no sums of it", r->inst[0], r->buffer - 1);
    return true;
}

/* ---------------------------------------------------------------- access records */

/** Whether another load, or store, of the statement has the number of r, and all that have it are
 * one group. */
static bool verify_group(const qn_verifier *v, const qn_record_info *r)
{
    qn_group group;
    bool has_other = false;
    const qn_analysis *x = v->x;
    int d = qn__axis_dim(x, v->s, qn__node(v->s, qn__vector_around(v->s, r->at))->axis);
    if (!qn__group_of(x, d, r->inst, &group))
        return false;
    for (int n = 0; n < v->s->n_records; n++) {
        const qn_record_info *o = &v->s->record[n];
        if (o->at.id != r->at.id || o->is_tail != r->is_tail || o->method != QN_METHOD_GROUP ||
            o->index != r->index || o->inst == r->inst || o->inst >= x->k->n_insts ||
            x->k->inst[o->inst].op != x->k->inst[r->inst].op)
            continue;
        if (!qn__is_of_group(x, d, o->inst, &group))
            return false;
        has_other = true;
    }
    return has_other;
}

static bool verify_method(qn_verifier *v, const qn_record_info *r)
{
    qn_record_info d = {.at = r->at, .inst = r->inst, .is_tail = r->is_tail};
    const qn_kernel *k = v->x->k;
    qn__record_derive(v->x, v->s, &d);
    bool is_strided = d.method == QN_METHOD_STRIDED || d.method == QN_METHOD_GROUP;
    bool is_right = d.method == r->method && d.stride == r->stride && r->index == 0;
    if (r->method == QN_METHOD_STRIDED)
        is_right = is_strided && d.stride == r->stride && r->index == 0;
    else if (r->method == QN_METHOD_GATHER)
        is_right = r->index == 0 && r->stride == 0;
    else if (r->method == QN_METHOD_GROUP)
        is_right = d.method == QN_METHOD_GROUP && d.stride == r->stride;
    else if (r->method == QN_METHOD_TABLE)
        is_right = k->inst[r->inst].op == QN_I_LOAD && r->index &&
                   qn__table_registers(v->x, r->inst) == r->index;
    if (is_right && r->method == QN_METHOD_GROUP && !verify_group(v, r))
        return qn__refuse(v, "access %%%u: group %d is not its own", r->inst, r->index);
    if (r->method != QN_METHOD_THROUGH)
        return is_right || qn__refuse(v, "access %%%u: it is not %s there, but %s", r->inst,
                                      qn__method_names[r->method], qn__method_names[d.method]);
    int b = r->index - 1;
    if (b < 0 || b >= v->s->n_buffers || v->s->buffer[b].inst != r->inst ||
        k->inst[r->inst].op == QN_I_ATOMIC)
        return qn__refuse(v, "access %%%u: no such buffer of it", r->inst);
    if (v->s->buffer[b].content == QN_CONTENT_ENDS) {
        v->is_pending[b] = true;
        return true;
    }
    if (v->s->buffer[b].content != QN_CONTENT_COPY || !v->is_filled[b])
        return qn__refuse(v, "access %%%u: b%d is not filled before", r->inst, b);
    return qn__verify_through(v, r->at, b, v->filled_at[b]);
}

static bool is_on_path(const qn_verifier *v, qn_axis a)
{
    for (int n = 0; n < v->n_path; n++)
        if (a.id && qn__node(v->s, v->path[n])->axis.id == a.id)
            return true;
    return false;
}

static bool verify_check(qn_verifier *v, const qn_record_info *r)
{
    uint32_t site = qn__site_of(v->x->k, r->inst);
    bool is_in = qn__is_in_range(v->x->f, site);
    bool is_unchecked = !is_in && !qn__is_checked(v->x->f, v->x->k, site);
    bool is_right = r->check == QN_CHECK_PROVED      ? is_in
                    : r->check == QN_CHECK_UNCHECKED ? is_unchecked
                                                     : r->check == QN_CHECK_PER_LANE;
    return is_right || qn__refuse(v, "access %%%u: it is not %s", r->inst,
                                  r->check < QN_N_CHECKS ? qn__check_names[r->check] : "a check");
}

static bool verify_marks(qn_verifier *v, const qn_record_info *r)
{
    if (r->is_single && r->method != QN_METHOD_STRIDED && r->method != QN_METHOD_GROUP &&
        r->method != QN_METHOD_THROUGH)
        return qn__refuse(v, "access %%%u: its lanes are not a known number of elements apart",
                          r->inst);
    const qn_inst *x = &v->x->k->inst[r->inst];
    const qn_kernel_parameter *p = &v->x->k->param[x->imm];
    bool is_line = r->method == QN_METHOD_CONTIGUOUS || r->method == QN_METHOD_THROUGH;
    if (r->streams && (x->op != QN_I_STORE || !is_line || p->is_read || p->has_atomics ||
                       (p->traits & QN_ATOMIC) || x->parent ||
                       qn__is_checked(v->x->f, v->x->k, qn__site_of(v->x->k, r->inst))))
        return qn__refuse(v,
                          "access %%%u: no store of whole vectors on every iteration, to a view "
                          "that is only written",
                          r->inst);
    if (r->is_plain && (x->op != QN_I_ATOMIC || v->x->f->atomics == QN_ATOMICS_OF_ALL ||
                        qn__has_threads(v->s)))
        return qn__refuse(v, "access %%%u: other threads may meet the element of this atomic",
                          r->inst);
    return !r->ahead || (r->ahead > 0 && is_on_path(v, r->along)) ||
           qn__refuse(v, "access %%%u: the axis ahead of which it asks has no loop around it",
                      r->inst);
}

/** Whether what is said to be flat is members of a group of stores all of which are, or loads that
 * only these use. */
static bool verify_flat(qn_verifier *v, qn_node at)
{
    uint8_t *is_flat = NULL;
    uint32_t wrong = 0;
    for (int n = 0; n < v->s->n_records && !wrong; n++) {
        const qn_record_info *r = &v->s->record[n];
        if (r->at.id != at.id || !r->is_flat)
            continue;
        if (!is_flat) {
            if (!(is_flat = qn__alloc(v->x->k->n_insts)))
                return qn__refuse(v, "no memory");
            qn__find_flat(v->x, v->s, at, true, is_flat);
        }
        wrong = r->is_tail || r->method != QN_METHOD_GROUP || !is_flat[r->inst] ? r->inst : 0;
    }
    qn__free(is_flat);
    return !wrong || qn__refuse(v, "access %%%u: it is not of a flat group there", wrong);
}

bool qn__verify_records(qn_verifier *v, qn_node at)
{
    const qn_kernel *k = v->x->k;
    const qn_node_info *n = qn__node(v->s, at);
    memset(v->seen + n->first, 0, n->end - n->first);
    for (int i = 0; i < v->s->n_records; i++) {
        const qn_record_info *r = &v->s->record[i];
        if (r->at.id != at.id)
            continue;
        if (r->inst < n->first || r->inst >= n->end || !qn__is_access(&k->inst[r->inst]) ||
            r->method >= QN_N_METHODS || (v->seen[r->inst] >> r->is_tail & 1) || r->is_tail > 1)
            return qn__refuse(
                v, "access %%%u: the statement has no such access, or two records of it", r->inst);
        v->seen[r->inst] |= (uint8_t)(1 << r->is_tail);
        if (!verify_method(v, r) || !verify_check(v, r) || !verify_marks(v, r))
            return false;
    }
    for (uint32_t i = n->first; i < n->end; i++)
        if (qn__is_access(&k->inst[i]) && !(v->seen[i] & 1))
            return qn__refuse(v, "access %%%u: it has no record", i);
    return verify_flat(v, at);
}
