/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_arrays.h: a line of the GPU's benchmark that says its kernel and what its arrays hold.
 */
#ifndef QN_TESTS_BENCH_BENCH_CUDA_ARRAYS_H
#define QN_TESTS_BENCH_BENCH_CUDA_ARRAYS_H

#include "tests/bench/bench_cuda.h"

enum { GPU_ARRAYS = 7, GPU_RANK = 3, GPU_MEMBERS = 9 };

/* What an array holds at first. */
enum {
    SIXTEENTHS, /* f32, or records of GPU_MEMBERS of them: 1/16 to 1, so that sums are exact */
    HALVES,     /* f16: quarters up to 2 */
    BYTES,
    INDICES,     /* i32, into the first array, or into as many rows as that says where they begin */
    NEAR_ROW,    /* i32, of elements of rows: a row at most 20,000 behind the element's own */
    ROW_STARTS,  /* i32: rows of 1 to 226 elements; only in the first array */
    EVEN_STARTS, /* i32: rows of 20 to 40 elements; only in the first array */
    PERMUTATION, /* i32: each index once; as many as a power of two */
    ZEROS
};

/** An array of a line; extents 0 are the number of elements of all sparse rows. Results follow the
 * inputs. */
typedef struct gpu_shape {
    int dtype, rank, holds;
    bool is_result;
    int64_t extent[GPU_RANK], tiny[GPU_RANK];
} gpu_shape;

typedef struct gpu_arrays_line {
    const char *name, *text;
    double tolerance; /* of theirs, relative; 0: their bits are ours */
    double flops;     /* counted instead of bytes, if any */
    double goal;
    int n;
    gpu_shape array[GPU_ARRAYS];
} gpu_arrays_line;

#define IN(type, fill) .dtype = type, .holds = fill
#define OUT(type) .dtype = type, .holds = ZEROS, .is_result = true
#define VECTOR(n, t) .rank = 1, .extent = {n}, .tiny = {t}
#define PLANE(n0, n1, t0, t1) .rank = 2, .extent = {n0, n1}, .tiny = {t0, t1}
#define SPACE(n0, n1, n2, t0, t1, t2) .rank = 3, .extent = {n0, n1, n2}, .tiny = {t0, t1, t2}

/** What lines have in common. */
typedef struct gpu_arrays_how {
    qn_record *record; /* the element of arrays of QN_RECORD, or NULL */
    const char *peer;  /* NULL: that of the line's name */
    int checks;
} gpu_arrays_how;

/** Checks and times a line, if it is wanted. A peer gets the last array as its result, and all
 * arrays. */
void gpu_arrays_run(gpu_bench *b, const gpu_arrays_line *line, const gpu_arrays_how *how);

#endif
