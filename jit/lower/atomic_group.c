/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic_group.c: atomics that stand together, to elements of one view that are a constant apart,
 * whose old values nobody uses: a particle that adds to the nodes around it. Where one thread runs
 * the launch, and no lane is masked or out of range, the lanes have their turns with all of them:
 * the offset of a lane is the same for all, and neighbours are one vector. Each iteration is then
 * done before the next one begins.
 */
#include "jit/lower/atomic.h"

/* Elements of one instruction, and instructions that are emitted without a loop. */
enum { MOST_MEMBERS = 16, MOST_RUN = 4, MOST_STRAIGHT = 64 };

typedef struct member {
    uint32_t inst;
    check c;
    LLVMValueRef value;
    int64_t constant; /* bytes from where the lanes begin */
} member;

typedef struct group {
    int p, n, n_runs;
    member m[MOST_MEMBERS];
    run r[MOST_MEMBERS]; /* elements that follow one another; what lanes bring is side by side */
    address first;       /* of the lanes of member 0, without its displacement */
} group;

/* ---------------------------------------------------------------- members */

/** Whether two accesses of one view are a constant number of bytes apart in every lane. */
static bool is_constant_apart(const lower *g, uint32_t a, uint32_t b)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[a].imm];
    if (g->k->inst[a].imm != g->k->inst[b].imm)
        return false;
    for (int r = 0; r < qn__n_indices(g->k, a); r++) {
        const qn_affine *x = &g->a.affine[qn__args(g->k, a)[r]],
                        *y = &g->a.affine[qn__args(g->k, b)[r]];
        const qn_dim_fact *dim = &param->dim[r];
        if (dim->n_digits > 1 ||
            (dim->n_digits == 1 && g->f->digit[dim->first_digit].stride.kind != QN_FACT_EXACT))
            return false;
        if (dim->n_digits && !qn__differ_by_constant(x, y))
            return false;
    }
    return true;
}

static bool may_be_member(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    return x->op == QN_I_ATOMIC && x->sub != QN_COMBINE_COMPARE_EXCHANGE && !qn__is_update(x) &&
           !qn__is_used(g->k, i) && g->f->param[x->imm].checks != QN_CHECKS_CLAMP;
}

/** Those from i on that may go together: nothing but pure instructions, which are emitted where
 * they are used, stands between them. How many. */
static int find_members(const lower *g, uint32_t i, uint32_t end, group *of)
{
    of->n = 0;
    for (uint32_t at = i;
         at < end && of->n < MOST_MEMBERS && (of->n + 1) * g->width <= MOST_SHUFFLED;
         at++) {
        const qn_inst *x = &g->k->inst[at];
        if (qn__is_pure(x) || x->op == QN_I_CONST)
            continue;
        if (!may_be_member(g, at) || !is_constant_apart(g, i, at))
            break;
        of->m[of->n++] = (member){.inst = at};
    }
    return of->n;
}

/** Where the lanes are, and each member from there; false if lanes differ by more than their
 * offsets. */
static bool find_places(lower *g, group *of)
{
    for (int n = 0; n < of->n; n++) {
        address x;
        qn__make_address(g, of->m[n].inst, of->p, NULL, &x);
        of->first = n ? of->first : x;
        if (x.kind != ADDRESS_LANES || x.pointer != of->first.pointer)
            return false;
        of->m[n].constant = x.constant;
    }
    return true;
}

/* ---------------------------------------------------------------- neighbours */

/** The values of n members, those of a lane side by side. */
static LLVMValueRef interleave(lower *g, const LLVMValueRef *v, int n)
{
    int index[MOST_SHUFFLED];
    if (n == 1)
        return v[0];
    int width = g->width * n / 2;
    LLVMValueRef half[2] = {v[0], v[1]};
    if (n == MOST_RUN) { /* (0, 2) and (1, 3), then these */
        const LLVMValueRef even[2] = {v[0], v[2]}, odd[2] = {v[1], v[3]};
        half[0] = interleave(g, even, 2);
        half[1] = interleave(g, odd, 2);
    }
    for (int lane = 0; lane < width; lane++) {
        index[2 * lane] = lane;
        index[2 * lane + 1] = width + lane;
    }
    return qn__shuffle(g, half[0], half[1], index, 2 * width);
}

static bool is_next(const lower *g, const member *a, const member *b)
{
    const qn_inst *x = &g->k->inst[a->inst], *y = &g->k->inst[b->inst];
    int64_t bytes = qn_dtype_bytes(x->type);
    return x->sub == y->sub && bytes >= 4 && b->constant == a->constant + bytes;
}

/** Elements of the run that begins with member `first`: a power of two. */
static int run_length(const lower *g, const group *of, int first)
{
    int n = 1;
    while (n < MOST_RUN && first + n < of->n &&
           is_next(g, &of->m[first + n - 1], &of->m[first + n]))
        n++;
    return n == 3 ? 2 : n;
}

/** Puts the values of all members where their lanes take them from. */
static void keep_runs(lower *g, group *of)
{
    int64_t at = 0;
    if (!g->group_buffer)
        g->group_buffer =
            qn__new_buffer(g,
                           (uint64_t)MOST_SHUFFLED * MOST_LANE_BYTES + MOST_MEMBERS * LINE_BYTES,
                           LINE_BYTES);
    of->n_runs = 0;
    for (int first = 0, n; first < of->n; first += n) {
        const member *m = &of->m[first];
        const qn_inst *x = &g->k->inst[m->inst];
        LLVMValueRef values[MOST_RUN];
        n = run_length(g, of, first);
        run *r = &of->r[of->n_runs++];
        *r = (run){.constant = m->constant};
        r->u = (update){.inst = m->inst, .dtype = x->type, .combine = x->sub, .is_plain = true};
        for (int i = 0; i < n; i++)
            values[i] = qn__as_bits(g, x->type, of->m[first + i].value);
        r->values = qn__keep_lanes(g, qn__ahead(g, g->group_buffer, at), interleave(g, values, n));
        if (n > 1) { /* a lane's are one */
            r->values.align =
                LINE_BYTES < (unsigned)n * r->values.align ? LINE_BYTES
                                                           : (unsigned)n * r->values.align;
            r->values.type = LLVMVectorType(r->values.type, (unsigned)n);
        }
        at += (qn_dtype_bytes(x->type) * n * g->width + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    }
}

/* ---------------------------------------------------------------- turns */

static void update_together(lower *g, group *of)
{
    keep_runs(g, of);
    turns t = {.x = &of->first,
               .of = of->r,
               .n = of->n_runs,
               .is_straight = of->n_runs * g->width <= MOST_STRAIGHT};
    qn__keep_offsets(g, &t);
    qn__take_turns(g, &t);
}

/** Where some lane is out of range, or other threads meet the elements. */
static void update_each(lower *g, const group *of)
{
    bool is_cold = g->is_cold;
    g->is_cold = true;
    for (int n = 0; n < of->n; n++) {
        expression e;
        if (!qn__expression_open(g, &e, of->m[n].inst, of->p))
            break;
        qn__update_lanes(g, of->m[n].inst, of->p, &of->m[n].c, &e);
        qn__expression_close(&e);
    }
    g->is_cold = is_cold;
}

/** Whether all lanes are in range and no other thread meets the elements; NULL: it is known. */
static LLVMValueRef may_go_together(lower *g, const group *of)
{
    LLVMValueRef lanes = NULL, all = g->alone;
    for (int n = 0; n < of->n; n++) {
        const check *c = &of->m[n].c;
        if (c->is_needed && c->is_vector)
            lanes = qn__mask_and(g, lanes, c->ok);
        else if (c->is_needed)
            all = qn__mask_and(g, all, c->ok);
    }
    return qn__mask_and(g, all, lanes ? qn__every(g, lanes) : NULL);
}

/** One part of the members, which find_places found. */
static void update_part(lower *g, group *of)
{
    for (int n = 0; n < of->n; n++) {
        member *m = &of->m[n];
        const uint32_t *arg = qn__args(g->k, m->inst);
        m->c = qn__make_check(g, m->inst, of->p);
        m->value = qn__vector(g, arg[qn__n_indices(g->k, m->inst)], of->p);
        qn__set(g, m->inst, of->p, LLVMConstNull(LLVMTypeOf(m->value)), g->depth);
    }
    LLVMValueRef condition = may_go_together(g, of);
    if (!condition) {
        update_together(g, of);
        return;
    }
    branch x = qn__begin_choice(g, condition, "group", "each");
    qn__mark_likely(g, LLVMGetBasicBlockTerminator(x.from));
    update_together(g, of);
    qn__begin_other(g, &x);
    update_each(g, of);
    qn__end_branch(g, &x, NULL);
}

uint32_t qn__update_group(lower *g, uint32_t i, uint32_t end)
{
    group of = {0};
    if (g->width == 1 || g->block->atomics == QN_ATOMICS_OF_ALL || !may_be_member(g, i) ||
        find_members(g, i, end, &of) < 2)
        return 0;
    FOR_PARTS(g, p)
        if (g->mask[p])
            return 0;
    if (!find_places(g, &of))
        return 0;
    FOR_PARTS (g, p) {
        of.p = p;
        if (p > 0 && !find_places(g, &of)) /* other parts have the same terms */
            g->failed = true;
        update_part(g, &of);
    }
    return of.m[of.n - 1].inst;
}
