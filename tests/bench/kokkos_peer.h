/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kokkos_peer.h: what bench_main asks of a library made of kokkos_peer.cpp and the user's Kokkos;
 * see docs/benchmarks.md.
 */
#ifndef QN_TESTS_BENCH_KOKKOS_PEER_H
#define QN_TESTS_BENCH_KOKKOS_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Layouts of a case: all Right, all Left, or what is written Right and the last array that is read
 * Left. */
enum { KOKKOS_RIGHT = 0, KOKKOS_LEFT = 1, KOKKOS_MIXED = 2, N_KOKKOS_LAYOUTS = 3 };
/** Iteration patterns of MDRangePolicy: the default of the space, Right, Left. The bench takes the
 * fastest. */
enum { N_KOKKOS_PATTERNS = 3 };

/** Runs a kernel over arrays of f64: the written one, then those that are read. edge: extent of
 * every dimension. */
typedef void (*kokkos_loop)(double *const *arrays, int64_t edge);

/** The loop of a kernel; NULL if there is none for this layout and pattern. Initializes Kokkos. */
kokkos_loop quern_kokkos_loop(const char *kernel, int layout, int pattern);
/** Version and execution space. */
const char *quern_kokkos_version(void);

#ifdef __cplusplus
}
#endif

#endif
