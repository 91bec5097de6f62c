/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_schedule_copies.c: schedules given as text whose buffers are copies. A copy reads before it
 * is known whether an iteration needs the element: so elements must be in range anyhow, and memory
 * for copies is bounded. The kernels of tests/schedules show copies of many forms.
 */
#include "tests/unit/launch.h"

enum { N = 5000 };

/** y[i] = sum k in z of x[i + 1000]: all is in range where z has no elements. */
#define LATE                                                                                       \
    "kernel late (x: f32[], z: f32[], y: f32[]) {\n"                                               \
    "  for all i in y { y[i] = sum k in z of x[i + 1000] }\n}\n"
#define TWO                                                                                        \
    "kernel two (x: f32[], z: f32[], y: f32[]) {\n"                                                \
    "  for all i in y { y[i] = x[i + 1] + z[i + 1] }\n}\n"
/** The rows of x are one. */
#define ROWS                                                                                       \
    "kernel rows (x: f32[,], z: f32[], y: f32[]) {\n"                                              \
    "  for all i in y { y[i] = sum j in dim(x, 1) of x[i, j] }\n}\n"

typedef struct row {
    const char *what, *kernel;
    int64_t x[2], z, y; /* extents; x[1] 0: x has one dimension */
    const char *schedule;
    qn_status status;
    const char *message; /* a part of the message, or NULL */
} row;

static const row rows[] = {
    {"a copy of what a reduce reads", LATE, {2000, 0}, 3, 8,
     "declared { buffer %12 d0 storage=frame; }", QN_OK, NULL},
    {"no copy of what an empty reduce does not read", LATE, {4, 0}, 0, 8,
     "declared { buffer %12 d0 storage=frame; }", QN_ERR_ARGUMENT, "cannot be kept so"},
    {"no copy of what is tested at each access", LATE, {1004, 0}, 3, 8,
     "declared { buffer %12 d0 storage=frame; }", QN_ERR_ARGUMENT, "cannot be kept so"},
    {"two copies of the frame", TWO, {N + 1, 0}, N + 1, N,
     "declared { split d0 500 tail=none; buffer %7 d0.0 storage=frame; "
     "buffer %8 d0.0 storage=frame; }",
     QN_OK, NULL},
    {"a copy of all in memory of the launch", TWO, {N + 1, 0}, N + 1, N,
     "declared { split d0 8 tail=none; vectorize d0.1; buffer %7 storage=scratch; }", QN_OK, NULL},
    {"copies in the frame have 64 KiB in all", TWO, {3 * N + 1, 0}, 3 * N + 1, 3 * N,
     "declared { split d0 10000 tail=scalar; buffer %7 d0.0 storage=frame; "
     "buffer %8 d0.0 storage=frame; }",
     QN_ERR_ARGUMENT, "40000 bytes are more than frame hold"},
    {"copies in memory of the launch have 64 MiB in all", ROWS, {4200, 4200}, 1, 4200,
     "declared { buffer %10 storage=scratch; }", QN_ERR_ARGUMENT, "more than scratch hold"},
};

/** The first elements of an array: 1, 2, ... */
static qn_arg argument(const char *name, float *memory, const qn_layout *l, qn_view *v)
{
    for (int i = 0; i < 4 * N; i++)
        memory[i] = 1 + (float)i;
    qn_error err = {0};
    if (qn_view_wrap(name, memory, QN_F32, l, 0, v, &err) != QN_OK)
        tap_ok(false, "%s: %s", name, err.message);
    return qn_arg_view(v);
}

static qn_status run(qn_context *c, const row *r, const qn_options *o, float *y, qn_error *err)
{
    static float x[4 * N], z[4 * N];
    const qn_layout of_x = {.rank = r->x[1] ? 2 : 1,
                            .dim[0] = {.extent = r->x[0], .stride = r->x[1] ? 0 : 1},
                            .dim[1] = {.extent = r->x[1], .stride = 1}};
    const qn_layout of_z = {.rank = 1, .dim[0] = {.extent = r->z, .stride = 1}};
    const qn_layout of_y = {.rank = 1, .dim[0] = {.extent = r->y, .stride = 1}};
    qn_view v[3];
    qn_kernel *k = kernel_of(r->kernel);
    const qn_arg args[3] = {argument("x", x, &of_x, &v[0]), argument("z", z, &of_z, &v[1]),
                            argument("y", y, &of_y, &v[2])};
    qn_status status = qn_launch(c, k, 3, args, o, err);
    qn_kernel_release(k);
    return status;
}

static void test_row(qn_context *c, const row *r, int isa)
{
    static float expected[4 * N], found[4 * N];
    const qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    const qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = isa, .schedule = r->schedule};
    qn_error err = {0};
    qn_status status = run(c, r, &o, found, &err);
    if (status == QN_ERR_TARGET)
        return;
    bool is_said = status == r->status && (!r->message || strstr(err.message, r->message));
    bool is_same = true;
    if (status == QN_OK)
        is_same = run(c, r, &interp, expected, &err) == QN_OK &&
                  memcmp(expected, found, sizeof found) == 0;
    if (!tap_ok(is_said && is_same, "x86-64-v%d: %s", isa, r->what))
        tap_note("%s: %s", qn_status_name((int)status),
                 is_said ? "other elements than the interpreter's" : err.message);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 64];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    qn_context *c = context_with(NULL);
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++)
        for (int isa = QN_ISA_V3; isa <= QN_ISA_V4; isa++)
            test_row(c, &rows[n], isa);
    qn_context_release(c);
    return tap_done();
}
