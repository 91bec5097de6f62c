/* SPDX-License-Identifier: Apache-2.0 */
/* bench_data.h: a case of bench_cases_data.c, as bench_data_list.c lists them. */
#ifndef QN_TESTS_BENCH_BENCH_DATA_H
#define QN_TESTS_BENCH_BENCH_DATA_H

#include <stdint.h>

enum { MOST_VIEWS = 5 };
/* What views hold at first: zeros; values in [-1,1) or any integers; in [0,1); numbers of bins; a
 * permutation; the starts and the columns of sparse rows, of a grid or random. */
enum {
    FILL_ZERO,
    FILL_ANY,
    FILL_UNIT,
    FILL_BINS,
    FILL_PERMUTATION,
    FILL_GRID_STARTS,
    FILL_GRID,
    FILL_STARTS,
    FILL_COLUMNS
};

typedef struct data_view {
    int dtype, fill, rank, is_left; /* rank 0 ends the list: a scalar is a view of one element */
    int64_t extent[3];
} data_view;

typedef struct data_case {
    const char *name, *kernel; /* with "/unchecked" in the name it runs without checks, with
                                  "/shared" its atomics are */
    int is_summed; /* in another order than the C compiler's: compared with it to a part of 1e-4 or
                      1e-12 */
    data_view view[MOST_VIEWS]; /* what is written first */
} data_case;
extern const data_case data_cases[]; /* the last has no name */

#endif
