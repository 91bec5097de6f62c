/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h: what the tests of CUDA share: contexts that use the stub driver (tests/stub/stub_cuda.h),
 * whose kernels run on the machine for PTX (tests/ptx/machine.h), and views in CUDA spaces.
 */
#ifndef QN_TESTS_UNIT_GPU_H
#define QN_TESTS_UNIT_GPU_H

#include "quern/cuda.h"
#include "tests/stub/stub_cuda.h"
#include "tests/unit/launch.h"

#define STUB_PATH QN_BUILD_DIR "/tests/stub/libcuda.so.1"

/** The stub, which runs kernels on the machine for PTX; NULL if it cannot be opened (gpu.c). */
const stub_control *stub_open(const char *path);
/** A context with the stub for a driver. */
static inline qn_context *stub_context(void)
{
    const qn_context_options o = {.bytes = sizeof o, .cuda_driver = STUB_PATH};
    return context_with(&o);
}
/** A vector in a space; NULL stream: ready now. */
static inline qn_view vector_in(qn_context *c, int space, qn_stream *s, const char *label,
                                int dtype, int64_t n)
{
    qn_view v = {0};
    qn_view_type type;
    qn_error err = {0};
    const qn_alloc_options o = {.bytes = sizeof o, .label = label, .space = space, .stream = s};
    if (qn_view_type_init(dtype, 1, NULL, QN_FAMILY_ANY, &type, &err) != QN_OK)
        tap_ok(false, "test type: %s", err.message);
    type.space = space;
    if (qn_view_create(c, &type, 1, &n, &o, &v, &err) != QN_OK)
        tap_ok(false, "test view: %s", err.message);
    return v;
}
/** Whether nothing of the driver's is left, and nothing was misused. */
static inline bool is_clean(const stub_control *stub)
{
    static const char *const name[] = {"contexts", "streams", "events", "blocks",
                                       "modules",  "links",   "pools",  "graphs"};
    bool is_clean = true;
    for (int i = 0; i < STUB_KINDS; i++)
        if (stub->live(i) != 0) {
            tap_note("%" PRId64 " %s are left", stub->live(i), name[i]);
            is_clean = false;
        }
    if (stub->misuse()) {
        tap_note("misuse: %s", stub->misuse());
        is_clean = false;
    }
    return is_clean;
}

#endif
