/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c: checks a finished kernel against every rule of ir.h: table, regions, dominance, types,
 * domain, accesses, parameters, limits. Relies only on the arrays having the lengths that the
 * kernel states; every number in them is checked before use. One walk over the instructions with a
 * stack of open regions, one rule function per kind of op.
 */
#include "ir/function.h"
#include "ir/verify.h"

#include <string.h>

/** An open region instruction. */
typedef struct open_region {
    uint32_t inst, begin, end; /* the region that is open: [begin, end) */
    uint32_t dims;             /* reduce: the dimensions it names, as bits */
    uint8_t type[QN_MAX_CARRIED];
    int n;      /* values of the first branch, carried values */
    int n_seen; /* carried instructions so far */
} open_region;

typedef struct verifier {
    const qn_kernel *k;
    qn_error *err;
    uint8_t *uniform; /* of each instruction so far */
    open_region open[QN_MAX_NESTING + 1]; /* and an update */
    int depth, n_dims, n_parallel, n_regions;
    uint32_t n_accesses, reduced;
    uint32_t with_results; /* the region instruction whose results stand here, 0 if none ... */
    int n_results, next_result;
    uint8_t result_type[QN_MAX_CARRIED];
} verifier;

/** Fails for instruction i. Always false. */
static bool wrong(verifier *v, uint32_t i, const char *what)
{
    qn__fail(v->err, QN_ERR_VERIFY, "qn_finish: instruction %u (%s): %s", (unsigned)i,
             qn__inst_name(v->k->inst[i].op), what);
    return false;
}

static bool require(verifier *v, uint32_t i, bool is_right, const char *what)
{
    return is_right || wrong(v, i, what);
}

static const qn_inst *arg_inst(const verifier *v, uint32_t i, uint32_t a)
{
    return &v->k->inst[qn__args(v->k, i)[a]];
}

static int arg_type(const verifier *v, uint32_t i, uint32_t a)
{
    return arg_inst(v, i, a)->type;
}

static open_region *top(verifier *v)
{
    return v->depth ? &v->open[v->depth - 1] : NULL;
}

/* ---------------------------------------------------------------- operands */

static bool is_open_region(const verifier *v, uint32_t i)
{
    for (int d = 0; d < v->depth; d++)
        if (v->open[d].inst == i)
            return true;
    return false;
}

/** Whether the region that holds the value is open: its instruction dominates this place. */
static bool dominates(const verifier *v, uint32_t value)
{
    const qn_inst *x = &v->k->inst[value];
    if (x->parent == 0)
        return true;
    for (int d = 0; d < v->depth; d++)
        if (v->open[d].inst == x->parent)
            return value >= v->open[d].begin || x->op == QN_I_CARRIED;
    return false;
}

static bool check_operands(verifier *v, uint32_t i)
{
    const qn_kernel *k = v->k;
    const qn_inst *x = &k->inst[i];
    if (x->args > k->n_operands || x->n_args > k->n_operands - x->args)
        return wrong(v, i, "operands outside the table");
    bool is_uniform = qn__is_pure(x);
    for (uint32_t a = 0; a < x->n_args; a++) {
        uint32_t value = qn__args(k, i)[a];
        if (x->op == QN_I_RESULT)
            continue; /* names its region instruction, checked there */
        if (value == 0 || value >= i)
            return wrong(v, i, "an operand is not defined before");
        const qn_inst *y = &k->inst[value];
        if (y->type == QN_VOID && !(x->op == QN_I_CALL && y->op == QN_I_VIEW))
            return wrong(v, i, "an operand has no value");
        if (!dominates(v, value) || is_open_region(v, value))
            return wrong(v, i, "an operand is used outside its region");
        bool is_reduction = y->op == QN_I_DIM && y->sub == QN_DIM_REDUCTION && x->op != QN_I_REDUCE;
        if (is_reduction && !(v->reduced >> y->imm & 1))
            return wrong(v, i, "a reduction index is used outside a reduce that names it");
        is_uniform = is_uniform && v->uniform[value];
    }
    v->uniform[i] = is_uniform;
    return true;
}

static bool all_i64(const verifier *v, uint32_t i, uint32_t first, uint32_t n)
{
    for (uint32_t a = first; a < first + n; a++)
        if (arg_type(v, i, a) != QN_I64)
            return false;
    return true;
}

/* ---------------------------------------------------------------- pure ops */

/** No value of a finished kernel is: only its parts are values. */
static bool is_complex(int type)
{
    return qn__dtype_class(type) == QN_CLASS_C;
}

static bool check_table_op(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    const qn_op_info *info = &qn__op_info[qn__pure(x)];
    if (x->n_args != info->arity)
        return wrong(v, i, "wrong number of operands");
    uint32_t first = info->rule == QN_RULE_SELECT ? 1 : 0;
    int type = arg_type(v, i, first);
    for (uint32_t a = first; a < x->n_args; a++)
        if (arg_type(v, i, a) != type)
            return wrong(v, i, "operand types differ");
    if (first && arg_type(v, i, 0) != QN_BOOL)
        return wrong(v, i, "the condition is not bool");
    if (!(qn__dtype_class(type) & info->classes))
        return wrong(v, i, "operand type not taken");
    if (x->type != (info->rule == QN_RULE_COMPARE ? QN_BOOL : type))
        return wrong(v, i, "wrong result type");
    if (qn__is_half(type) && qn__pure(x) != QN_OP_select)
        return wrong(v, i, "arithmetic on a half-width float");
    bool divides = qn__pure(x) == QN_OP_div || qn__pure(x) == QN_OP_rem;
    if (divides && qn__dtype_class(type) != QN_CLASS_F && arg_inst(v, i, 1)->op == QN_I_CONST &&
        arg_inst(v, i, 1)->imm == 0)
        return wrong(v, i, "division by constant 0");
    return true;
}

/** extent and lower. */
static bool check_extent(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    return require(v, i,
                   x->imm < (uint64_t)v->k->n_params && x->n_args == 0 && x->type == QN_I64 &&
                       (int)x->sub < v->k->param[x->imm].rank,
                   "names no dimension of a view parameter");
}

static bool check_param_value(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    return require(v, i,
                   x->imm < (uint64_t)v->k->n_params && x->n_args == 0 &&
                       v->k->param[x->imm].rank == -1 &&
                       x->sub < qn__n_parts(v->k->param[x->imm].dtype, NULL) &&
                       x->type == qn__part_dtype(v->k->param[x->imm].dtype, NULL, x->sub),
                   "names no scalar parameter of its type");
}

static bool check_const(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    return require(v, i,
                   x->n_args == 0 && qn__dtype_class(x->type) && !is_complex(x->type) &&
                       qn__canonical(x->type, x->imm) == x->imm,
                   "bits are not canonical");
}

static bool check_lookup(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    return require(v, i,
                   x->imm < (uint64_t)v->k->n_arrays && x->n_args == 1 &&
                       arg_type(v, i, 0) == QN_I64 && x->type == qn__array_of(v->k, i)->dtype,
                   "names no constant array of its type, or has no i64 index");
}

/** assert and print: the operands from `first` on are shown. */
static bool shows(const verifier *v, uint32_t i, uint32_t first)
{
    const qn_inst *x = &v->k->inst[i];
    bool is_right = x->type == QN_VOID && x->imm < (uint64_t)v->k->n_messages &&
                    x->n_args >= first && x->n_args <= first + QN_MAX_SHOWN;
    for (uint32_t a = first; is_right && a < x->n_args; a++)
        is_right = qn__dtype_class(arg_type(v, i, a)) && !is_complex(arg_type(v, i, a));
    return is_right;
}

static bool check_assert(verifier *v, uint32_t i)
{
    return require(v, i, shows(v, i, 1) && arg_type(v, i, 0) == QN_BOOL,
                   "wrong condition, values or message");
}

static bool check_print(verifier *v, uint32_t i)
{
    return require(v, i, shows(v, i, 0) && v->k->has_prints, "wrong values or message");
}

/** cast and bitcast. */
static bool check_cast(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    if (x->n_args != 1 || !qn__dtype_class(x->type) || is_complex(x->type))
        return wrong(v, i, "wrong operand or type");
    if (x->op == QN_I_BITCAST)
        return require(v, i, qn_dtype_bytes(x->type) == qn_dtype_bytes(arg_type(v, i, 0)),
                       "sizes differ");
    int from = arg_type(v, i, 0);
    if (qn__is_half(from) ? x->type != QN_F32 : qn__is_half(x->type) && from != QN_F32)
        return wrong(v, i, "half-width floats are cast from and to f32 only");
    return require(v, i, x->type != QN_BOOL || qn__dtype_class(from) != QN_CLASS_F,
                   "float to bool");
}

/* ---------------------------------------------------------------- domain */

static bool check_dim(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    if (i >= v->k->body)
        return wrong(v, i, "stands after the prologue");
    if (v->n_dims == v->k->n_dims || x->imm != (uint64_t)v->n_dims || v->k->dim[v->n_dims] != i)
        return wrong(v, i, "the table of dimensions disagrees");
    if (x->n_args != 2 || x->type != QN_I64 || x->sub > QN_DIM_SEQUENTIAL || !all_i64(v, i, 0, 2))
        return wrong(v, i, "wrong bounds, type or kind");
    if (!v->uniform[qn__args(v->k, i)[0]] || !v->uniform[qn__args(v->k, i)[1]])
        return wrong(v, i, "a bound depends on an index");
    if (x->sub == QN_DIM_SEQUENTIAL && v->n_parallel)
        return wrong(v, i, "sequential after parallel");
    v->n_dims++;
    v->n_parallel += x->sub == QN_DIM_PARALLEL;
    return true;
}

/* ---------------------------------------------------------------- accesses */

/** Opens the region of an update, which carries the old value. */
static bool open_update(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    open_region r = {
        .inst = i, .begin = x->region[0], .end = x->region[1], .type = {x->type}, .n = 1};
    if (!(v->k->param[x->imm].traits & QN_ATOMIC))
        return wrong(v, i, "an update through a view that is not atomic");
    v->open[v->depth++] = r;
    return true;
}

static bool check_atomic(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    if (qn__is_update(x))
        return true;
    if (!qn__is_atomic_combine(x->sub))
        return wrong(v, i, "no atomic combination");
    return require(v, i, qn__reducer_takes(x->sub, qn__dtype_class(x->type)), "type not taken");
}

/** load, store and atomic. */
static bool check_access(verifier *v, uint32_t i)
{
    const qn_kernel *k = v->k;
    const qn_inst *x = &k->inst[i];
    if (x->imm >= (uint64_t)k->n_params || k->param[x->imm].rank < 0)
        return wrong(v, i, "names no view parameter");
    const qn_kernel_parameter *p = &k->param[x->imm];
    uint32_t rank = (uint32_t)p->rank;
    bool compares = x->op == QN_I_ATOMIC && x->sub == QN_COMBINE_COMPARE_EXCHANGE;
    uint32_t n_values = x->op == QN_I_LOAD || qn__is_update(x) ? 0 : compares ? 2 : 1;
    if (x->n_args != rank + n_values || !all_i64(v, i, 0, rank))
        return wrong(v, i, "wrong indices");
    int n_parts = qn__n_parts(p->dtype, p->record);
    if (x->op == QN_I_ATOMIC ? qn__has_parts(p->dtype) : x->sub >= n_parts)
        return wrong(v, i, "no such part of an element");
    int dtype = qn__part_dtype(p->dtype, p->record, x->op == QN_I_ATOMIC ? 0 : x->sub);
    for (uint32_t a = rank; a < x->n_args; a++)
        if (arg_type(v, i, a) != dtype)
            return wrong(v, i, "a value is not of the view's type");
    if (x->type != (x->op == QN_I_STORE ? QN_VOID : dtype))
        return wrong(v, i, "wrong result type");
    if (x->op != QN_I_LOAD && ((p->traits & (QN_READ_ONLY | QN_RANDOM_ACCESS)) || v->reduced))
        return wrong(v, i, v->reduced ? "inside a reduce" : "the view is read-only");
    if (x->op == QN_I_LOAD ? !p->is_read : !p->is_written)
        return wrong(v, i, "the parameter does not say so");
    if (x->op == QN_I_ATOMIC && (!p->has_atomics || !check_atomic(v, i)))
        return p->has_atomics ? false : wrong(v, i, "the parameter does not say so");
    if (v->n_accesses == k->n_accesses || k->access[v->n_accesses].inst != i ||
        k->access[v->n_accesses].site != v->n_accesses)
        return wrong(v, i, "the table of accesses disagrees");
    v->n_accesses++;
    return !qn__is_update(x) || open_update(v, i);
}

/* ---------------------------------------------------------------- calls */

static bool check_view(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    return require(v, i,
                   x->imm < (uint64_t)v->k->n_params && x->n_args == 0 && x->type == QN_VOID &&
                       v->k->param[x->imm].rank >= 0,
                   "names no view parameter");
}

/** Whether operand a of call i is an argument for view parameter q of the function. */
static bool is_view_argument(const verifier *v, uint32_t i, uint32_t a,
                             const qn_kernel_parameter *q)
{
    const qn_inst *x = arg_inst(v, i, a);
    if (x->op != QN_I_VIEW)
        return false;
    const qn_kernel_parameter *p = &v->k->param[x->imm];
    return p->dtype == q->dtype && p->rank == q->rank &&
           (!q->record || qn_record_equal(p->record, q->record));
}

static bool check_call(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    if (x->imm >= (uint64_t)v->k->n_functions || x->type != QN_VOID)
        return wrong(v, i, "names no function");
    const qn_function *f = qn__callee(v->k, i);
    uint32_t value = 0, view = (uint32_t)f->n_values;
    if (x->n_args != f->n_values + f->n_views)
        return wrong(v, i, "wrong number of arguments");
    for (int q = 0; q < f->body.n_params; q++) {
        const qn_kernel_parameter *param = &f->body.param[q];
        if (param->rank >= 0 && !is_view_argument(v, i, view++, param))
            return wrong(v, i, "a view is not of the parameter's type");
        for (int part = 0; param->rank < 0 && part < qn__n_parts(param->dtype, NULL); part++)
            if (arg_type(v, i, value++) != qn__part_dtype(param->dtype, NULL, part))
                return wrong(v, i, "an argument is not of the parameter's type");
    }
    v->with_results = i;
    v->next_result = 0;
    v->n_results = f->n_flat;
    for (int r = 0; r < f->n_flat; r++)
        v->result_type[r] = f->body.inst[qn__args(&f->body, qn__return_of(f))[r]].type;
    return true;
}

static bool check_return(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    return require(v, i,
                   i + 1 == v->k->n_insts && v->depth == 0 && x->n_args > 0 && x->type == QN_VOID &&
                       v->k->n_dims == 0,
                   "does not end a function");
}

/* ---------------------------------------------------------------- regions */

/** region[] of an instruction: see ir.h. */
static bool check_region_numbers(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    const uint32_t *r = x->region;
    uint32_t limit = v->depth ? top(v)->end - 1 : v->k->n_insts; /* the yield stays outside */
    if (!qn__has_regions(x))
        return require(v, i, r[0] == i + 1 && r[1] == i + 1 && r[2] == i + 1, "has no regions");
    if (r[0] != i + 1 || r[1] <= r[0] || r[2] < r[1] || r[2] > limit)
        return wrong(v, i, "regions do not nest");
    if (x->op == QN_I_WHILE ? r[1] == r[2] : (x->op != QN_I_IF && r[1] != r[2]))
        return wrong(v, i, "wrong number of regions");
    if (qn__is_update(x))
        return true; /* one more level of its own */
    v->n_regions += r[1] == r[2] ? 1 : 2;
    if (v->n_regions > (v->k->is_replay ? QN_MAX_REPLAY_REGIONS : QN_MAX_REGIONS))
        return wrong(v, i, "too many regions");
    return require(v, i, v->depth < QN_MAX_NESTING, "nested too deeply");
}

static bool check_reduce(verifier *v, uint32_t i, open_region *r)
{
    const qn_inst *x = &v->k->inst[i];
    if (!qn__is_reduction_combine(x->sub) || x->n_args < 1)
        return wrong(v, i, "no reduction, or no dimensions");
    if (x->imm < QN_INDEXED || x->imm > QN_ORDERED)
        return wrong(v, i, "no order rule");
    int last = -1;
    for (uint32_t a = 0; a < x->n_args; a++) {
        const qn_inst *d = arg_inst(v, i, a);
        if (d->op != QN_I_DIM || d->sub != QN_DIM_REDUCTION || (int)d->imm <= last)
            return wrong(v, i, "wrong dimensions");
        last = (int)d->imm;
        r->dims |= 1u << d->imm;
    }
    int cls = qn__dtype_class(x->type);
    if (!cls || qn__is_half(x->type) || !qn__reducer_takes(x->sub, cls))
        return wrong(v, i, "type not taken");
    return require(v, i, !(v->reduced & r->dims), "a dimension is reduced twice");
}

/** Checks the operands of if, for, while and reduce, and opens the first region. */
static bool check_regions(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    open_region r = {.inst = i, .begin = x->region[0], .end = x->region[1]};
    uint32_t n_fixed = x->op == QN_I_FOR ? 2 : 1;
    if (x->op == QN_I_REDUCE) {
        if (!check_reduce(v, i, &r))
            return false;
    } else if (x->n_args < n_fixed || x->type != QN_VOID) {
        return wrong(v, i, "wrong operands or type");
    } else if (x->op == QN_I_IF) {
        if (x->n_args != 1 || x->sub > 1 || arg_type(v, i, 0) != QN_BOOL)
            return wrong(v, i, "the condition is not one bool");
    } else {
        r.n = x->n_args - (int)n_fixed;
        if (r.n > QN_MAX_CARRIED || !all_i64(v, i, 0, n_fixed))
            return wrong(v, i, "wrong bounds, or too many carried values");
        if (x->op == QN_I_FOR && (int64_t)x->imm <= 0)
            return wrong(v, i, "the step is not positive");
        if (x->op == QN_I_WHILE && !v->uniform[qn__args(v->k, i)[0]])
            return wrong(v, i, "max_trips is not uniform");
        for (int a = 0; a < r.n; a++)
            r.type[a] = (uint8_t)arg_type(v, i, n_fixed + (uint32_t)a);
    }
    v->reduced |= r.dims;
    v->open[v->depth++] = r;
    return true;
}

/** index and carried: the first instructions of a loop's first region, and of an update. */
static bool check_carried(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    open_region *r = top(v);
    int op = r ? v->k->inst[r->inst].op : QN_I_NONE;
    if (x->n_args != 0 || (op != QN_I_FOR && op != QN_I_WHILE && op != QN_I_ATOMIC))
        return wrong(v, i, "stands outside a loop or update");
    uint32_t first = v->k->inst[r->inst].region[0];
    if (x->op == QN_I_INDEX)
        return require(v, i, op == QN_I_FOR && i == first && x->type == QN_I64,
                       "does not begin a for");
    first += op == QN_I_FOR;
    bool is_next =
        r->n_seen < r->n && i == first + (uint32_t)r->n_seen && x->imm == (uint64_t)r->n_seen;
    if (!is_next || x->type != r->type[r->n_seen])
        return wrong(v, i, "no carried value of the loop");
    r->n_seen++;
    return true;
}

/** Whether the yield i gives n values of the types. */
static bool check_yield_types(verifier *v, uint32_t i, int n, const uint8_t *types)
{
    bool is_right = v->k->inst[i].n_args == n;
    for (int a = 0; is_right && a < n; a++)
        is_right = arg_type(v, i, (uint32_t)a) == types[a];
    return require(v, i, is_right, "wrong number or types of values");
}

/** The values that the open region must yield. */
static bool check_yield_values(verifier *v, uint32_t i, open_region *r)
{
    const qn_inst *x = &v->k->inst[i], *region = &v->k->inst[r->inst];
    bool is_first = r->begin == region->region[0];
    if (region->op == QN_I_REDUCE)
        return check_yield_types(v, i, 1, &region->type);
    if (region->op == QN_I_WHILE && is_first)
        return check_yield_types(v, i, 1, &(const uint8_t){QN_BOOL});
    if (region->op != QN_I_IF || !is_first)
        return check_yield_types(v, i, r->n, r->type);
    if (x->n_args > QN_MAX_CARRIED || (x->n_args && region->region[1] == region->region[2]))
        return wrong(v, i, "too many values, or an if with values without else");
    r->n = x->n_args;
    for (int a = 0; a < r->n; a++)
        r->type[a] = (uint8_t)arg_type(v, i, (uint32_t)a);
    return true;
}

/** The yield ends the open region; the next one begins, or the instruction is complete. */
static bool check_yield(verifier *v, uint32_t i)
{
    open_region *r = top(v);
    if (!r || i != r->end - 1 || v->k->inst[i].type != QN_VOID)
        return wrong(v, i, "does not end a region");
    const qn_inst *x = &v->k->inst[r->inst];
    if (!check_yield_values(v, i, r))
        return false;
    if (r->n_seen != r->n && x->op != QN_I_IF)
        return wrong(v, r->inst, "carried values are missing");
    if (x->op == QN_I_FOR && v->k->inst[x->region[0]].op != QN_I_INDEX)
        return wrong(v, r->inst, "the index is missing");
    if (r->end < x->region[2]) {
        r->begin = r->end;
        r->end = x->region[2];
        return true;
    }
    v->reduced &= ~r->dims;
    v->with_results = r->inst;
    v->next_result = 0;
    v->n_results = x->op == QN_I_ATOMIC ? 0 : r->n;
    memcpy(v->result_type, r->type, sizeof r->type);
    v->depth--;
    return true;
}

/** result: the next one of the region instruction just before. */
static bool check_result(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    if (x->n_args != 1 || v->with_results == 0 || qn__args(v->k, i)[0] != v->with_results ||
        x->imm != (uint64_t)v->next_result || v->next_result >= v->n_results ||
        x->type != v->result_type[v->next_result])
        return wrong(v, i, "no result of the instruction before");
    v->next_result++;
    return true;
}

/* ---------------------------------------------------------------- the walk */

typedef bool rule_function(verifier *v, uint32_t i);

#define check_none NULL
static rule_function *const rules[QN_I_PURE] = {
#define QN_INST(NAME, word, effect, n_regions, sub, imm, rule, doc) [QN_I_##NAME] = check_##rule,
#include "ir/instructions.def"
#undef QN_INST
};
#undef check_none

/** Whether an op uses qn_inst.sub or imm; the others hold 0 there. */
static bool uses_sub(int op)
{
    return op < QN_I_PURE && qn__inst_info[op].uses_sub;
}

static bool uses_imm(int op)
{
    return op < QN_I_PURE && qn__inst_info[op].uses_imm;
}

static bool check_inst(verifier *v, uint32_t i)
{
    const qn_inst *x = &v->k->inst[i];
    bool is_table_op = x->op > QN_I_PURE && x->op - QN_I_PURE < QN_N_TABLE_OPS;
    if (!is_table_op && (x->op >= QN_I_PURE || !rules[x->op]))
        return wrong(v, i, "no such op");
    if ((x->sub && !uses_sub(x->op)) || (x->imm && !uses_imm(x->op)))
        return wrong(v, i, "sub or imm is not 0");
    if (x->op != QN_I_RESULT && v->next_result < v->n_results)
        return wrong(v, i, "results are missing before it");
    if (x->op != QN_I_RESULT)
        v->with_results = 0;
    if (x->parent != (v->depth ? top(v)->inst : 0))
        return wrong(v, i, "wrong parent");
    if (v->depth && i == top(v)->end - 1 && x->op != QN_I_YIELD)
        return wrong(v, i, "ends a region without yield");
    if (i < v->k->body && !qn__is_pure(x) && x->op != QN_I_DIM)
        return wrong(v, i, "stands in the prologue");
    bool is_in_update = v->depth && v->k->inst[top(v)->inst].op == QN_I_ATOMIC;
    if (is_in_update && !qn__is_pure(x) && x->op != QN_I_CARRIED && x->op != QN_I_YIELD)
        return wrong(v, i, "stands in an update and is not pure");
    if (!check_region_numbers(v, i) || !check_operands(v, i))
        return false;
    if (i < v->k->body && x->op != QN_I_DIM && !v->uniform[i])
        return wrong(v, i, "stands in the prologue and uses an index");
    return is_table_op ? check_table_op(v, i) : rules[x->op](v, i);
}

static bool check_end(verifier *v)
{
    const qn_kernel *k = v->k;
    uint32_t body = k->n_dims ? k->dim[k->n_dims - 1] + 1 : 1;
    const char *what = v->n_dims != k->n_dims           ? "dimensions"
                       : v->n_accesses != k->n_accesses ? "accesses"
                       : v->next_result < v->n_results  ? "results"
                       : k->body != body                ? "prologue"
                                                        : NULL;
    if (what)
        qn__fail(v->err, QN_ERR_VERIFY, "qn_finish: %s are not what the kernel says", what);
    return !what;
}

qn_status qn__verify(const qn_kernel *k, qn_error *err)
{
    qn_status status = qn__verify_tables(k, err);
    if (status)
        return status;
    verifier v = {.k = k, .err = err, .uniform = qn__zalloc(k->n_insts, 1)};
    if (!v.uniform)
        return qn__fail(err, QN_ERR_MEMORY, "qn_finish: out of memory");
    bool is_right = true;
    for (uint32_t i = 1; is_right && i < k->n_insts; i++)
        is_right = check_inst(&v, i);
    is_right = is_right && check_end(&v);
    qn__free(v.uniform);
    return is_right ? qn__verify_uses(k, err) : QN_ERR_VERIFY;
}
