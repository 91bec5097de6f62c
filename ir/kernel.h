/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h: the finished kernel, its walk and its text. Included by ir.h, whose part it is.
 *
 * A kernel is one flat array of instructions in program order. An instruction's number is its
 * value. An instruction with regions (if, for, while, reduce, an update) is followed by their
 * instructions, nested, so a region is a range of numbers:
 *
 *   i            if %c          region[0] = i+1   begin of the first region
 *   i+1 ...      then ... yield region[1]         begin of the second; without: region[2]
 *   ...          else ... yield region[2]         one past the last region
 *   region[2]    result 0       the results of if, for and while follow as `result` instructions
 *
 * The last instruction of a region that is not empty is its yield.
 * An instruction without regions has region[0] = region[1] = region[2] = its number + 1. To walk a
 * region: for (i = begin; i < end; i = k->inst[i].region[2]). Instruction 0 is never used (number 0
 * is the inert value).
 *
 * The instructions before k->body (constants, parameters, extents, arithmetic on them, and the
 * `dim` instructions) are the prologue: uniform, evaluated once; they give the domain. The rest
 * runs once per iteration.
 */
#ifndef QN_IR_IR_H
#include "ir/ir.h" /* which includes this file in its place */
#elif !defined(QN_IR_KERNEL_H)
#define QN_IR_KERNEL_H

/** Core instructions: the rows of ir/instructions.def. The pure ops of ops.def follow with number
 * QN_I_PURE + QN_OP_<name>. */
enum {
#define QN_INST(NAME, ...) QN_I_##NAME,
#include "ir/instructions.def"
#undef QN_INST
    QN_N_CORE_INSTS,
    QN_I_PURE = 32
};

/** What the table says of a core instruction. */
typedef enum qn_effect {
    QN_EFFECT_NONE,
    QN_EFFECT_PURE,
    QN_EFFECT_LOAD,
    QN_EFFECT_STORE,
    QN_EFFECT_TELL
} qn_effect;
typedef struct qn_inst_info {
    const char *word;
    uint8_t effect, n_regions; /* a qn_effect */
    bool uses_sub, uses_imm;
} qn_inst_info;
extern const qn_inst_info qn__inst_info[QN_I_PURE]; /* behind QN_N_CORE_INSTS: all zero */
/** Name of an instruction for messages: its keyword; "?" for what is none. */
const char *qn__inst_name(int op);

/** `sub` of an atomic that replaces the old value by one made of it, in one atomic step: args
 * indices; region: carried (the old value), pure ops, yield the new one. The text shows it as a
 * load, these ops and a store. */
enum { QN_UPDATE = QN_N_COMBINES };

typedef enum qn_dim_kind {
    QN_DIM_PARALLEL = 0,
    QN_DIM_REDUCTION = 1,
    QN_DIM_SEQUENTIAL = 2
} qn_dim_kind;

typedef struct qn_inst {
    uint8_t op;   /* QN_I_... or QN_I_PURE + QN_OP_... */
    uint8_t type; /* qn_dtype of the value, QN_VOID if there is none */
    uint8_t sub;
    uint8_t n_args;
    uint32_t args;      /* first operand in k->operand */
    uint32_t parent;    /* the if, for, while, reduce or update it stands in; 0 at the top */
    uint32_t region[3]; /* see above */
    uint64_t imm;
} qn_inst;

/** How many numbers QN_PIN_EXTENT, ... name. */
enum { QN_PIN_KINDS = QN_PIN_SCALAR + 1 };
/** What is pinned of the numbers of a parameter, by QN_PIN_EXTENT, ...; bit d of a mask: dimension
 * d. */
typedef struct qn_pinned {
    uint16_t constant[QN_PIN_KINDS], dynamic[QN_PIN_KINDS];
    uint8_t exponent[QN_PIN_KINDS][QN_MAX_RANK]; /* it is a multiple of 2 to this power */
} qn_pinned;

typedef struct qn_kernel_parameter {
    char *name;
    const qn_record *record; /* of dtype QN_RECORD, with a reference */
    int32_t dtype, rank; /* rank -1: scalar */
    uint32_t traits;
    bool is_read, is_written, has_atomics;
    qn_pinned pinned;
} qn_kernel_parameter;

/** A memory access: numbered in program order. */
typedef struct qn_access {
    uint32_t inst; /* load, store or atomic */
    uint32_t site; /* its index in k->access */
} qn_access;

/** The elements of a constant array. Counted, immutable. */
typedef struct qn_elements {
    _Atomic int64_t references;
    int32_t dtype, n;
    uint64_t bits[]; /* [n], canonical */
} qn_elements;

/** Places in the source of the host, and names of values (ir/location.h). */
typedef struct qn_location qn_location;
typedef struct qn_locations qn_locations;

/** Kernels made of a kernel (ir/variant.c). */
typedef struct qn_variant qn_variant;

/** What was done to a kernel whose arguments have tables, see qn__kernel_expand. */
typedef struct qn_expansion {
    qn_kernel *given; /* with a reference */
    uint32_t tables[QN_MAX_PARAMS]; /* of its parameters: bit d: dimension d has a table */
    uint64_t stored;  /* bit p: it stores to parameter p, not only through atomics */
    uint8_t param[QN_MAX_PARAMS],
        dim[QN_MAX_PARAMS]; /* whose table a parameter is that was added */
} qn_expansion;

struct qn_kernel {
    _Atomic int64_t references;
    qn_variant *_Atomic variants; /* only grows */
    char *name;
    uint32_t flags;
    int32_t n_params, n_dims;
    uint32_t n_insts, n_operands, n_accesses;
    uint32_t body; /* first instruction after the prologue */
    qn_kernel_parameter *param;
    qn_inst *inst;        /* [n_insts], [0] unused */
    uint32_t *operand;    /* [n_operands] */
    uint32_t dim[QN_MAX_RANK]; /* the dim instructions, in order */
    qn_access *access;    /* [n_accesses] */
    bool is_in_place_safe; /* every view both read and written has one index tuple throughout (same
                              value numbers), so that "same" views carry no dependence across
                              iterations */
    qn_elements **array; /* [n_arrays], with references: the constant arrays, in the order of their
                            first lookups */
    int32_t n_arrays;
    char **message; /* [n_messages], of assertions and prints, each once, in the order of the first
                       ones */
    int32_t n_messages;
    qn_function *
        *function; /* [n_functions], with references: those that it calls, callees before callers */
    int32_t n_functions;
    bool has_prints;    /* itself, or in functions that it calls */
    qn_kernel *inlined; /* without calls, or of a kernel that has none: without prints; with one
                           reference; NULL: neither is there, or the kernel would be too large */
    qn_kernel *_Atomic printing; /* made when it is first needed, with one reference
                                    (ir/print_kernel.c) */
    bool prints_rows;        /* the kernel that prints into a view (ir/print_kernel.c) */
    bool is_replay;          /* made of another kernel, under larger limits */
    qn_expansion *expansion; /* NULL: the kernel is as it was built */
    qn_locations *locations; /* NULL: no instruction has a place or a name */
    uint64_t hash;        /* of the anonymous text */
    char *canonical; /* the anonymous text: names of kernel and parameters replaced by numbers */
    size_t canonical_bytes;
};

static inline const uint32_t *qn__args(const qn_kernel *k, uint32_t i)
{
    return k->operand + k->inst[i].args;
}
/** Limits of kernels that are made of kernels: inlined, expanded, with other traits. Those of
 * QN_MAX_OPS and QN_MAX_REGIONS count what was written. */
enum { QN_MAX_REPLAY_OPS = 40000, QN_MAX_REPLAY_REGIONS = 2000 };
/** The kernel that facts, code generators and launches look at: without calls and prints where that
 * exists. */
static inline const qn_kernel *qn__kernel_to_run(const qn_kernel *k)
{
    while (k && k->inlined)
        k = k->inlined;
    return k;
}
/** The kernel of launches whose lines the host wants: without calls where that exists, so that all
 * engines load the same elements. A value that only an ignored argument of a call needs is not
 * computed. */
static inline const qn_kernel *qn__kernel_to_print(const qn_kernel *k)
{
    return k->n_functions > 0 && k->inlined ? k->inlined : k;
}
/** Whether an instruction is an atomic whose region says what it does. */
static inline bool qn__is_update(const qn_inst *x)
{
    return x->op == QN_I_ATOMIC && x->sub == QN_UPDATE;
}
/** Whether an instruction is an if, for, while or reduce; an update has a region, too. */
static inline bool qn__opens_regions(const qn_inst *x)
{
    return x->op < QN_I_PURE && qn__inst_info[x->op].n_regions > 0;
}
static inline bool qn__has_regions(const qn_inst *x)
{
    return qn__opens_regions(x) || qn__is_update(x);
}
/** Whether instruction i is a loop of the body, which has trips. */
static inline bool qn__is_body_loop(const qn_kernel *k, uint32_t i)
{
    return k->inst[i].op == QN_I_FOR || k->inst[i].op == QN_I_WHILE;
}
/** What a core instruction does beside giving a value; table ops are pure. */
static inline qn_effect qn__effect(const qn_inst *x)
{
    return x->op < QN_I_PURE ? (qn_effect)qn__inst_info[x->op].effect : QN_EFFECT_PURE;
}
/** Whether an instruction is a load, store or atomic. */
static inline bool qn__is_access(const qn_inst *x)
{
    return qn__effect(x) == QN_EFFECT_LOAD || qn__effect(x) == QN_EFFECT_STORE;
}
/** What domain dimension d is; one that the kernel has not is neither parallel nor a reduction. */
static inline qn_dim_kind qn__dim_kind(const qn_kernel *k, int d)
{
    return (qn_dim_kind)k->inst[k->dim[d]].sub;
}
static inline bool qn__is_parallel(const qn_kernel *k, int d)
{
    return d >= 0 && d < k->n_dims && qn__dim_kind(k, d) == QN_DIM_PARALLEL;
}
static inline bool qn__is_reduction(const qn_kernel *k, int d)
{
    return d >= 0 && d < k->n_dims && qn__dim_kind(k, d) == QN_DIM_REDUCTION;
}
static inline int qn__n_sequential(const qn_kernel *k)
{
    int n = 0;
    for (int d = 0; d < k->n_dims; d++)
        n += qn__dim_kind(k, d) == QN_DIM_SEQUENTIAL;
    return n;
}
/** The n-th dimension of a reduce. */
static inline int qn__dim_of(const qn_kernel *k, uint32_t reduce, int n)
{
    return (int)k->inst[qn__args(k, reduce)[n]].imm;
}
/** Whether a reduce is over dimension d. */
static inline bool qn__is_over(const qn_kernel *k, uint32_t reduce, int d)
{
    for (int n = 0; n < k->inst[reduce].n_args; n++)
        if (qn__dim_of(k, reduce, n) == d)
            return true;
    return false;
}
/** The op number of a pure instruction, 0 for core instructions. */
static inline int qn__pure(const qn_inst *x) { return x->op >= QN_I_PURE ? x->op - QN_I_PURE : 0; }
/** Whether an instruction has no effect and reads no memory: const, param, extent, lower, casts,
 * lookups, table ops. */
static inline bool qn__is_pure(const qn_inst *x)
{
    return qn__effect(x) == QN_EFFECT_PURE;
}
/** Points of the blocks of the order rules, and partials of a striped one. */
enum { QN_BLOCK_POINTS = 4096, QN_PARTIALS = 64 };
/** The order rule that the result of a reduce depends on; 0 if it depends on none: only that of
 * floats does. */
static inline int qn__order_rule(const qn_kernel *k, uint32_t reduce)
{
    return qn__dtype_class(k->inst[reduce].type) == QN_CLASS_F ? (int)k->inst[reduce].imm : 0;
}
/** Whether neighbours may be combined first: of integers always, and in any order. The least of
 * floats is the last one of those that are equal, and any NaN, wherever the brackets stand. */
static inline bool qn__is_associative(const qn_kernel *k, uint32_t reduce)
{
    const qn_inst *x = &k->inst[reduce];
    return qn__dtype_class(x->type) != QN_CLASS_F ||
           (qn__order_rule(k, reduce) != QN_STRIPED &&
            (x->sub == QN_COMBINE_MIN || x->sub == QN_COMBINE_MAX));
}
/** The product whose factors a reduce adds with one rounding each, fma(x, y, sum): what a sum of
 * floats yields, where the kernel has QN_CONTRACT. 0 if it adds values. Block results and partials
 * are added as ever. */
static inline uint32_t qn__contracted_product(const qn_kernel *k, uint32_t reduce)
{
    const qn_inst *x = &k->inst[reduce];
    uint32_t value = qn__args(k, x->region[1] - 1)[0];
    bool is_float = qn__dtype_class(x->type) == QN_CLASS_F;
    return (k->flags & QN_CONTRACT) && x->sub == QN_COMBINE_SUM && is_float &&
                   qn__pure(&k->inst[value]) == QN_OP_mul
               ? value
               : 0;
}
/** The array that lookup i reads. */
static inline const qn_elements *qn__array_of(const qn_kernel *k, uint32_t i)
{
    return k->array[k->inst[i].imm];
}
/** The element that an index reads: the first below the array, the last beyond it. */
static inline uint64_t qn__lookup(const qn_elements *e, int64_t index)
{
    return e->bits[index < 0 ? 0 : index >= e->n ? e->n - 1 : index];
}
/** Whether a kernel, or one of the functions that it calls, has assertions or prints
 * (ir/build/assert.c). A kernel that runs has no prints. */
bool qn__has_assertions(const qn_kernel *k);
/** The number of a message in a list of at most QN_MAX_MESSAGES, where it is entered, as a copy, if
 *  it is new; -1 without room, -2 without memory (ir/build/assert.c). */
int qn__list_message(char **list, int32_t *n, const char *message);
/** Whether the index of lookup i is in the array whatever its operands are (ir/array.c). */
bool qn__is_lookup_proved(const qn_kernel *k, uint32_t i);
/** Where load, store or atomic i stands in k->access (ir/finish.c). */
uint32_t qn__site_of(const qn_kernel *k, uint32_t i);
/** The dtype that a load, store or atomic moves. */
static inline int qn__access_dtype(const qn_kernel *k, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    return x->op == QN_I_STORE ? k->inst[qn__args(k, i)[x->n_args - 1]].type : x->type;
}
static inline int64_t qn__access_bytes(const qn_kernel *k, uint32_t i)
{
    return qn_dtype_bytes(qn__access_dtype(k, i));
}
/** Bytes from the start of the element to what it moves. */
static inline int64_t qn__access_offset(const qn_kernel *k, uint32_t i)
{
    const qn_kernel_parameter *p = &k->param[k->inst[i].imm];
    return k->inst[i].op == QN_I_ATOMIC ? 0 : qn__part_offset(p->dtype, p->record, k->inst[i].sub);
}
/** Number of index operands of a load, store or atomic: the rank of its view. */
static inline int qn__n_indices(const qn_kernel *k, uint32_t i)
{
    return k->param[k->inst[i].imm].rank;
}

/** What the table says of an op; [0] is unused. */
typedef struct qn_op_info {
    const char *name;
    uint8_t rule, arity, classes; /* QN_RULE_..., n, or of QN_CLASS_... */
} qn_op_info;
enum { QN_RULE_SAME = 0, QN_RULE_COMPARE = 1, QN_RULE_SELECT = 2 };
extern const qn_op_info qn__op_info[QN_N_TABLE_OPS];

/** What the table says of a reducer. */
typedef struct qn_reducer_info {
    const char *name;
    uint8_t op, classes, neutral; /* QN_OP_... or 0, or of QN_CLASS_..., QN_NEUTRAL_... */
    bool is_reduction, is_atomic;
} qn_reducer_info;
enum {
    QN_NEUTRAL_NONE,
    QN_NEUTRAL_ZERO,
    QN_NEUTRAL_ONE,
    QN_NEUTRAL_LARGEST,
    QN_NEUTRAL_LOWEST,
    QN_NEUTRAL_ONES
};
extern const qn_reducer_info qn__reducer_info[QN_N_COMBINES];
/** The op with which a reducer combines; 0 for exchanges, which take the new value. */
static inline int qn__combine_op(int combine)
{
    return qn__reducer_info[combine].op;
}
/** Whether an atomic has a reducer that combines the old value with the new one. */
static inline bool qn__combines(int combine)
{
    return combine < QN_N_COMBINES && qn__combine_op(combine);
}
/** Whether a reducer takes values of a class. */
static inline bool qn__reducer_takes(int combine, int cls)
{
    return (qn__reducer_info[combine].classes & cls) != 0;
}
/** Whether a number is that of a reducer for reductions, or for atomics. */
static inline bool qn__is_reduction_combine(int combine)
{
    return combine >= 0 && combine < QN_N_COMBINES && qn__reducer_info[combine].is_reduction;
}
static inline bool qn__is_atomic_combine(int combine)
{
    return combine >= 0 && combine < QN_N_COMBINES && qn__reducer_info[combine].is_atomic;
}
/** The reducer of atomics that an op does when it updates an element, or -1. */
int qn__combine_of_op(int op);

/** qn_kernel_parse of the canonical text of a kernel, whatever made it: the limits are those of
 * QN_MAX_REPLAY_OPS. */
qn_status qn__kernel_parse_canonical(const char *text, size_t n, qn_kernel **out, qn_error *err);
/** Verifies a finished kernel (ir/verify.c): a loop over the table and the rules of ir.h. */
qn_status qn__verify(const qn_kernel *k, qn_error *err);
/** Appends the text of a kernel (ir/print.c). Anonymous: kernel is "k", parameters are p0, p1, ...
 */
void qn__print(const qn_kernel *k, bool anonymous, qn_text *out);
/** The line, from 1, of each of its instructions in that text; 0 for those without a line. False
 * without memory. */
bool qn__print_lines(const qn_kernel *k, uint32_t *line);
/** The kernel with the view parameters in `atomics` (bit p: parameter p) declared atomic too:
 * updates of their elements become atomics. *out is borrowed, for the life of k (ir/variant.c).
 * Threads may call it at once. */
qn_status qn__kernel_atomic(const qn_kernel *k, uint64_t atomics, const qn_kernel **out,
                            qn_error *err);
void qn__variants_free(qn_variant *v);
/** Frees a kernel's arrays; for qn_kernel_release and failed builds. */
void qn__kernel_free(qn_kernel *k);
/** A copy of a kernel that runs, for a code generator that changes the copy; NULL without memory
 * (ir/copy.c). */
qn_kernel *qn__kernel_copy(const qn_kernel *k);

/**
 * The kernel for arguments with tables (ir/expand_tables.c). `tables`: per view parameter, bit d:
 * dimension d has one. Each access first loads the values of the tables, from i64 parameters that
 * follow the others, in order of parameter and dimension; their other dimensions are to be
 * projected, so that a fault knows all indices. The accessed parameter has the values as indices,
 * and then the positions, in dimensions of their own (see qn__layout_expand). An ordinary kernel,
 * with one reference.
 */
qn_status qn__kernel_expand(const qn_kernel *k, const uint32_t *tables, qn_kernel **out,
                            qn_error *err);
/** Parameters that the caller of a launch gives. */
static inline int qn__n_given(const qn_kernel *k)
{
    return k->expansion ? k->expansion->given->n_params : k->n_params;
}

#endif
