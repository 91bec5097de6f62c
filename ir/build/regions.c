/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions.c: if, for, while and reduce. Each opens a frame; its end call checks the frame,
 * appends the yield, fills region[] of the instruction (ir.h) and appends the results. Values of a
 * region are unusable after it, and values of a while's condition, carried ones excepted, are
 * unusable in its body.
 */
#include "ir/build/builder.h"

#include <stdio.h>

/* ---------------------------------------------------------------- frames */

/** After a failed call, the inert value for everything it would have written. Not before: `out` may
 * be the input. */
static void clear_on_error(const qn_builder *b, int n, qn_val *out)
{
    if (b && !b->error.status)
        return;
    for (int i = 0; out && i < n && i < QN_MAX_CARRIED; i++)
        out[i] = (qn_val){0};
}

static bool count_region(qn_builder *b, const char *who)
{
    int limit = b->is_replay ? QN_MAX_REPLAY_REGIONS : QN_MAX_REGIONS;
    if (b->n_regions < (uint32_t)limit) {
        b->n_regions++;
        return true;
    }
    qn__builder_fail(b, QN_ERR_LIMIT, "%s: more than %d regions", who, limit);
    return false;
}

/** Appends the instruction x and opens its first region. */
static qn_frame *open_frame(qn_builder *b, const char *who, qn_inst x, uint32_t n_args,
                            const uint32_t *args)
{
    if (b->depth == QN_MAX_NESTING) {
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: nesting deeper than %d", who, QN_MAX_NESTING);
        return NULL;
    }
    if (!count_region(b, who))
        return NULL;
    uint32_t i = qn__append(b, who, x, n_args, args);
    if (i == 0)
        return NULL;
    qn_frame *f = &b->frame[b->depth++];
    *f = (qn_frame){.inst = i, .begin = i + 1, .version = b->version, .op = x.op};
    if (x.op == QN_I_FOR || x.op == QN_I_WHILE) /* a later trip sees what an earlier one stored */
        b->version = ++b->last_version;
    return f;
}

/** The innermost frame if it is of this op and stage, else NULL and an error. */
static qn_frame *top_frame(qn_builder *b, const char *who, int op, int stage, const char *wanted)
{
    qn_frame *f = b->depth ? &b->frame[b->depth - 1] : NULL;
    if (f && f->op == op && f->stage == stage)
        return f;
    if (f && f->op == op)
        qn__builder_fail(b, QN_ERR_BUILD, "%s: %s", who, wanted);
    else if (f)
        qn__builder_fail(b, QN_ERR_BUILD, "%s: the innermost open region is of %s, not %s", who,
                         qn__inst_name(f->op), qn__inst_name(op));
    else
        qn__builder_fail(b, QN_ERR_BUILD, "%s: no open %s", who, qn__inst_name(op));
    return NULL;
}

/** Appends the yield of the open region. */
static bool append_yield(qn_builder *b, const char *who, int n, const uint32_t *args)
{
    return qn__append(b, who, (qn_inst){.op = QN_I_YIELD}, (uint32_t)n, args) != 0;
}

/** Ends the first region and begins the second. */
static bool open_second(qn_builder *b, const char *who, qn_frame *f)
{
    if (!count_region(b, who))
        return false;
    b->inst[f->inst].region[1] = b->n_insts;
    f->begin = b->n_insts;
    f->stage = 1;
    return true;
}

/** Closes the innermost frame. Its instruction has its regions now. */
static void close_frame(qn_builder *b)
{
    qn_frame *f = &b->frame[--b->depth];
    qn_inst *x = &b->inst[f->inst];
    x->region[2] = b->n_insts;
    if (f->stage == 0)
        x->region[1] = b->n_insts;
    b->reduced &= ~f->dims;
    b->version = f->version;
    if (f->has_store)
        qn__new_version(b);
}

/** Appends the results of the instruction of a frame that was closed. */
static void append_results(qn_builder *b, const char *who, const qn_frame *f, qn_val *results)
{
    qn_val flat[QN_MAX_CARRIED];
    for (int i = 0; i < f->n; i++) {
        qn_inst x = {.op = QN_I_RESULT, .type = f->type[i], .imm = (uint64_t)i};
        flat[i] = qn__value(b, qn__append(b, who, x, 1, &f->inst), f->kind[i]);
    }
    qn__unflatten(b, who, f->n_values, f->shape, flat, results);
}

/** The numbers of the scalars of n values, which must have the types of the frame. The index kinds
 * of an if's branches join; those of a loop are the initial ones. */
static bool use_values(qn_builder *b, const char *who, qn_frame *f, const char *what, int n,
                       const qn_val *values, uint32_t *out)
{
    qn_flat flat;
    if (n != f->n_values) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: %d %ss, not %d", who, n, what, f->n_values);
        return false;
    }
    if (!qn__flatten(b, who, what, n, values, &flat))
        return false;
    for (int i = 0, at = 0; i < n; i++) {
        int type = b->inst[qn__number(values[i])].type;
        int wanted = f->shape[i] ? f->shape[i] & 0xff : f->type[at];
        if (type != wanted || flat.shape[i] != f->shape[i]) {
            qn__builder_fail(b, QN_ERR_TYPE, "%s: %s %d%s is %s, not %s: types differ", who, what,
                             i, qn__origin(b, qn__number(values[i]), (char[ORIGIN_BYTES]){0}),
                             qn_dtype_name(type), qn_dtype_name(wanted));
            return false;
        }
        at += f->shape[i] ? b->inst[qn__number(values[i])].n_args : 1;
    }
    for (int i = 0; i < flat.n; i++) {
        out[i] = qn__number(flat.value[i]);
        int kind = qn__kind(flat.value[i]);
        if (f->op == QN_I_IF && f->kind[i] == 0)
            f->kind[i] = (uint8_t)kind;
        if (kind == 0 || kind == f->kind[i])
            continue;
        qn__builder_fail(b, QN_ERR_TYPE, "%s: %s %d has index kind %d, %s has %d", who, what, i,
                         kind, f->op == QN_I_IF ? "that of the other branch" : "the initial value",
                         f->kind[i]);
        return false;
    }
    return true;
}

static void numbers_of(const qn_flat *flat, uint32_t *out)
{
    for (int i = 0; i < flat->n; i++)
        out[i] = qn__number(flat->value[i]);
}

/** The frame has values of these types, shapes and index kinds. */
static void take_types(const qn_builder *b, qn_frame *f, const qn_flat *flat)
{
    f->n = (uint8_t)flat->n;
    f->n_values = (uint8_t)flat->n_values;
    for (int i = 0; i < flat->n_values; i++)
        f->shape[i] = flat->shape[i];
    for (int i = 0; i < flat->n; i++) {
        f->type[i] = b->inst[qn__number(flat->value[i])].type;
        f->kind[i] = (uint8_t)qn__kind(flat->value[i]);
    }
}

/** The number of a usable bool, or an error. */
static bool use_condition(qn_builder *b, const char *who, qn_val condition, uint32_t *out)
{
    if (!qn__use(b, who, "condition", condition, out))
        return false;
    int type = b->inst[*out].type;
    if (type == QN_BOOL)
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: the condition is %s, not bool", who, qn_dtype_name(type));
    return false;
}

/* ---------------------------------------------------------------- if */

static void open_if(qn_builder *b, const char *who, qn_val condition, bool is_rare)
{
    uint32_t number;
    if (qn__builder_ready(b, who) && use_condition(b, who, condition, &number))
        open_frame(b, who, (qn_inst){.op = QN_I_IF, .sub = is_rare}, 1, &number);
}

void qn_if(qn_builder *b, qn_val condition) { open_if(b, "qn_if", condition, false); }

void qn_if_rare(qn_builder *b, qn_val condition) { open_if(b, "qn_if_rare", condition, true); }

void qn_else(qn_builder *b, int n, const qn_val *values)
{
    const char *who = "qn_else";
    if (!qn__builder_ready(b, who))
        return;
    uint32_t number[QN_MAX_CARRIED];
    qn_flat flat;
    qn_frame *f = top_frame(b, who, QN_I_IF, 0, "the if has its else already");
    if (!f || !qn__flatten(b, who, "value", n, values, &flat))
        return;
    take_types(b, f, &flat);
    numbers_of(&flat, number);
    if (!append_yield(b, who, f->n, number) || !open_second(b, who, f))
        return;
    b->version = f->version; /* the other branch begins where the first one did */
}

static void end_if(qn_builder *b, int n, const qn_val *values, qn_val *results)
{
    const char *who = "qn_end_if";
    if (!qn__builder_ready(b, who))
        return;
    int stage = b->depth ? b->frame[b->depth - 1].stage : 0;
    qn_frame *f = top_frame(b, who, QN_I_IF, stage, "");
    if (!f)
        return;
    if (stage == 0 && n != 0) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: %d values of an if without else", who, n);
        return;
    }
    uint32_t number[QN_MAX_CARRIED];
    if (!use_values(b, who, f, "value", n, values, number) || !append_yield(b, who, f->n, number))
        return;
    close_frame(b);
    append_results(b, who, f, results);
}

void qn_end_if(qn_builder *b, int n, const qn_val *values, qn_val *results)
{
    end_if(b, n, values, results);
    clear_on_error(b, n, results);
}

/* ---------------------------------------------------------------- loops */

/** Appends the carried values of the loop that was just opened. */
static void append_carried(qn_builder *b, const char *who, const qn_frame *f, qn_val *carried)
{
    qn_val flat[QN_MAX_CARRIED];
    for (int i = 0; i < f->n; i++) {
        qn_inst x = {.op = QN_I_CARRIED, .type = f->type[i], .imm = (uint64_t)i};
        flat[i] = qn__value(b, qn__append(b, who, x, 0, NULL), f->kind[i]);
    }
    qn__unflatten(b, who, f->n_values, f->shape, flat, carried);
}

static qn_val begin_for(qn_builder *b, qn_val begin, qn_val end, int64_t step, int n,
                        const qn_val *init, qn_val *carried)
{
    const char *who = "qn_for";
    uint32_t args[2 + QN_MAX_CARRIED];
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    if (step <= 0)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: step %lld is not positive", who,
                                (long long)step);
    int kind;
    qn_flat flat;
    if (!qn__use_index(b, who, "begin", begin, &args[0]) ||
        !qn__use_index(b, who, "end", end, &args[1]) ||
        !qn__join_kinds(b, who, 2, (const qn_val[]){begin, end}, &kind) ||
        !qn__flatten(b, who, "initial value", n, init, &flat))
        return (qn_val){0};
    numbers_of(&flat, args + 2);
    qn_inst x = {.op = QN_I_FOR, .imm = (uint64_t)step};
    qn_frame *f = open_frame(b, who, x, 2 + (uint32_t)flat.n, args);
    if (!f)
        return (qn_val){0};
    take_types(b, f, &flat);
    uint32_t index = qn__append(b, who, (qn_inst){.op = QN_I_INDEX, .type = QN_I64}, 0, NULL);
    append_carried(b, who, f, carried);
    return qn__value(b, index, kind);
}

qn_val qn_for(qn_builder *b, qn_val begin, qn_val end, int64_t step, int n, const qn_val *init,
              qn_val *carried)
{
    qn_val index = begin_for(b, begin, end, step, n, init, carried);
    clear_on_error(b, n, carried);
    return b && !b->error.status ? index : (qn_val){0};
}

/** Ends a for (stage 0) or a while (stage 1). */
static void end_loop(qn_builder *b, const char *who, int op, int stage, int n, const qn_val *next,
                     qn_val *results)
{
    if (!qn__builder_ready(b, who))
        return;
    qn_frame *f = top_frame(b, who, op, stage, "the while has no body: qn_do is missing");
    uint32_t number[QN_MAX_CARRIED];
    if (!f || !use_values(b, who, f, "value", n, next, number) ||
        !append_yield(b, who, f->n, number))
        return;
    close_frame(b);
    append_results(b, who, f, results);
}

void qn_end_for(qn_builder *b, int n, const qn_val *next, qn_val *results)
{
    end_loop(b, "qn_end_for", QN_I_FOR, 0, n, next, results);
    clear_on_error(b, n, results);
}

static void begin_while(qn_builder *b, qn_val max_trips, int n, const qn_val *init, qn_val *carried)
{
    const char *who = "qn_while";
    uint32_t args[1 + QN_MAX_CARRIED];
    qn_flat flat;
    if (!qn__builder_ready(b, who) || !qn__use_index(b, who, "max_trips", max_trips, &args[0]) ||
        !qn__flatten(b, who, "initial value", n, init, &flat))
        return;
    if (!b->note[args[0]].is_uniform) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: max_trips depends on an index, a load or a loop",
                         who);
        return;
    }
    numbers_of(&flat, args + 1);
    qn_frame *f = open_frame(b, who, (qn_inst){.op = QN_I_WHILE}, 1 + (uint32_t)flat.n, args);
    if (!f)
        return;
    take_types(b, f, &flat);
    append_carried(b, who, f, carried);
}

void qn_while(qn_builder *b, qn_val max_trips, int n, const qn_val *init, qn_val *carried)
{
    begin_while(b, max_trips, n, init, carried);
    clear_on_error(b, n, carried);
}

void qn_do(qn_builder *b, qn_val condition)
{
    const char *who = "qn_do";
    if (!qn__builder_ready(b, who))
        return;
    qn_frame *f = top_frame(b, who, QN_I_WHILE, 0, "the while has its body already");
    uint32_t number;
    if (f && use_condition(b, who, condition, &number) && append_yield(b, who, 1, &number))
        open_second(b, who, f);
}

void qn_end_while(qn_builder *b, int n, const qn_val *next, qn_val *results)
{
    end_loop(b, "qn_end_while", QN_I_WHILE, 1, n, next, results);
    clear_on_error(b, n, results);
}

/* ---------------------------------------------------------------- reduce */

/** The order rule of a reduction that names none. */
static int default_order(const qn_builder *b)
{
    if (b->flags & QN_ORDER_STRIPED)
        return QN_STRIPED;
    if (b->flags & QN_ORDER_INDEXED)
        return QN_INDEXED;
    if (b->flags & QN_ORDER_ORDERED)
        return QN_ORDERED;
    return b->n_parallel ? QN_INDEXED : QN_STRIPED;
}

/** The dimension that v is the index of, for a reduction; -1 after an error. `last` is the one
 * before it, or -1. */
static int reduced_dim(qn_builder *b, const char *who, qn_val v, int last)
{
    uint32_t i = qn__number(v);
    if (i == 0 || i >= b->n_insts || b->inst[i].op != QN_I_DIM ||
        b->inst[i].sub != QN_DIM_REDUCTION) {
        qn__builder_fail(b, i ? QN_ERR_ARGUMENT : QN_ERR_BUILD,
                         "%s: value %u is no reduction dimension", who, (unsigned)i);
        return -1;
    }
    int d = (int)b->inst[i].imm;
    if (b->reduced >> d & 1)
        qn__builder_fail(b, QN_ERR_BUILD, "%s: dimension %d is reduced by an open reduce", who, d);
    else if (d <= last)
        qn__builder_fail(b, QN_ERR_BUILD,
                         "%s: dimension %d after %d: not in the order of declaration", who, d,
                         last);
    else
        return d;
    return -1;
}

void qn_reduce(qn_builder *b, int combine, int order, int n, const qn_val *dims)
{
    const char *who = "qn_reduce";
    if (!qn__builder_ready(b, who))
        return;
    if (!qn__is_reduction_combine(combine)) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s", who,
                         qn__no_combine(combine, true, (char[NO_COMBINE_BYTES]){0}));
        return;
    }
    if (order < QN_ORDER_DEFAULT || order > QN_ORDERED) {
        qn__builder_fail(
            b, QN_ERR_ARGUMENT,
            "%s: order %d: expected QN_ORDER_DEFAULT, QN_STRIPED, QN_INDEXED or QN_ORDERED", who,
            order);
        return;
    }
    if (n < 1 || n > QN_MAX_RANK || !dims) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %d dimensions%s", who, n, dims ? "" : " at NULL");
        return;
    }
    uint32_t args[QN_MAX_RANK], mask = 0;
    for (int i = 0, last = -1; i < n; i++) {
        last = reduced_dim(b, who, dims[i], last);
        if (last < 0)
            return;
        mask |= 1u << last;
        args[i] = qn__number(dims[i]);
    }
    qn_inst x = {.op = QN_I_REDUCE,
                 .sub = (uint8_t)combine,
                 .imm = (uint64_t)(order ? order : default_order(b))};
    qn_frame *f = open_frame(b, who, x, (uint32_t)n, args);
    if (!f)
        return;
    f->dims = mask;
    b->reduced |= mask;
}

/** Appends the open reduce and its region once more, as they stand, behind the closed one. The
 * distance of all numbers is the same. Returns the distance, 0 after an error. */
static uint32_t repeat_reduce(qn_builder *b, const char *who, uint32_t reduce, uint32_t dims)
{
    uint32_t end = b->inst[reduce].region[2] - 1; /* the yield is the caller's */
    uint32_t distance = b->n_insts - reduce, args[256];
    for (uint32_t i = reduce; i < end; i++) {
        qn_inst x = b->inst[i];
        for (uint32_t a = 0; a < x.n_args; a++) {
            uint32_t arg = qn__builder_args(b, i)[a];
            args[a] = arg >= reduce ? arg + distance : arg;
        }
        if (i == reduce) {
            qn_frame *f = open_frame(b, who, (qn_inst){.op = x.op, .sub = x.sub, .imm = x.imm},
                                     x.n_args, args);
            if (!f)
                return 0;
            f->dims = dims;
            b->reduced |= dims;
            continue;
        }
        uint32_t made = qn__append(b, who, x, x.n_args, args);
        if (made == 0)
            return 0;
        b->inst[made].parent = x.parent + distance;
        for (int r = 0; r < 3; r++)
            b->inst[made].region[r] = x.region[r] + distance;
        for (int r = 0; r < 2 && x.region[r] != x.region[r + 1]; r++)
            if (!count_region(b, who))
                return 0;
    }
    return distance;
}

/** Ends a reduce of scalars. */
static uint32_t end_scalar_reduce(qn_builder *b, const char *who, qn_frame *f, uint32_t number)
{
    int type = b->inst[number].type;
    uint32_t reduce = f->inst;
    bool is_half = qn__is_half(type); /* reduced in f32, rounded at the end */
    if (is_half)
        number = qn__append_cast(b, who, QN_F32, number);
    if (number == 0 || !append_yield(b, who, 1, &number))
        return 0;
    b->inst[reduce].type = is_half ? QN_F32 : (uint8_t)type;
    close_frame(b);
    return is_half ? qn__append_cast(b, who, type, reduce) : reduce;
}

/** A sum of complex numbers is one of real and one of imaginary parts, over copies of the region.
 */
static qn_val end_complex_reduce(qn_builder *b, const char *who, qn_frame *f, uint32_t number)
{
    const uint32_t parts[2] = {qn__builder_args(b, number)[0], qn__builder_args(b, number)[1]};
    uint32_t reduce = f->inst, dims = f->dims;
    if (b->inst[reduce].sub != QN_COMBINE_SUM ||
        qn__dtype_class(b->inst[number].type) != QN_CLASS_C)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: this reduction does not take %s", who,
                                qn_dtype_name(b->inst[number].type));
    uint32_t re = end_scalar_reduce(b, who, f, parts[0]);
    uint32_t distance = re ? repeat_reduce(b, who, reduce, dims) : 0;
    if (distance == 0)
        return (qn_val){0};
    uint32_t im = end_scalar_reduce(b, who, &b->frame[b->depth - 1],
                                    parts[1] >= reduce ? parts[1] + distance : parts[1]);
    return im ? qn_complex(b, qn__value(b, re, 0), qn__value(b, im, 0)) : (qn_val){0};
}

qn_val qn_end_reduce(qn_builder *b, qn_val value)
{
    const char *who = "qn_end_reduce";
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    uint32_t number;
    qn_frame *f = top_frame(b, who, QN_I_REDUCE, 0, "");
    if (!f || !qn__use(b, who, "value", value, &number))
        return (qn_val){0};
    if (qn__is_tuple(b, number))
        return end_complex_reduce(b, who, f, number);
    int type = b->inst[number].type;
    if (!qn__reducer_takes(b->inst[f->inst].sub, qn__dtype_class(type)))
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: this reduction does not take %s", who,
                                qn_dtype_name(type));
    return qn__value(b, end_scalar_reduce(b, who, f, number), qn__kind(value));
}
