/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c: stores through atomic views. A stored expression of loads of the very element that is
 * stored (equal index values) is one atomic update: all these loads mean what the update finds,
 * everything else is computed before. It becomes the atomic of a combination where one does the
 * same, else an atomic with a region (QN_UPDATE, see ir.h). A store of any other value is a store.
 *
 * Relies on equal values having equal numbers, and on loads through atomic views never being
 * shared. What is stored and depends on the element in another way is left to check_updates.c.
 */
#include "ir/build/builder.h"

/** A store under examination. */
typedef struct update {
    qn_builder *b;
    const char *who;
    qn_param view;
    int n;                          /* indices */
    uint32_t index[QN_MAX_RANK];
    uint32_t value;                 /* what is stored */
    uint32_t old; /* the last load of the element among its parts; 0: there is none */
    int n_loads;                    /* of them */
    bool is_stale;                  /* the element was stored after one of them */
    uint8_t *part; /* [value + 1]: 1 for loads through atomic views and what is made of them */
    uint8_t *needs;                 /* from instruction `old` on: 1 for what is made of the load */
} update;

bool qn__is_element(const qn_builder *b, uint32_t access, uint64_t view, int n,
                    const uint32_t *index)
{
    const qn_inst *x = &b->inst[access];
    if ((x->op != QN_I_LOAD && x->op != QN_I_STORE && x->op != QN_I_ATOMIC) || x->imm != view)
        return false;
    for (int d = 0; d < n; d++)
        if (qn__builder_args(b, access)[d] != index[d])
            return false;
    return true;
}

static bool is_element(const update *u, uint32_t access)
{
    return qn__is_element(u->b, access, u->view.id - 1, u->n, u->index);
}

/** Whether instruction i stands in the branch that is not taken here, of an `if` whose other branch
 * is open. */
static bool is_in_other_branch(const qn_builder *b, uint32_t i)
{
    for (int d = 0; d < b->depth; d++)
        if (b->frame[d].op == QN_I_IF && b->frame[d].stage == 1 && i > b->frame[d].inst &&
            i < b->frame[d].begin)
            return true;
    return false;
}

/** Whether the element may have been stored since it was loaded: by a store between, or by an
 * earlier trip of a loop that began after the load. */
static bool is_stale(const update *u, uint32_t load)
{
    const qn_builder *b = u->b;
    for (int d = 0; d < b->depth; d++)
        if ((b->frame[d].op == QN_I_FOR || b->frame[d].op == QN_I_WHILE) && load < b->frame[d].inst)
            return true;
    for (uint32_t i = load + 1; i < b->n_insts && b->note[load].version != b->version; i++)
        if (b->inst[i].op != QN_I_LOAD && is_element(u, i) && !is_in_other_branch(b, i))
            return true;
    return false;
}

/** Marks the parts of the value and finds the loads of the element among them. False: there are
 * none. */
static bool find_loads(update *u)
{
    const qn_builder *b = u->b;
    if (!b->note[u->value].has_atomic_load)
        return false;
    u->part = qn__zalloc((size_t)u->value + 1, 1);
    if (!u->part) {
        qn__builder_fail(u->b, QN_ERR_MEMORY, "%s: out of memory", u->who);
        return false;
    }
    u->part[u->value] = 1;
    int n_left = 1;
    for (uint32_t i = u->value; n_left > 0; i--) {
        if (!u->part[i])
            continue;
        n_left--;
        if (b->inst[i].op == QN_I_LOAD) {
            if (is_element(u, i)) {
                u->old = u->old ? u->old : i;
                u->n_loads++;
                b->note[i].is_kept = false; /* the update performs it */
                u->is_stale = u->is_stale || is_stale(u, i);
            }
            continue;
        }
        for (int a = 0; a < b->inst[i].n_args; a++) {
            uint32_t arg = qn__builder_args(b, i)[a];
            bool is_new = b->note[arg].has_atomic_load && !u->part[arg];
            u->part[arg] |= is_new;
            n_left += is_new;
        }
    }
    return u->old != 0;
}

/* ---------------------------------------------------------------- one load for all */

/** A pure instruction again, of other operands: folded, numbered, and total where a division is by
 * 0 now. */
static uint32_t append_again(qn_builder *b, const char *who, const qn_inst *x, const uint32_t *args)
{
    if (x->op == QN_I_CAST)
        return qn__append_cast(b, who, x->type, args[0]);
    if (x->op == QN_I_BITCAST)
        return qn__append_bitcast(b, who, x->type, args[0]);
    if (x->op == QN_I_LOOKUP)
        return qn__append_lookup(b, who, (uint32_t)x->imm + 1, args[0]);
    int op = qn__pure(x);
    bool divides = (op == QN_OP_div || op == QN_OP_rem) && qn__is_integer(x->type);
    if (divides && qn__is_constant(b, args[1]) && b->inst[args[1]].imm == 0)
        return op == QN_OP_rem ? args[0] : args[1];
    return qn__append_op(b, who, op, args);
}

/** The value with the last load in the place of all loads of the element; 0 after an error. */
static uint32_t with_one_load(const update *u)
{
    qn_builder *b = u->b;
    uint32_t *copy = qn__zalloc((size_t)u->value + 1, sizeof *copy);
    if (!copy) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", u->who);
        return 0;
    }
    for (uint32_t i = 1; i <= u->value; i++) {
        const qn_inst x = b->inst[i];
        uint32_t args[3] = {0};
        bool is_other = false;
        copy[i] = i;
        if (!u->part[i])
            continue;
        if (x.op == QN_I_LOAD) {
            copy[i] = is_element(u, i) ? u->old : i;
            continue;
        }
        for (int a = 0; a < x.n_args && a < 3; a++) {
            args[a] = copy[qn__builder_args(b, i)[a]];
            is_other = is_other || args[a] != qn__builder_args(b, i)[a];
        }
        copy[i] = is_other ? append_again(b, u->who, &x, args) : i;
        if (copy[i] == 0)
            break;
    }
    uint32_t value = copy[u->value];
    qn__free(copy);
    return value;
}

/** Marks in u->needs what is made of the load of the element. */
static bool find_needs(update *u)
{
    const qn_builder *b = u->b;
    u->needs = qn__zalloc(b->n_insts - u->old, 1);
    if (!u->needs) {
        qn__builder_fail(u->b, QN_ERR_MEMORY, "%s: out of memory", u->who);
        return false;
    }
    u->needs[0] = 1;
    for (uint32_t i = u->old + 1; i < b->n_insts; i++)
        for (int a = 0; qn__is_pure(&b->inst[i]) && a < b->inst[i].n_args; a++) {
            uint32_t arg = qn__builder_args(b, i)[a];
            u->needs[i - u->old] |= arg >= u->old && u->needs[arg - u->old];
        }
    return true;
}

static bool needs_old(const update *u, uint32_t i)
{
    return i >= u->old && u->needs[i - u->old];
}

/* ---------------------------------------------------------------- combinations */

/** fma(x, y, load of the element) of a contracting kernel: x * y, which is added. 0: not such a
 * value. */
static uint32_t contracted_value(const update *u)
{
    qn_builder *b = u->b;
    const uint32_t *operand = qn__builder_args(b, u->value);
    if (!(b->flags & QN_CONTRACT) || operand[2] != u->old || needs_old(u, operand[0]) ||
        needs_old(u, operand[1]))
        return 0;
    uint32_t factor[2] = {operand[0], operand[1]};
    return qn__append_op(b, u->who, QN_OP_mul, factor);
}

/** An f16 or bf16 that an f32 was cast from, or a constant that is one; 0: it may have more bits.
 */
static uint32_t half_of(const update *u, uint32_t x)
{
    qn_builder *b = u->b;
    int dtype = b->param[u->view.id - 1].dtype;
    if (b->inst[x].op == QN_I_CAST && b->inst[qn__builder_args(b, x)[0]].type == dtype)
        return qn__builder_args(b, x)[0];
    if (b->inst[x].op != QN_I_CONST)
        return 0;
    uint32_t half = qn__append_cast(b, u->who, dtype, x);
    return half && qn__append_cast(b, u->who, QN_F32, half) == x
               ? half
               : 0; /* equal values have one number */
}

/** combined_value of f16 and bf16, whose ops were expanded to those of f32 (build/half.c). */
static uint32_t combined_half(const update *u, int *combine)
{
    qn_builder *b = u->b;
    int dtype = b->param[u->view.id - 1].dtype;
    if (b->inst[u->value].op != QN_I_CAST)
        return 0;
    uint32_t wide = qn__builder_args(b, u->value)[0];
    int op = qn__pure(&b->inst[wide]);
    *combine = op == QN_OP_sub ? QN_COMBINE_SUM : qn__combine_of_op(op);
    if (b->inst[wide].type != QN_F32 || *combine < 0 ||
        half_of(u, qn__builder_args(b, wide)[0]) != u->old ||
        needs_old(u, qn__builder_args(b, wide)[1]))
        return 0;
    uint32_t second = half_of(u, qn__builder_args(b, wide)[1]);
    return op == QN_OP_sub && second ? qn__append_half_op(b, u->who, QN_OP_neg, dtype, &second)
                                     : second;
}

/**
 * What the stored value combines with the element, and how; 0 if that is no combination. The load
 * is the first operand, or the second of an integer op. load - v is a sum with -v, which is exact.
 * Products that were contracted before the parameter became atomic (variant.c) are taken apart
 * again.
 */
static uint32_t combined_value(const update *u, int *combine)
{
    qn_builder *b = u->b;
    int dtype = b->param[u->view.id - 1].dtype;
    if (qn__is_half(dtype))
        return combined_half(u, combine);
    const uint32_t *operand = qn__builder_args(b, u->value);
    int op = qn__pure(&b->inst[u->value]);
    *combine = op == QN_OP_sub || op == QN_OP_fma ? QN_COMBINE_SUM : qn__combine_of_op(op);
    if (op == QN_OP_fma)
        return contracted_value(u);
    if (*combine < 0)
        return 0;
    uint32_t first = operand[0], second = operand[1];
    if (first == u->old && !needs_old(u, second))
        return op == QN_OP_sub ? qn__append_op(b, u->who, QN_OP_neg, &second) : second;
    bool is_integer = qn__dtype_class(dtype) != QN_CLASS_F;
    return op != QN_OP_sub && is_integer && second == u->old && !needs_old(u, first) ? first : 0;
}

/* ---------------------------------------------------------------- regions */

/** Leaves in u->needs what the value is made of. */
static void keep_parts(const update *u)
{
    const qn_builder *b = u->b;
    uint8_t *needs = u->needs;
    enum { IS_PART = 2 };
    needs[u->value - u->old] |= IS_PART;
    for (uint32_t i = u->value; i > u->old; i--)
        for (int a = 0; needs[i - u->old] & IS_PART && a < b->inst[i].n_args; a++) {
            uint32_t arg = qn__builder_args(b, i)[a];
            if (needs_old(u, arg))
                needs[arg - u->old] |= IS_PART;
        }
    for (uint32_t i = u->old; i <= u->value; i++)
        needs[i - u->old] = (needs[i - u->old] & IS_PART) != 0;
}

/** Appends copies of the parts of the value; `copy` is [value - old + 1]. Returns the number of the
 * value's. */
static uint32_t append_parts(const update *u, uint32_t *copy)
{
    qn_builder *b = u->b;
    qn_inst old = {.op = QN_I_CARRIED, .type = b->inst[u->old].type};
    copy[0] = qn__append(b, u->who, old, 0, NULL);
    for (uint32_t i = u->old + 1; i <= u->value && copy[0]; i++) {
        const qn_inst x = b->inst[i];
        uint32_t args[3] = {0};
        if (!u->needs[i - u->old])
            continue;
        for (int a = 0; a < x.n_args && a < 3; a++) {
            uint32_t arg = qn__builder_args(b, i)[a];
            args[a] = arg >= u->old && u->needs[arg - u->old] ? copy[arg - u->old] : arg;
        }
        copy[i - u->old] = qn__append(b, u->who, x, x.n_args, args);
        if (copy[i - u->old] == 0)
            return 0;
    }
    return copy[u->value - u->old];
}

/** The atomic whose region makes the value of the old one. It counts neither as nesting nor as a
 * region: nothing of the caller's stands in it. */
static void append_update(const update *u)
{
    qn_builder *b = u->b;
    uint32_t *copy = qn__zalloc((size_t)(u->value - u->old) + 1, sizeof *copy);
    if (!copy) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", u->who);
        return;
    }
    keep_parts(u);
    uint32_t i = qn__append_atomic(b, u->who, QN_UPDATE, u->view, u->n, u->index);
    uint32_t value = i ? append_parts(u, copy) : 0;
    bool is_done = value && qn__append(b, u->who, (qn_inst){.op = QN_I_YIELD}, 1, &value);
    for (uint32_t j = i + 1; is_done && j < b->n_insts; j++)
        b->inst[j].parent = i;
    if (is_done) {
        b->inst[i].region[1] = b->inst[i].region[2] = b->n_insts;
        b->note[i].is_stored = true;
    }
    qn__free(copy);
}

/* ---------------------------------------------------------------- stores */

static void append_store(const update *u)
{
    qn__store_element_of(u->b, u->who, u->view, u->index, u->value);
    if (!u->b->error.status)
        u->b->note[u->b->n_insts - 1].is_stored = true;
}

/** Requires: the value is made of loads of the element, none of them stale. */
static void append_one_step(update *u)
{
    int combine = -1;
    uint32_t args[QN_MAX_RANK + 1];
    if (u->n_loads > 1)
        u->value = with_one_load(u);
    if (u->value == 0 || !find_needs(u))
        return;
    if (!needs_old(u, u->value)) { /* the loads cancel, as in x - x */
        append_store(u);
        return;
    }
    for (int d = 0; d < u->n; d++)
        args[d] = u->index[d];
    args[u->n] = combined_value(u, &combine);
    if (u->b->error.status)
        return;
    if (args[u->n] == 0) {
        append_update(u);
        return;
    }
    uint32_t i = qn__append_atomic(u->b, u->who, combine, u->view, u->n + 1, args);
    if (i)
        u->b->note[i].is_stored = true;
}

void qn__store_atomically(qn_builder *b, const char *who, qn_param p, const uint32_t *args)
{
    update u = {.b = b, .who = who, .view = p, .n = b->param[p.id - 1].rank};
    for (int d = 0; d < u.n; d++)
        u.index[d] = args[d];
    u.value = args[u.n];
    bool has_loads = find_loads(&u);
    if (has_loads && !u.is_stale)
        append_one_step(&u);
    else if (!b->error.status)
        append_store(&u);
    qn__free(u.part);
    qn__free(u.needs);
}
