/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_schedule.h: the kernels of tests/schedules as an expert writes them in C.
 */
#ifndef QN_TESTS_BENCH_NATIVE_SCHEDULE_H
#define QN_TESTS_BENCH_NATIVE_SCHEDULE_H

/** data: the arrays, in the order of the kernel's parameters. Extents and scalars are those of the
 * file. */
typedef void (*native_schedule_loop)(void *const *data);
/** The loop of a kernel; NULL: there is none. */
native_schedule_loop native_schedule(const char *kernel);

#endif
