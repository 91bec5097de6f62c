/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential.h: the parts of the random-kernel tester, which runs one random kernel on every
 * engine and in many ways and expects one answer. Everything of a case follows from one number, so
 * a case can be made again alone.
 *
 * differential.c         the program: arguments, time bound, summary
 * differential_args.c    random numbers, layouts, views and their memory
 * differential_kernel.c  parameters, domain, the frame of a kernel
 * differential_parts.c   elements of several parts, and other units
 * differential_value.c   random values: constants, indices, loads, ops
 * differential_function.c  random functions and their calls, mathematical functions, lookups
 * differential_block.c   random statements: stores, atomics, regions
 * differential_update.c  random updates through atomic views
 * differential_domain.c  domains of plain kernels
 * differential_plain.c   plain kernels, of a few loads, products and sums
 * differential_plan.c    random plans, and the count of what plans do
 * differential_schedule.c, differential_steps.c, differential_tree.c  random schedules
 * differential_grid.c    random schedules of a grid
 * differential_change.c  texts of schedules with words changed
 * differential_run.c     the ways to run, and the comparison
 * differential_reduce.c  makes a failing kernel smaller
 */
#ifndef QN_TESTS_DIFFERENTIAL_H
#define QN_TESTS_DIFFERENTIAL_H

#include "quern.h"
#include "tests/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------- random numbers */

typedef struct randoms {
    uint64_t state;
} randoms;
uint64_t random_bits(randoms *r);
/** 0 <= result < n, n > 0. */
int random_below(randoms *r, int n);
int64_t random_between(randoms *r, int64_t low, int64_t high);
/** A number near a power of two that 32 bits do not hold. */
int64_t random_far(randoms *r);
/** Where n indices begin: at `begin`, or seldom near the first or the last number of 64 bits. */
int64_t random_at_limit(const randoms *r, int64_t begin, int64_t n);
bool random_percent(randoms *r, int percent);
/** Any dtype. */
int random_dtype(randoms *r);
bool is_float(int dtype);
bool is_half(int dtype);
bool is_integer(int dtype);
/** Bits of an awkward, small or arbitrary value of a dtype, canonical. NaNs are quiet. */
uint64_t random_value(randoms *r, int dtype);

/* ---------------------------------------------------------------- a case */

enum { MAX_VIEWS = 5, MAX_SCALARS = 5, MAX_ARGS = MAX_VIEWS + MAX_SCALARS, MAX_DIMS = 8 };
enum { VIEW_RANK = 6, NO_SOURCE = -1 };
enum { KIND_SEQUENTIAL, KIND_PARALLEL, KIND_REDUCTION };

/** One dimension of the domain. */
typedef struct test_dim {
    int kind;
    int64_t begin, end;
} test_dim;

/**
 * ROLE_INPUT: read anywhere. ROLE_OUTPUT: an iteration touches only what is its own: dimension d
 * with a source is indexed by that domain dimension, mirrored or shifted, the others freely.
 * ROLE_STEPPING: dimension 0 counts the sequential steps: stores go to the next step, loads come
 * from the step before, from anywhere. ROLE_ATOMIC: elements that all iterations combine into with
 * one operation, or update by functions that commute. ROLE_TWIN: the elements of an earlier
 * ROLE_OUTPUT, read where that is touched: in iteration order, or, where all indices are the same
 * values, in any.
 */
enum { ROLE_INPUT, ROLE_OUTPUT, ROLE_STEPPING, ROLE_ATOMIC, ROLE_TWIN };

typedef struct test_view test_view;
struct test_view {
    char name[16];
    int role, dtype, rank, combine;
    int update; /* of ROLE_ATOMIC: how its elements are updated, see differential_update.c; 0: by
                   atomics */
    uint64_t constant[2]; /* of the functions that all updates are */
    uint32_t traits;
    int64_t lower[VIEW_RANK], extent[VIEW_RANK];
    int source[VIEW_RANK]; /* domain dimension, or NO_SOURCE */
    bool is_mirrored[VIEW_RANK];
    int64_t shift[VIEW_RANK];
    int along[VIEW_RANK]; /* of an input of a plain kernel: the domain dimension that is its index,
                             times a factor */
    int64_t factor[VIEW_RANK];
    int shares;   /* the view whose memory this one uses, or its own number */
    size_t bytes; /* of the memory, guards on both ends included; 0 if shared */
    unsigned char *memory, *initial, *expected;
    int64_t *list; /* of the layout, or NULL */
    uint32_t unit; /* bytes that strides count; 0: elements */
    qn_record *record;
    int64_t first; /* bytes from the start of the memory to the lowest element */
    int n_parts; /* of an element; the only part of a number is itself */
    struct {
        int dtype;
        int64_t offset;
    } part[10];
    randoms layout_choices;
    qn_layout layout, member; /* member: of a MultiView */
    qn_view view;
    bool is_alone;     /* no other view has this memory */
    test_view *target; /* whose indices the elements are, or NULL */
    int target_dim;
    bool is_owner;               /* they differ, and say what iterations own in the target */
    test_view *owner[VIEW_RANK]; /* the view that says so, or NULL */
    unsigned char *map;          /* where the memory lies next to an inaccessible page, or NULL */
    size_t map_bytes;
};

/** Points of most plain kernels. */
enum { FEW_POINTS = 6000 };

/** Of a plain kernel of two dimensions: which rows its inputs have. */
enum { ROWS_ANY, ROWS_BESIDE, ROWS_ACROSS };

typedef struct test_case {
    uint64_t number;
    randoms random;
    int n_dims, n_views, n_scalars, n_args;
    bool has_varied;    /* the arguments are the second ones */
    bool is_plain;      /* made by differential_plain.c */
    bool is_contraction; /* plain: inputs have all dimensions of the domain but one */
    bool has_windows;   /* plain: inputs are read beside an iteration's own element, too */
    bool has_far_rows;  /* plain: of most views, 512 elements apart */
    bool has_digits;    /* plain: most inputs are in tiles or in Morton order */
    bool has_bends;     /* plain: many indices are quotients, remainders, or end at a bound */
    bool has_guards; /* plain: many loads are in range where a condition around them holds only */
    bool has_channels;  /* plain: inputs of small elements have some at each place, side by side */
    bool has_members;   /* plain: the last dimension is short, and stored side by side */
    bool is_tall;       /* plain: the points of products are many */
    int rows;           /* plain: ROWS_...: read side by side, or across those that are stored */
    int n_alike;        /* plain: members of each element, side by side, computed alike; or 0 */
    bool is_shared; /* plain: records or rows that a GPU moves or keeps in shared memory */
    int table;          /* plain: 1 + number of an input of few elements at any index; 0: none */
    int dtype;          /* plain: of most views */
    int longest;        /* plain: the one dimension that is not short, or -1 */
    int scale;          /* so large is the body of a large kernel, which is not run; else 0 */
    bool is_batch; /* plain: products whose number, the longest dimension, is fastest in memory */
    int64_t iterations; /* without and with reduction dimensions */
    int64_t points;
    test_dim dim[MAX_DIMS];
    test_view view[MAX_VIEWS];
    qn_arg scalar[MAX_SCALARS];
    qn_arg args[MAX_ARGS];            /* views, then scalars */
    bool has_updates; /* stores that are updates by expressions */
    bool has_math, has_neighbours; /* mathematical functions; atomics that stand together */
    bool is_redone;   /* made again without atomic views, as an update of one is none */
    bool loads_escape, stores_escape; /* some indices are out of bounds on purpose */
    qn_kernel *kernel;
    char *text;
} test_case;

/** Chooses layouts for the views' extents, allocates and fills their memory. False: out of memory
 * or a library error, which is in *err. */
bool make_views(test_case *t, qn_error *err);
void release_views(test_case *t);
/** Gives a case other arguments for the same kernel: larger extents, other strides, other scalars.
 */
bool vary_arguments(test_case *t, qn_error *err);
/** A layout of the given extents, with random lower bounds in `lower`; `is_unique`: for stores. */
qn_status random_layout(randoms *r, int rank, const int64_t *extents, bool is_unique,
                        int64_t *lower, qn_layout *out, qn_error *err);

/** Whether a view has complex numbers, records or a unit, and of which kind. */
void choose_elements(test_case *t, test_view *v);
/** Adds a part of this dtype, two of a complex one. */
void add_part(test_view *v, int dtype, int64_t offset);
bool has_plain_elements(const test_view *v);
int64_t element_bytes(const test_view *v);
int64_t unit_bytes(const test_view *v);
/** Whether two elements have the same bits in all parts, where two NaN are the same. Of what all
 * iterations combine into two zeros are, too: which one is the largest is a matter of order. */
bool is_same_value(const test_view *v, const unsigned char *a, const unsigned char *b);
/** Steps indices, last dimension fastest; false after the last. */
bool next_element(const qn_layout *l, int64_t *index);

/** A layout with an index list for one dimension of a view of rank > 0, whose memory is the view's;
 * `escapes`: some indices are out of bounds. */
qn_status random_list(randoms *r, test_view *v, bool is_unique, bool escapes, qn_error *err);

/** Makes case `number` of a seed. False with *err where the library refuses what it should take. */
bool make_case(test_case *t, uint64_t seed, uint64_t number, qn_error *err);
/** A case with a body of about `scale` values, which is too large to be run; 0: of usual size. */
bool make_large_case(test_case *t, uint64_t seed, uint64_t number, int scale, qn_error *err);
void release_case(test_case *t);
/** The text of a kernel, malloc'd; NULL without memory. */
char *kernel_text(const qn_kernel *k);

/* ---------------------------------------------------------------- the generator's inside */

enum { MAX_POOL = 128, MAX_AXES = 24 };

/** A value that may be used here. */
typedef struct pooled {
    qn_val value;
    int dtype;
} pooled;

/** An i64 value known to lie in [begin, end): a domain dimension or a loop index. */
typedef struct axis {
    qn_val value;
    int64_t begin, end;
} axis;

/** A function that a kernel may call. */
enum {
    MOST_DRAWN_FUNCTIONS = 3,
    MOST_FUNCTION_PARAMS = 3,
    MOST_FUNCTION_RESULTS = 2,
    MOST_ARRAYS = 8
};
typedef struct drawn_function {
    qn_function *function;
    int n_params, param[MOST_FUNCTION_PARAMS]; /* dtypes of its scalars */
    int n_results, result[MOST_FUNCTION_RESULTS];
    int view; /* of the case, which it reads; or -1 */
} drawn_function;

/** A constant array. */
typedef struct drawn_array {
    qn_array array;
    int dtype, n;
} drawn_array;

typedef struct generator {
    test_case *t;
    randoms *r;
    qn_builder *b;
    qn_param param[MAX_VIEWS];
    pooled pool[MAX_POOL];
    int n_pool;
    axis axes[MAX_AXES];
    int n_axes;
    axis dims[MAX_DIMS];
    int n_uniform; /* the first entries of the pool: scalar parameters */
    int budget, nesting;
    int64_t repeats; /* how often the current block runs at most */
    bool is_in_reduce, is_uniform_only;
    int member; /* of those that are computed alike */
    bool is_function; /* a function is made, which has no dimensions and stores nothing */
    drawn_function function[MOST_DRAWN_FUNCTIONS];
    int n_functions;
    drawn_array array[MOST_ARRAYS];
    int n_arrays;
} generator;

/** The domain, views and body of a plain kernel. */
void choose_plain_domain(test_case *t);
void choose_plain_views(test_case *t);
void gen_plain_body(generator *g);

/** Makes functions that the kernel may call, mostly none; releases them. */
bool make_functions(generator *g, qn_error *err);
void release_functions(generator *g);
/** A call, a mathematical function or a lookup; one of a value. */
qn_val gen_of_function(generator *g, int dtype, int depth);
qn_val gen_applied(generator *g, int dtype, qn_val x);
/** A number as it is, but NaNs become one NaN. */
qn_val gen_one_nan(generator *g, qn_val v, int dtype);
/** Any value as an index. */
qn_val gen_any_index(generator *g);

/** A value of a dtype, of at most this depth. */
qn_val gen_value(generator *g, int dtype, int depth);
/** Converts by value; also float to bool. */
qn_val gen_convert(generator *g, qn_val v, int from, int to);
/** Indices of an access to a view: anywhere in it, or of an iteration's own element. */
void gen_indices(generator *g, int view, bool is_store, qn_val *index);
/** A load from any view that may be read here, converted to a dtype; a constant where there is
 * none. */
qn_val gen_load(generator *g, int dtype, int depth);
void gen_pool(generator *g, qn_val v, int dtype);
/** How all iterations update the elements of a ROLE_ATOMIC view; an update; one of an iteration's
 * own element. */
void choose_update(test_case *t, test_view *v);
void gen_shared_update(generator *g, int view);
void gen_own_update(generator *g, int view);
/** Takes the trait from the views of an iteration's own elements; false: none has it. The kernel is
 * to be made again. */
bool drop_atomics(test_case *t);
/** Rarely, an argument has the trait and the parameter has not. */
void choose_late_atomic(test_case *t);
/** Some statements. */
void gen_block(generator *g, int n);
/** Writes a part of a row: a dimension of the iteration's own elements that no dimension of the
 * domain walks. Other trips may be read where the row is shared with what is loaded. False: no view
 * that was drawn has rows, and nothing is written. */
bool gen_row(generator *g);
void gen_store(generator *g, int view);
/** An atomic or update of a ROLE_ATOMIC view. */
void gen_shared(generator *g, int view);
/** A number from an element of several parts, and its dtype; a store to one, whole or of a field.
 */
qn_val gen_load_part(generator *g, int view, const qn_val *index, int *dtype);
void gen_store_part(generator *g, int view, const qn_val *index);
qn_val gen_reduce(generator *g, int dtype);
/** How a reduce combines values of this dtype. */
int random_reduction(generator *g, int dtype);
/** The smallest index of a dimension of a view, plus a number: as a constant or as a query. */
qn_val gen_lower(generator *g, int view, int d, int64_t plus);
/** An `if` whose results are a value of this dtype. */
qn_val gen_choice(generator *g, int dtype);

/* ---------------------------------------------------------------- running */

/** The ways to run a kernel: X(NAME, "text"). */
#define WAY_LIST(X)                                                                                \
    X(INTERPRETER, "interpreter, parsed text")                                                     \
    X(EXACT_V4, "x86-64-v4, exact")                                                                \
    X(DYNAMIC_V4, "x86-64-v4, dynamic")                                                            \
    X(EXACT_V3, "x86-64-v3, exact")                                                                \
    X(DYNAMIC_V3, "x86-64-v3, dynamic")                                                            \
    X(PLAN_EXACT, "random plan, exact")                                                            \
    X(PLAN_DYNAMIC, "random plan, dynamic")                                                        \
    X(THREADS_EXACT, "threads, exact")                                                             \
    X(THREADS_PLAN, "threads, random plan")                                                        \
    X(PREPARED, "prepared call, constant scalars")                                                 \
    X(UNCHECKED, "no checks, random plan")                                                         \
    X(BUDGET, "small budget of compiles")                                                          \
    X(ORC, "orc loader")                                                                           \
    X(CLAMP, "clamped indices")                                                                    \
    X(CLAMP_PLAN, "clamped indices, random plan")                                                  \
    X(PRINTS, "lines that are printed")                                                            \
    X(SCHEDULE_EXACT, "random schedule, exact")                                                    \
    X(SCHEDULE_DYNAMIC, "random schedule, dynamic")                                                \
    X(SCHEDULE_THREADS, "threads, random schedule")                                                \
    X(SCHEDULE_UNCHECKED, "no checks, random schedule")                                            \
    X(SCHEDULE_CLAMP, "clamped indices, random schedule")                                          \
    X(SCHEDULE_CHANGED, "random schedule with words changed")                                      \
    X(TREE, "random schedule, interpreted as a tree")                                              \
    X(TREE_GPU, "random schedule of a GPU, interpreted as a tree")                                 \
    X(PTX_SCHEDULE, "PTX, random schedule")                                                        \
    X(CUDA_SCHEDULE, "cuda, random schedule")                                                      \
    X(PTX_EXACT, "PTX, exact")                                                                     \
    X(PTX_PLAN, "PTX, random plan")                                                                \
    X(CUDA_EXACT, "cuda, exact")                                                                   \
    X(CUDA_PLAN, "cuda, random plan")
enum {
#define QN_X(name, text) WAY_##name,
    WAY_LIST(QN_X)
#undef QN_X
        N_WAYS
};

/** Parts of kernels that are counted: X(NAME, "how its text shows"). */
#define FEATURE_LIST(X)                                                                            \
    X(IF, " if %")                                                                                 \
    X(FOR, "for %")                                                                                \
    X(WHILE, "while max")                                                                          \
    X(REDUCE, "= reduce ")                                                                         \
    X(ATOMIC, "= atomic ")                                                                         \
    X(SEQUENTIAL, "= sequential ")                                                                 \
    X(LOAD, "= load ")                                                                             \
    X(CALL, "= call ")                                                                             \
    X(LOOKUP, "= lookup ")                                                                         \
    X(ASSERT, " assert %")                                                                         \
    X(PRINT, " print \"")
enum {
#define QN_X(name, mark) FEATURE_##name,
    FEATURE_LIST(QN_X)
#undef QN_X
        N_FEATURES
};

/** What plans do: X(NAME, "how the text of a plan or its schedule shows it", "what must not
 * follow"); those of a GPU begin with GPU. */
#define PLAN_MARK_LIST(X)                                                                          \
    X(SCALAR, "\nlanes -1", "")                                                                    \
    X(LANES_OF_REDUCTION, " (reduction)", "")                                                      \
    X(SHORT_LOOPS, "\nshort loops are straight", "")                                               \
    X(MERGED, "\nmerged ", "")                                                                     \
    X(UNROLL, "\nunroll ", "1\n")                                                                  \
    X(JAM, "\njam ", "-1")                                                                         \
    X(JAM_OVERLAP, ", rest overlap", "")                                                           \
    X(JAM_SCALAR, ", rest scalar", "")                                                             \
    X(CROSS, "\ncross ", "")                                                                       \
    X(TRANSPOSE, "\ntranspose ", "0")                                                              \
    X(MASK, "\nremainder mask", "")                                                                \
    X(ONE_BY_ONE, "\nremainder scalar", "")                                                        \
    X(REST_TILE, "\nremainder tile", "")                                                           \
    X(PACK, "\npack p", "")                                                                        \
    X(STRIP, "\nstrip ", "")                                                                       \
    X(PREFETCH, " points ahead", "")                                                               \
    X(FRONT_ROWS, " of front rows", "")                                                            \
    X(STEPS_AHEAD, " steps of the lanes ahead", "")                                                \
    X(CACHE_TILE, "\ntile ", "")                                                                   \
    X(SPLIT, "\nsplit ", "-1")                                                                     \
    X(SPLIT_POINTS, " (points)", "")                                                               \
    X(SPLIT_TWICE, " too, granule ", "")                                                           \
    X(ONE_LANE_AT_ONCE, " single", "")                                                             \
    X(ATOMICS_OF_ONE, "\natomics of one", "")                                                      \
    X(ATOMICS_OF_LAUNCH, "\natomics of the launch", "")                                            \
    X(STREAMS, "\nstreams 1", "")                                                                  \
    X(STEPPED_TO_SINGLE, " units, one vector in a step", "")                                       \
    X(STEPPED_TO_NARROW, " units, narrower vectors", "")                                           \
    X(STEPPED_TO_SCALAR, " units, scalar code\n", "")                                              \
    X(STEPPED_TO_FAST, " units, scalar code, fast", "")                                            \
    X(LINE_ENDS, "\nline ends ", "")                                                               \
    X(TOGETHER, " group ", "")                                                                     \
    X(FLAT, " flat;", "")                                                                          \
    X(TABLE, " table of ", "")                                                                     \
    X(TRIPS, "\n  cut t", "")                                                                      \
    X(GPU_WARPS, "\nteam warps", "")                                                               \
    X(GPU_GRID, "\nteam all blocks", "")                                                           \
    X(GPU_BLOCK, "\nteam blocks", "")                                                              \
    X(GPU_BLOCK_ALONG_POINTS, " points, along points", "")                                         \
    X(GPU_BLOCK_ALONG_ITERATIONS, " points, along iterations", "")                                 \
    X(GPU_BLOCK_SPLIT, ", blocks of points apart", "")                                             \
    X(GPU_EARLY, "\nearly access", "")                                                             \
    X(GPU_STAGED, "along dimension", "")                                                           \
    X(GPU_PRODUCT, "product with dimension", "")                                                   \
    X(GPU_WIDE, "\nat once ", "1 ")                                                                \
    X(GPU_JAM, "\njam ", "1 ")                                                                     \
    X(GPU_CROSSED, ", crossed", "")                                                                \
    X(GPU_SKEW, "\nskew ", "")                                                                     \
    X(GPU_KEPT, "\nkept ", "")                                                                     \
    X(GPU_MOVED, "\nmoved records", "")                                                            \
    X(GPU_PRIVATE, "privatized", "")
enum {
#define QN_X(name, begin, not_so) PLAN_MARK_##name,
    PLAN_MARK_LIST(QN_X)
#undef QN_X
        N_PLAN_MARKS
};

enum { MOST_PINNED = 12 };

/** One way to run a kernel. */
typedef struct way {
    int id; /* WAY_... */
    bool is_prepared;
    bool has_small_caches; /* of the machine that is planned for */
    qn_options options; /* of this plan and these pins */
    qn_plan_options plan;
    qn_fact_pin pin[MOST_PINNED];
    int most_units; /* of WAY_BUDGET: of a compile */
    uint64_t change; /* not 0: words of the schedule are changed, and this decides about which */
    char *schedule; /* that of the options, or NULL; malloc'd */
    char steps[1024]; /* which made it, each ended by "; " */
    uint64_t rows;    /* bit n: one of them is of row n of the table */
    bool is_planned;  /* they began with what was planned, else with the kernel as declared */
    bool has_records; /* the text has access records */
    bool is_lowered;  /* code is generated for the schedule */
} way;

enum { MOST_FORMS = 64, MOST_TRANSFORMS = 64 };

/** What becomes of random schedules. */
typedef struct schedule_counts {
    /* Steps of a row of the table that were drawn, and legal; launches with such a step that ran
     * the code of their schedule, and schedules with one that were interpreted as trees. */
    struct {
        int64_t tried, legal, lowered, interpreted;
    } row[MOST_TRANSFORMS];
    int64_t n_changed_refused, n_changed_run; /* launches with words changed */
    int64_t n_legal, n_without_code;             /* schedules after some step */
    int64_t n_given, n_lowered, n_refused, n_too_large; /* launches with a schedule */
    int64_t n_trees, n_large_trees; /* interpreted as trees, and too large for that */
    struct {
        char name[96];
        int64_t n;
    } form[MOST_FORMS]; /* that has no code */
    int n_forms;
} schedule_counts;

typedef struct runner {
    qn_context *context;
    qn_context *small;        /* of WAY_BUDGET */
    qn_context *small_caches; /* of a machine on which few arrays are in cache */
    const char *no_x86; /* the reason why only the interpreter is tested, or NULL */
    char reason[QN_MESSAGE_BYTES];
    device gpu; /* has a context if kernels run on a GPU, too */
    bool is_cuda_only, has_only_schedules;
    int only_way; /* -1: all */
    int64_t n_limits; /* launches that a GPU does not do */
    int64_t n_ended;  /* launches that their time limit ended */
    int64_t n_runs[N_WAYS], n_differences[N_WAYS], n_with[N_FEATURES], n_plans[N_PLAN_MARKS];
    schedule_counts schedules;
    int64_t n_updates, n_redone, n_math, n_neighbours; /* kernels */
    int64_t n_lists, n_lists_differ; /* launches compared with dense copies */
    int64_t n_kernels, n_references, n_text_errors, n_escapes, n_points, n_by_status[64];
    int64_t n_unvaried; /* kernels for which no second arguments could be made */
} runner;

/** What a launch gave. */
typedef struct outcome {
    qn_status status;
    qn_error error;
    bool has_lines; /* it was to print */
    int n_lines;
    uint64_t lines; /* their hash */
} outcome;

const char *way_name(int id);
/** Where a kernel is run in this way. */
qn_context *context_of(const runner *r, const way *w);
/** Prints lines, and how a kernel is run. */
void note_text(const char *text);
void note_way(const way *w);
/** A random choice of plan fields that the kernel of a case may follow. */
void random_plan(const test_case *t, randoms *r, qn_plan_options *p);
/** Whether a way has a random schedule. */
static inline bool has_schedule(int id)
{
    return id >= WAY_SCHEDULE_EXACT && id <= WAY_CUDA_SCHEDULE;
}
/** Whether the schedule is interpreted as a tree. */
static inline bool is_tree(int id)
{
    return id == WAY_TREE || id == WAY_TREE_GPU;
}
/** Whether a way is one of a GPU, or of the machine of the tests that runs PTX. */
static inline bool has_grid(int id)
{
    return id >= WAY_PTX_SCHEDULE;
}
/** Draws a legal schedule for the launch of a case in a way, and counts what was met. False: there
 * is none. */
bool draw_schedule(runner *r, const test_case *t, randoms *random, way *w);
/** The schedule that those steps of a way make of another kernel that are possible there. */
bool redraw_schedule(runner *r, const test_case *t, const qn_kernel *k, way *w);
void release_schedule(way *w);
/** Whether the code of a launch in a way is that of its schedule, as the code's text says. */
bool is_of_schedule(const runner *r, const test_case *t, const qn_kernel *k, const way *w);
/** Interprets the schedule of a way as a tree. Errors: QN_ERR_LIMIT if it is too large, and
 * QN_ERR_INTERNAL if it does what no right schedule does. */
qn_status run_tree(runner *r, const test_case *t, const qn_kernel *k, const way *w, qn_error *err);
/** Counts the rows of the steps of a way that was run. */
void count_rows(runner *r, const way *w);
/** Whether each row of the table was legal in some schedule; notes which was not. */
bool is_every_row_legal(const runner *r);
void summarise_schedules(const schedule_counts *n);
/** Counts what the plan does that a way has for a kernel. */
void count_plan(runner *r, const test_case *t, const qn_kernel *k, const way *w);
const char *plan_mark_name(int i);
bool open_runner(runner *r, qn_error *err);
void close_runner(runner *r);
/** Runs a case in all ways and notes what differs: *first is the first way that does. False if any
 * does. */
bool run_case(runner *r, test_case *t, way *first);
/** Whether a case has lists and no views that share memory, so that is_meant can be asked. */
bool has_lists(const test_case *t);
/** Whether the kernel on dense copies of the restored views' elements gives what the views gave:
 * status, message and elements. Elements at bad values of lists have no copies: true. */
bool is_meant(runner *r, const test_case *t, const outcome *reference, char *what, size_t bytes);
/** Messages start with the entry point, which differs between a launch and a prepared call. */
bool is_same_message(const char *a, const char *b);
/** Whether two elements are the same bits, or two NaN. */
bool is_same_element(int dtype, const unsigned char *a, const unsigned char *b);
/** Runs the interpreter and one way for a kernel with the arguments of a case; true, and one line,
 * if they differ. */
bool is_different(runner *r, test_case *t, const qn_kernel *k, const way *w, char *what,
                  size_t bytes);
/** The smallest text found for which is_different still holds; malloc'd, NULL without memory. */
char *reduce_case(runner *r, test_case *t, const way *w);

#endif
