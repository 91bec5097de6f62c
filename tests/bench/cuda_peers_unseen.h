/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers_unseen.h: extents that bench_cuda_unseen.c and its peers in CUDA C,
 * cuda_peers_unseen.cu, have in common. A peer's argument `a` is an array of the host's with the
 * pointers of all arrays, in the order of the kernel's parameters.
 */
#ifndef QN_TESTS_BENCH_CUDA_PEERS_UNSEEN_H
#define QN_TESTS_BENCH_CUDA_PEERS_UNSEEN_H

#define UNSEEN_CUBE 320LL        /* points along each side of the stencil */
#define UNSEEN_ROWS 8192LL       /* rows and columns of what works row by row */
#define UNSEEN_COLUMNS 4096LL
#define UNSEEN_BODIES 16384LL
#define UNSEEN_CSR_ROWS (1LL << 18)
#define UNSEEN_RECORDS (3LL << 20)
#define UNSEEN_IMAGE_0 6144LL    /* an image of bytes with three channels */
#define UNSEEN_IMAGE_1 4096LL
#define UNSEEN_PRODUCT 2048LL
#define UNSEEN_FILTER 5LL
#define UNSEEN_BINS (64LL << 20) /* bytes that are counted */
#define UNSEEN_SMALL (3LL << 19) /* products of 4 x 4 with a vector */
#define UNSEEN_LATTICE_0 2048LL
#define UNSEEN_LATTICE_1 1024LL
#define UNSEEN_MIDDLE_0 64LL     /* outer, reduced and inner extent */
#define UNSEEN_MIDDLE_1 512LL
#define UNSEEN_MIDDLE_2 1024LL
#define UNSEEN_GATHER (16LL << 20)
#define UNSEEN_TABLE (1LL << 20)
#define UNSEEN_POINTS (1LL << 19) /* points and centres of 8 coordinates */
#define UNSEEN_CENTRES 256LL
#define UNSEEN_PERMUTE_0 256LL
#define UNSEEN_PERMUTE_1 320LL
#define UNSEEN_PERMUTE_2 384LL

/* Those of bench_cuda_users.c and cuda_peers_users.cu. */
#define USERS_TAPS 31LL            /* of the filter in one dimension */
#define USERS_SIGNAL (32LL << 20)
#define USERS_CHANNELS 8LL         /* of the filter of images, in and out */
#define USERS_SIDE 1024LL
#define USERS_BATCH (1LL << 19)    /* products of 6 x 6 */
#define USERS_SHORT_ROWS (1LL << 16)
#define USERS_SHORT_COLUMNS 512LL
#define USERS_SCAN 2048LL          /* steps of running sums, of many columns or rows */
#define USERS_SCANS 16384LL
#define USERS_ELL_WIDTH 24LL
#define USERS_ELL_ROWS (1LL << 20)
#define USERS_POINTS 6144LL        /* of which all distances are found */
#define USERS_PARTICLES (8LL << 20)
#define USERS_SWAP_0 1024LL
#define USERS_SWAP_1 2048LL
#define USERS_SWAP_2 16LL
#define USERS_SERIES (4LL << 20)   /* systems that are integrated */

#endif
