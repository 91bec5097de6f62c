/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda.h: what the parts of the GPU's benchmark share.
 *
 * bench_cuda.c        main
 * bench_cuda_run.c    the program: options, lines, summary
 * bench_cuda_data.c   memory on the device, values in it, results against the host's
 * bench_cuda_lines.c  the kernels, their extents and goals
 * bench_cuda_more.c   more of them: odd extents, branches, batches, copies between host and device
 * bench_cuda_speed.c  how they are checked against the host, CUDA C, cuBLAS, the driver's copy
 * bench_cuda_unseen.c kernels that no rule was made for; sparse rows, a `while`, a histogram
 * bench_cuda_users.c  more kernels that no rule was made for
 * bench_cuda_arrays.c how they are checked against the interpreter and CUDA C
 * bench_cuda_math.c   mathematical functions, Black-Scholes, softmax
 * bench_cuda_time.c   how all of these are timed
 * bench_cuda_model.c  how well estimates tell grids apart
 * bench_cuda_cost.c   what compiling, loading and launching cost
 * bench_cuda_raw.c    the driver without Quern, NVRTC and cuBLAS, all found with dlopen
 * bench_plan.h        what --plan says
 * cuda_peers*.cu*     the kernels in CUDA C, not part of the build
 */
#ifndef QN_TESTS_BENCH_BENCH_CUDA_H
#define QN_TESTS_BENCH_BENCH_CUDA_H

#include "quern/cuda.h"
#include "tests/bench/cuda_peers.h"

enum {
    GPU_OUT,
    GPU_A,
    GPU_B,
    GPU_FROM,
    GPU_TO,
    GPU_SLOTS
}; /* memory; the last two for the memcpy */
enum { GPU_PRIME = 4093, GPU_MAX_SHORT = 128, GPU_NAME_BYTES = 64 };

/** An array: dense, its last dimension fastest, or its first. */
typedef struct gpu_array {
    int dtype, rank;
    int64_t extent[3];
    bool is_left;
    int seed; /* values of arrays with other seeds are others */
} gpu_array;

typedef struct gpu_raw gpu_raw;

typedef struct gpu_bench {
    qn_context *context;
    qn_stream *stream;
    qn_cuda_device device;
    gpu_raw *raw;
    void *peers; /* of dlopen, or NULL */
    const char *const *filter;
    int n_filters;
    bool is_quick, is_tiny, wants_model;
    const char *text; /* --text: the stage that is printed with each line, or NULL */
    qn_plan_options plan; /* --plan */
    struct bench_ranking *model; /* --model, or NULL */
    qn_view slot[GPU_SLOTS]; /* bytes */
    gpu_array holds[GPU_SLOTS]; /* dtype 0: nothing known */
    qn_view staging;            /* pinned bytes */
    void *scratch;              /* as many on the host */
    int64_t memcpy_bytes;
    int n_cases, n_wrong, n_ratios;
    double log_sum, least;
    char least_name[GPU_NAME_BYTES];
    int n_short;
    char *short_lines[GPU_MAX_SHORT];
} gpu_bench;

/** A result. Seconds; what is 0 was not measured, or is no goal. */
typedef struct gpu_line {
    const char *name;
    double ours, theirs;
    double rate;         /* per second */
    const char *unit;    /* of the rate: "GB/s" */
    double to_memcpy;    /* our bandwidth, by that of the driver's copy */
    double peer_goal;    /* of theirs / ours */
    double memcpy_goal, rate_goal;
    double seconds_goal;
    bool is_counted; /* in the geometric mean */
    const char *remark;
} gpu_line;

/** The program; *b is all-zero before and has the counts after it. Returns the exit status. */
int gpu_bench_run(gpu_bench *b, int argc, char **argv);
bool gpu_wants(const gpu_bench *b, const char *name);
void gpu_report(gpu_bench *b, const gpu_line *line);
__attribute__((format(printf, 3, 4))) void gpu_wrong(gpu_bench *b, const char *name,
                                                     const char *format, ...);
double gpu_now(void);
double gpu_median(double *x, int n);
/** A kernel from a text in which @ stands for the dtype. */
qn_kernel *gpu_kernel(const char *text, int dtype, qn_error *err);

/* Sides of a line, which are timed. */
enum { GPU_OURS, GPU_THEIRS, GPU_COPY, GPU_SIDES };

typedef struct gpu_sides {
    gpu_bench *b;
    void *line;
    qn_status (*run)(void *line, int side, qn_error *err); /* into the stream */
    bool is_there[GPU_SIDES];
} gpu_sides;

/** The medians of seconds of a run; 0 of a side that is not there. */
qn_status gpu_time_sides(const gpu_sides *s, double *median, qn_error *err);

typedef int (*gpu_peer)(void *stream, void *out, const void *a, const void *b);

/** The kernel in CUDA C for a line; NULL if there is none. */
gpu_peer gpu_find_peer(const gpu_bench *b, const char *line);
/** The status of what a peer returned, an error of `what` unless that is 0. */
qn_status gpu_peer_status(const char *what, int result, qn_error *err);
/** Prints the stage of code that --text names, as comments. */
void gpu_print_text(const gpu_bench *b, const char *line, const qn_kernel *kernel, int n_args,
                    const qn_arg *args, const qn_options *o);

/** Times a line under several grids, and counts how estimates rank them; b->model is set. */
void gpu_model_line(gpu_bench *b, const char *name, const qn_kernel *kernel, int n_args,
                    const qn_arg *args, const qn_options *o);

/* Data. Values are multiples of 1/16 up to 1 that depend on the index, so that sums come out the
 * same in any order. */
qn_status gpu_memory(gpu_bench *b, qn_error *err);
void gpu_memory_release(gpu_bench *b);
/** An array of these extents; with --tiny of tiny ones, which are odd so that edges are met. */
gpu_array gpu_array_of(const gpu_bench *b, int dtype, int rank, int64_t n0, int64_t n1, int64_t n2);
int64_t gpu_elements(const gpu_array *a);
/** The view of an array at the start of a slot. */
qn_status gpu_view(gpu_bench *b, int slot, const gpu_array *a, qn_view *out, qn_error *err);
/** The residue of an index, and the sixteenths that are its value; of a dimension, what a step adds
 * to the residue. */
int gpu_residue(const gpu_array *a, const int64_t *index);
int gpu_value(int residue);
int gpu_weight(int dimension);
/** Values into a slot, unless it holds them. */
qn_status gpu_put(gpu_bench *b, int slot, const gpu_array *a, qn_error *err);
/** All bytes of an array's place become 0xFF. */
qn_status gpu_poison(gpu_bench *b, int slot, const gpu_array *a, qn_error *err);
/** The elements [first, first + n) in the order of memory, n at most gpu_chunk(b) bytes: a borrowed
 * copy on the host. */
qn_status gpu_get(gpu_bench *b, int slot, const gpu_array *a, int64_t first, int64_t n,
                  const void **out, qn_error *err);
int64_t gpu_chunk(const gpu_bench *b);
/** Whether a slot holds table[residue] everywhere; `has_border`: but 0xFF at first and last
 * indices. */
qn_status gpu_compare(gpu_bench *b, int slot, const gpu_array *a, const double *table,
                      bool has_border, bool *is_same, int64_t *at, qn_error *err);

/** What a line computes; the host knows the results. */
enum {
    FORM_COPY,
    FORM_SAXPY,
    FORM_TRIAD,
    FORM_FILL,
    FORM_BRANCH,
    FORM_STEPS,
    FORM_STENCIL,
    FORM_ROWS,
    FORM_COLUMNS,
    FORM_TIMES,
    FORM_DOT,
    FORM_PRODUCT,
    FORM_BATCH
};
/** The begin of a kernel whose one parallel dimension, %2, is that of y. */
#define GPU_VECTOR_HEAD " %0: i64 = const 0; %1: i64 = extent y, 0; %2: i64 = parallel %0, %1;\n"

/** A kernel: the result and up to two inputs are its first parameters, then perhaps GPU_SCALE. */
typedef struct gpu_case {
    char name[GPU_NAME_BYTES];
    const char *text;
    int form, dtype, n_in;
    gpu_array out, in[2];
    bool is_update; /* reads the result's old values */
    bool has_scalar, with_cublas;
    double bytes, flops;
    double peer_goal, memcpy_goal, rate_goal;
} gpu_case;

/** Checks and times a case, if it is wanted. */
void gpu_run_case(gpu_bench *b, const gpu_case *c);

void gpu_speed_cases(gpu_bench *b);
void gpu_more_cases(gpu_bench *b);
void gpu_math_cases(gpu_bench *b);
void gpu_unseen_cases(gpu_bench *b);
void gpu_users_cases(gpu_bench *b);
void gpu_cost_cases(gpu_bench *b);

/* The driver itself. Functions return a result of its, 0 if all went well; -1 where a function is
 * missing. */
gpu_raw *gpu_raw_open(const char *path, const char **why);
void gpu_raw_close(gpu_raw *r);
/** A kernel that does nothing, of two pointers and a number; launches of it. */
int gpu_raw_launch(gpu_raw *r, void *stream, void *p, int n);
/** PTX to a cubin, with malloc. */
int gpu_raw_assemble(gpu_raw *r, const char *ptx, size_t bytes, void **cubin);
/** Loads a cubin, finds a kernel, and unloads it again; the seconds of the first two. */
int gpu_raw_load(gpu_raw *r, const void *cubin, const char *entry, double *seconds);
/** A stream in a CUDA context of its own. */
int gpu_raw_other_stream(gpu_raw *r, void **stream);
/** CUDA C to a kernel by NVRTC, and its seconds. */
int gpu_raw_nvrtc(gpu_raw *r, const char *source, const char *entry, double *seconds);
/** C = A B of square matrices by cuBLAS, whose handle is made at the first call. C has Right
 * layout, A and B too unless they are said to have Left. */
int gpu_raw_product(gpu_raw *r, void *stream, int dtype, int64_t n, bool a_is_left, bool b_is_left,
                    void *c, const void *a, const void *b);
/** Products of `count` pairs of matrices of n x n, all of Right layout, one after the other. */
int gpu_raw_batch(gpu_raw *r, void *stream, int dtype, int64_t n, int64_t count, void *c,
                  const void *a, const void *b);
/** y = A x, the same for a matrix of m x n and a vector. */
int gpu_raw_times(gpu_raw *r, void *stream, int dtype, int64_t m, int64_t n, bool is_left, void *y,
                  const void *a, const void *x);

#endif
