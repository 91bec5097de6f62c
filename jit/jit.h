/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit.h: from a kernel and facts about its arguments to machine code, as bytes. jit/ neither caches
 * nor launches.
 *
 * The folders stand on a kernel's way, and each uses those before it only:
 *
 * facts/     in libquern: what is known about arguments, as a canonical byte string (the key)
 * analysis/  loads of one element become one (share.c), dimensions that every access walks as one
 *            become one (collapse.c), and those whose indices are divided two (straighten.c);
 *            shapes of values (analyse.c), affine addresses (affine.c), bits of integers (narrow.c)
 * schedule/  how the domain is walked: data in, data out; what compiling and running take
 *            (budget.c, estimate.c)
 * lower/     the kernel as LLVM IR; what a target does differently is a property or a hook
 * target/    the hooks of each family of targets: x86/, aarch64/, nvptx/
 * emit/      module -> object bytes or PTX, object -> relocation-free blob (elf.c); the pipeline
 *            (provider.c)
 *
 * provider.h has the one function between the two libraries.
 *
 * All but facts/ and emit/gdb.c belongs to the provider. LLVM is known from lower/ on.
 */
#ifndef QN_JIT_JIT_H
#define QN_JIT_JIT_H

#include "ir/ir.h"
#include "jit/facts/machine.h"
#include "jit/facts/target.h"

/* ---------------------------------------------------------------- targets */

/** Whether code of an instruction set is for a GPU; then `isa` is its compute capability, times 10.
 * That of QN_ISA_AUTO is not: it is for the processor. */
static inline bool qn__has_grid(int isa)
{
    return qn__target_row(isa)->has_grid;
}
/** The largest instruction set we generate for that a GPU of this compute capability (times 10)
 * runs; 0 if none. */
int qn__isa_of_gpu(int capability);
/** The lowest PTX ISA version (times 10) that has an instruction set; 0 for processors and unknown
 * ones. */
int qn__ptx_of_isa(int isa);

/** A record as text, one line for each group of numbers that it has. */
void qn__machine_print(const qn_machine *m, qn_text *out);

/* ---------------------------------------------------------------- facts (jit/facts/facts.c,
 * facts/gpu.c) */

/** Who may meet the elements of atomics while a launch runs: other launches and threads of the
 * host, too; the threads of the launch; or the one thread that it runs on, for which plain
 * instructions are atomic. */
enum { QN_ATOMICS_OF_ALL = 0, QN_ATOMICS_OF_THREADS = 1, QN_ATOMICS_OF_ONE = 2 };

/** A number that the code may rely on (exact) or must read from the argument block (dynamic). Of a
 * dynamic one it may know that it is a multiple of a power of two, that it is small, and a number
 * that it is not below. */
enum { QN_FACT_EXACT = 0, QN_FACT_DYNAMIC = 1 };
typedef struct qn_fact {
    int32_t kind;
    int32_t slot;     /* dynamic: index in the argument block; -1: computed from others */
    int64_t value;    /* exact; dynamic: 0 */
    int32_t multiple; /* dynamic: a power of two that divides it, 1 to QN_MOST_MULTIPLE; exact: 0 */
    int32_t is_small; /* dynamic: its magnitude is below 2^31; exact: 0 */
    int32_t least;    /* dynamic: it is at least that, if that is more than 0; exact: 0 */
    int32_t most; /* dynamic: it is at most that, up to QN_SHORT_EXTENT; 0: not known; exact: 0 */
} qn_fact;
/** Extents of which it is learned that they are at least one vector have as many elements as the
 * longest one has lanes. */
enum { QN_LONG_EXTENT = 64 };
/** Extents of a GPU's launch up to QN_SHORT_EXTENT have a class, which is a power of two from
 * QN_SHORTEST_CLASS on: a block has no more threads along them. */
enum { QN_SHORTEST_CLASS = 4, QN_SHORT_EXTENT = 32 };
/** The power of two that divides what a fact is about, as far as that is known. */
static inline int32_t qn__multiple_of(const qn_fact *f)
{
    return f->kind == QN_FACT_EXACT ? qn__power_of(f->value) : f->multiple;
}
/** All numbers that a fact allows. */
static inline qn_interval qn__fact_interval(const qn_fact *f)
{
    if (f->kind == QN_FACT_EXACT)
        return (qn_interval){f->value, f->value, false};
    return (qn_interval){f->least > 0  ? f->least
                         : f->is_small ? -INT32_MAX
                                       : INT64_MIN,
                         f->most > 0   ? f->most
                         : f->is_small ? INT32_MAX
                                       : INT64_MAX,
                         false};
}
/** Whether two facts are one number, whatever the launch. */
static inline bool qn__is_same_fact(const qn_fact *a, const qn_fact *b)
{
    return a->kind == b->kind &&
           (a->kind == QN_FACT_EXACT ? a->value == b->value : a->slot == b->slot);
}

typedef struct qn_digit_fact {
    qn_fact extent; /* of the last digit of a dimension: never read */
    qn_fact stride; /* elements */
} qn_digit_fact;

typedef struct qn_dim_fact {
    qn_fact lower, extent;
    int32_t first_digit, n_digits; /* in qn_facts.digit; 0 digits: projected */
    int32_t reach; /* of a dynamic stride: 1 + how many dimensions of the view have a smaller one;
                      else 0 */
} qn_dim_fact;

typedef struct qn_param_fact {
    int32_t slot;      /* of the data pointer, or of the scalar's bits if it is not constant */
    int32_t is_view;
    int32_t checks;      /* view: QN_CHECKS_..., that of the launch or its own */
    int32_t unit;        /* view: of qn_view */
    int32_t has_slots;   /* view: some of its dimensions have slots */
    int32_t n_parts;     /* scalar: 2 if complex, in slots that follow one another */
    int32_t is_constant; /* scalar: `bits` are exact */
    int32_t multiple;    /* scalar of an integer type: a power of two that divides it; 0: nothing is
                            known */
    int32_t is_small;    /* the same: its magnitude is below 2^31 */
    uint64_t bits[2];    /* of each part */
    /* Collected for NVPTX only, else 0. Whatever remembers code by a description of its arguments
     * must hold them too. */
    int32_t is_constant_memory; /* view: no element of it is written by the launch */
    int32_t align;              /* view: the data is a multiple of 1 << align bytes, at most 16 */
    uint64_t may_meet; /* straight code: bit q, the view may be that of parameter q */
    qn_dim_fact dim[QN_MAX_RANK];
} qn_param_fact;

/** Everything the code depends on besides the kernel. */
typedef struct qn_facts {
    int32_t n_params, n_dims, n_slots, n_digits;
    uint32_t n_accesses;
    int32_t isa;        /* QN_ISA_V3, ...; decides the target */
    const qn_target *target; /* the row of isa */
    int32_t ptx;        /* NVPTX: PTX ISA version times 10 */
    int32_t checks;     /* QN_CHECKS_... */
    int32_t is_ordered; /* overlap: scalar code in iteration order */
    int32_t atomics;    /* QN_ATOMICS_OF_...; QN_ATOMICS_OF_ALL if there are none. Set by the
                           launch, after collecting */
    qn_machine machine; /* that the code is for, in classes */
    int32_t is_portable; /* the code is for any processor of its instruction set; see
                            qn__facts_make_portable */
    int32_t prints_rows; /* what it writes counts behind a failure, too: the printed lines */
    int32_t is_large;    /* of a launch with dynamic extents: what it writes is worth non-temporal
                            stores; else 0 */
    qn_plan_options plan;
    char *schedule;        /* text of the schedule that the caller asks for; NULL: of a plan */
    size_t schedule_bytes; /* of that text, without its end */
    qn_fact begin[QN_MAX_RANK],
        end[QN_MAX_RANK]; /* of the domain; dynamic ones are computed from the prologue */
    qn_param_fact *param;
    qn_digit_fact *digit;
    uint8_t *proved; /* per access site: QN_IN_RANGE, QN_GUARDED, or 0 */
    uint32_t merged[QN_MAX_RANK]; /* of a dimension: bit d, dimension d runs within it
                                     (qn__collapse); not in the key */
    /* Of a dimension that became two (qn__straighten): where the launch's begins, and how many of
     * its iterations are one of it. Of the new dimension -1, which threads do not divide. Else 0;
     * not in the key. */
    int64_t from[QN_MAX_RANK], part[QN_MAX_RANK];
    int32_t is_straight; /* the kernel has short loops as straight code (qn__straighten): its index
                            tuples no longer tell which views may be one; not in the key */
    int32_t has_ranges;  /* a piece (jit/schedule/piece.h): its caller gives the ranges of the
                            dimensions `ranges`, and threads divide no others; not in the key */
    int32_t ranges[2];   /* -1: none */
    int64_t most[QN_MAX_RANK]; /* iterations of a dimension in one call of a piece whose range is
                                  dynamic; 0: any number; not in the key */
} qn_facts;

/** Whether an access is in range for the whole domain, performed or not. */
static inline bool qn__is_in_range(const qn_facts *f, uint32_t site)
{
    return f->proved[site] == QN_IN_RANGE;
}
/** Whether an access may be out of range and is then reported or clamped. */
static inline bool qn__is_checked(const qn_facts *f, const qn_kernel *k, uint32_t site)
{
    uint64_t p = k->inst[k->access[site].inst].imm;
    return !f->proved[site] && f->param[p].checks != QN_CHECKS_NONE;
}
/** Whether the strides of an access count what it moves: it is no part of an element, and offsets
 * count elements. */
static inline bool qn__is_plain_access(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    uint64_t p = k->inst[i].imm;
    return f->param[p].unit == 0 && !qn__has_parts(k->param[p].dtype);
}

/** Whether the range of a dimension is known. */
static inline bool qn__is_exact(const qn_facts *f, int d)
{
    return f->begin[d].kind == QN_FACT_EXACT && f->end[d].kind == QN_FACT_EXACT;
}
/** Iterations of a dimension; `unknown`, or -1, if they are not known. */
static inline int64_t qn__trips_or(const qn_facts *f, int d, int64_t unknown)
{
    return qn__is_exact(f, d) ? f->end[d].value - f->begin[d].value : unknown;
}
static inline int64_t qn__trips(const qn_facts *f, int d)
{
    return qn__trips_or(f, d, -1);
}
/** Iterations of a dimension, or how many they are at most, if that is known; else `unknown`. */
static inline int64_t qn__usual_trips(const qn_facts *f, int d, int64_t unknown)
{
    const bool is_short = f->begin[d].kind == QN_FACT_EXACT && f->end[d].most > f->begin[d].value &&
                          f->begin[d].value >= 0;
    return qn__trips_or(f, d,
                        f->most[d] > 0 ? f->most[d]
                        : is_short     ? f->end[d].most - f->begin[d].value
                                       : unknown);
}
/** Whether the caller of a piece gives the range of a dimension: any part of what the facts say. */
static inline bool qn__is_given(const qn_facts *f, int d)
{
    return f->has_ranges && (d == f->ranges[0] || d == f->ranges[1]);
}
/** Whether the iterations of a dimension are a multiple of n, a power of two up to
 * QN_MOST_MULTIPLE, in every launch. */
static inline bool qn__is_multiple(const qn_facts *f, int d, int64_t n)
{
    if (qn__is_given(f, d))
        return n == 1;
    if (qn__is_exact(f, d))
        return (f->end[d].value - f->begin[d].value) % n == 0;
    return qn__multiple_of(&f->begin[d]) % n == 0 && qn__multiple_of(&f->end[d]) % n == 0;
}

/** Whether the iterations of a dimension are at least n in every launch. */
static inline bool qn__is_at_least(const qn_facts *f, int d, int64_t n)
{
    if (qn__is_given(f, d))
        return n <= 1;
    if (qn__is_exact(f, d))
        return f->end[d].value - f->begin[d].value >= n;
    return f->begin[d].kind == QN_FACT_EXACT && f->begin[d].value >= 0 &&
           f->end[d].least - f->begin[d].value >= n;
}

/** Powers of two that divide all values of a parameter's numbers that were met: exponents; and bit
 * d of a mask: extents of dimension d were at least QN_LONG_EXTENT. */
typedef struct qn_common {
    uint16_t is_long;
    uint8_t extent[QN_MAX_RANK], stride[QN_MAX_RANK], lower[QN_MAX_RANK];
    uint8_t scalar;
} qn_common;

/** How much of the arguments becomes constant. Bit d of a mask: dimension d of that parameter is
 * dynamic. Pins of the options of the launch go before it, unless the version is generic. */
typedef struct qn_policy {
    bool all_dynamic;         /* every extent, lower bound and stride but strides from -4 to 4 */
    const uint32_t *dynamic_extents; /* per parameter, may be NULL: extents left dynamic */
    const uint32_t
        *dynamic_strides; /* the same of strides; NULL: those of a view with dynamic extents are */
    const qn_common *common; /* per parameter: what dynamic numbers have in common; NULL: nothing */
    bool constant_scalars;
    const uint32_t
        *constants;  /* two words, may be NULL: scalar parameters that become constants, too */
    bool is_generic; /* nothing: every lower bound, extent and stride is dynamic, and no access is
                        proved to be inside */
} qn_policy;

/** A launch of which facts are collected. */
typedef struct qn_launched {
    const qn_arg *args; /* checked */
    const qn_domain *domain;
    const uint8_t *proved;     /* for each access, may be NULL */
    const qn_options *options; /* may be NULL */
    const qn_policy *policy;   /* may be NULL */
    int isa;
    bool is_ordered; /* iterations come in order */
} qn_launched;
/** Collects facts, into memory of their own. On success qn__facts_release frees the arrays. */
qn_status qn__facts_collect(const qn_kernel *k, const qn_launched *l, qn_facts *out, qn_error *err);
void qn__facts_release(qn_facts *f);
/** A copy with arrays of its own; false without memory, and *to is empty then. */
bool qn__facts_copy(const qn_facts *f, qn_facts *to);
/** All values of instruction i in a launch with these facts, if it is none of the body's that
 * depends on the domain; given those of its operands, value[number]. */
qn_interval qn__facts_range(const qn_kernel *k, const qn_facts *f, const qn_interval *value,
                            uint32_t i);
/** Sets `machine`, from numbers that were read, and is_large; the rest was collected for these
 * arguments. */
void qn__facts_measure(const qn_kernel *k, const qn_arg *args, const qn_domain *domain,
                       const qn_machine *machine, qn_facts *f);
/** Leaves out what depends on the machine: the machine is the row of the instruction set, is_large
 * is 0. Slots and the rest stay. */
void qn__facts_make_portable(qn_facts *f);
/* Non-temporal stores pay where all that is touched is more than the last cache, what is written
 * more than a part of it, and rows are long. */
enum { QN_STREAM_ROW_BYTES = 1024, QN_STREAM_PARTS = 8 };
static inline bool qn__is_worth_streaming(const qn_facts *f, double touched_bytes,
                                          double written_bytes)
{
    double cache = (double)f->machine.cache[QN_CACHE_LAST].bytes;
    return touched_bytes > cache && written_bytes * (double)QN_STREAM_PARTS > cache;
}
/** Whether a scalar of these bits, no constant, is what the code relies on. */
bool qn__scalar_holds(const qn_param_fact *f, int dtype, uint64_t bits);
/** Fills the argument block (n_slots entries) for the arguments. */
void qn__facts_fill(const qn_facts *f, const qn_kernel *k, const qn_arg *args, int64_t *slots);

/* ---------------------------------------------------------------- key (jit/facts/key.c) */

/** Canonical bytes of facts, field by field; the same facts give the same bytes. */
void qn__key_encode(const qn_facts *f, qn_text *out);
/** The inverse; errors on malformed bytes. */
qn_status qn__key_decode(const void *key, size_t n, qn_facts *out, qn_error *err);
/** Facts as text, one a line. */
void qn__key_print(const qn_facts *f, const qn_kernel *k, qn_text *out);

/* ---------------------------------------------------------------- plan (jit/schedule/plan.c,
 * schedule/print.c) */

/** How a processor walks the domain, by rules; jit/schedule/grid.h has what threads of a GPU do. A
 * plan is data: printed, overridable field by field, kept with the code. */
typedef struct qn_plan {
    int32_t n_loops;             /* sequential and parallel dimensions */
    int32_t order[QN_MAX_RANK];  /* domain dimension numbers, outermost first */
    int32_t lane_dim; /* dimension whose iterations are lanes; -1: scalar code. May be a reduction
                         dimension */
    int32_t width;               /* lanes of one vector */
    int32_t unroll;              /* vectors of the lane dimension in one step */
    int32_t trip_width;          /* lanes of trips of loops of the body; 0: none are lanes */
    int32_t jam_dim, jam;        /* second jammed parallel dimension, -1 and 1 if none */
    int32_t cross_dim,
        cross; /* a third one, in a register tile whose lanes are a batch; ends like the second */
    int32_t transpose; /* 0, or p->jam: that dimension is innermost, and accesses that run along the
                          jammed iterations are transposed in registers */
    int32_t remainder; /* QN_TAIL_... of the lane dimension: NONE, MASK, SCALAR or NARROWER */
    int32_t jam_rest; /* of the jammed one: OVERLAP, or SCALAR: a smaller step where its size is
                         known, else one by one; or NARROWER: in steps of 8, 4, 2 and 1 */
    uint32_t pack; /* load that is copied for each step of the lanes, 0: none (jit/lower/fill.c) */
    uint32_t pack_rows; /* load whose jammed iterations lie side by side, which is copied for so
                           many steps of theirs at a time, 0: none */
    int32_t row_steps;
    int64_t scratch_bytes;       /* for the copies, the sums of a strip, or what is carried */
    int32_t strip; /* iterations of the lanes whose sums are in memory while points run outside, a
                      few at once (jam; jam_dim is the dimension of the points then); 0: sums are in
                      registers */
    int32_t straight;            /* a reduce of at most so many additions has no loop */
    int32_t prefetch;    /* so many points of a reduce ahead, what is far apart is asked for; 0:
                            nothing is */
    int32_t steps_ahead; /* so many steps of the lanes ahead, all that a tile loads is asked for; 0:
                            nothing is */
    int32_t front_bytes; /* so far ahead, what the first of many rows of a view meets is asked for;
                           0: nothing is */
    int64_t tile[QN_MAX_RANK];   /* cache tile of each dimension, 0: none */
    int32_t
        tile_at; /* the loops over tiles are outside loop order[tile_at]; -1: there are none */
    int32_t streams;             /* 1: non-temporal stores */
    int32_t end_rows; /* rows of a transposing kernel at a time whose streams begin anywhere in a
                      line: what a step of the lanes stores waits for the next one to fill lines; 0:
                      there are none */
    int32_t split_dim;           /* domain dimension that threads divide, -1: none */
    int64_t granule;             /* its chunks start at multiples of this, counted from its begin */
    int32_t second_dim;          /* another one that they divide as well, */
    int64_t second_granule;      /* at such multiples; 0: there is none */
    int32_t n_shared_reduces;    /* split_dim is that of so many reduces, the blocks of whose
                                    points threads divide */
    int32_t atomics; /* QN_ATOMICS_OF_...; those of threads are plain in a launch that says in
                        QN_ALONE_WORD that it has one */
    uint32_t merged[QN_MAX_RANK]; /* dimensions that run within each, see qn_facts */
} qn_plan;

/** Where nothing is checked (QN_CHECKS_NONE), takes the assertions out of a kernel of the
 * provider's own (jit/analysis/share.c). */
void qn__drop_assertions(qn_kernel *k, const qn_facts *f);
/** Makes straight code of each `if` whose sides compute no more than a branch costs
 * (jit/schedule/select.c). Out of memory: changes nothing. */
void qn__select_sides(qn_kernel *k, const qn_facts *f);
/** Makes loads of one element one; changes the kernel and the access sites of *f, which were
 * collected for it and stand in its key as they were (jit/analysis/share.c). Out of memory: changes
 * nothing. */
void qn__share_loads(qn_kernel *k, qn_facts *f);
/** Merges parallel dimensions that every access walks as one: their ranges in *f change
 * (jit/analysis/collapse.c). Keys are made of facts as they were collected. Out of memory: merges
 * none. */
void qn__collapse(const qn_kernel *k, qn_facts *f);
void qn__plan_print(const qn_plan *p, const qn_kernel *k, qn_text *out);

/* ---------------------------------------------------------------- generated code */

/**
 * The entry of generated code. slots: the argument block. range: [0], [1] the chunk of the split
 * dimension (its whole range when there is none: ignored then), then begin and end of each
 * sequential dimension in order, then those of the chunk of the second split dimension, if there is
 * one, then, if the blob needs scratch memory, its address, aligned to 64 bytes. fault: cleared by
 * the caller; several chunks have one each, and memory of their own.
 *
 * With n_shared_reduces the split dimension is that of reduces, its chunks are points, and range[2]
 * is memory for 8 bytes for each of them and each block of 4096 points, aligned to 8 bytes and
 * common to all chunks; QN_PHASES_WORD says what is done: the results of the blocks of a chunk, or,
 * once, when all chunks are done, the rest.
 *
 * With atomics of several threads (qn_plan), range[QN_ALONE_WORD] says whether this call is the
 * only one of its launch.
 */
enum { QN_PHASE_POINTS = 1, QN_PHASE_REST = 2, QN_PHASES_WORD = 3 };
/** The last word of a range: 1 if this call is the only one of its launch that runs now, 0 if
 * several threads have one each. */
enum { QN_ALONE_WORD = 4 + 2 * QN_MAX_RANK, QN_RANGE_WORDS };
typedef void (*qn_entry)(const int64_t *slots, const int64_t *range, qn_fault *fault);
/** Where the chunk of the second split dimension stands in a range, and the address of the scratch
 * memory. */
static inline int qn__second_word(int n_sequential)
{
    return 2 + 2 * n_sequential;
}
static inline int qn__scratch_word(int n_sequential, int64_t second_granule)
{
    return qn__second_word(n_sequential) + (second_granule ? 2 : 0);
}

/*
 * Code for NVPTX is PTX text (zero-terminated, the zero counted) with one kernel for each step:
 * QN_GPU_ENTRY, then QN_GPU_ENTRY "_2". A launch runs the steps in order on one stream. Each kernel
 * has one parameter, an array by value of n_words 64-bit words (CUDA: void *params[1] = {words}),
 * the same for all steps:
 *
 *   [0, n_slots)            the argument block (qn__facts_fill)
 *   2 for each sequential   begin and end; the host launches all steps once for every index of the
 * sequential dimensions, dimension               in order: [i, i + 1) 1 device address of the
 * qn_gpu_fault, which the host cleared before the first launch 1                       device
 * address of the scratch memory, aligned to 16 bytes; 0 if it needs none
 *
 * With words_in_memory the words are too many for a parameter: it is then one 64-bit device address
 * of them. Blocks take units of work blockIdx.x, blockIdx.x + gridDim.x, ..., so any grid of one
 * dimension is correct, unless each unit has a block of its own. The number of units is
 * qn__gpu_units; 0: nothing to launch.
 */
#define QN_GPU_ENTRY "qn_kernel"
enum { QN_GPU_STEPS = 2 };

/** One kernel of a module of PTX. */
typedef struct qn_gpu_step {
    int32_t threads[3];   /* of a block */
    int32_t shared_bytes; /* dynamic shared memory of a block */
    int32_t has_block_for_each; /* of the units: the grid must have so many blocks */
    int32_t most_blocks;        /* 0: as many as there are units */
    int64_t units; /* of work along all dimensions that have no tile; 0: one */
    int64_t points; /* points of the reduction dimensions (all of them as one) that one unit takes;
                       0: all */
    int64_t tile[QN_MAX_RANK]; /* iterations that one unit takes of each parallel dimension whose
                                  extent is dynamic; 0: all of them, or `units` has them */
} qn_gpu_step;

/** What a launch must know of PTX. */
typedef struct qn_gpu_info {
    int32_t n_steps; /* 0: the code is not PTX */
    int32_t n_words;
    int32_t words_in_memory;
    int32_t reserved;
    int64_t scratch_per_unit; /* bytes of scratch for each unit of the first step; contents need not
                                 be kept */
    qn_gpu_step step[QN_GPU_STEPS];
} qn_gpu_info;

/** Units of work of a step over a domain. */
int64_t qn__gpu_units(const qn_gpu_step *s, const qn_kernel *k, const qn_domain *domain);

/** The fault record of a launch in device memory. Cleared: qn__fault_clear and lock = 0. It is
 * complete when the kernel has ended. As on the host, the first failure in iteration order stands
 * in it. */
typedef struct qn_gpu_fault {
    qn_fault fault;
    uint64_t lock; /* held by the thread that writes the record */
} qn_gpu_fault;

/** What a launch must know of a blob; kept with it. */
typedef struct qn_blob_info {
    int32_t split_dim;    /* -1: one chunk */
    uint32_t split_merged; /* bit d: dimension d runs within it; the range is the product of all */
    int32_t n_sequential; /* dimensions */
    int64_t scratch_bytes; /* memory of each chunk, see qn_entry; 0: none */
    int32_t n_shared_reduces; /* x86: reduces whose points chunks divide, see qn_entry; 0: chunks
                                 are iterations */
    int64_t chunk;        /* iterations that are worth a chunk */
    int32_t chunks_per_thread; /* to even out their times, 1 where each repeats some work */
    int32_t second_dim;
    int64_t granule, second_granule; /* the second is 0 if second_dim is not divided */
    uint32_t entry;       /* offset of the entry in the code */
    uint32_t align;       /* of the code, a power of two <= 4096 */
    qn_gpu_info gpu;      /* NVPTX only, where split_dim is -1 */
} qn_blob_info;

/** ELF object of a machine (EM_...) -> blob (jit/emit/elf.c). Sections .text and .rodata*, and
 * relocations between them that are relative to their place; anything else is QN_ERR_INTERNAL
 * naming it. QN_ERR_TARGET: an object of another machine; QN_ERR_LIMIT: the code is too large for
 * its instructions. Appends the bytes to `code`. */
qn_status qn__elf_to_blob(const void *object, size_t n, int machine, const char *symbol,
                          qn_text *code, uint32_t *entry, uint32_t *align, qn_error *err);

#endif
