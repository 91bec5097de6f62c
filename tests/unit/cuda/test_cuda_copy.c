/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cuda_copy.c: copies, conversions, fills, mirrors and resizes of views in CUDA spaces, on the
 * stub driver: all pairs of spaces and a set of layouts against an element-by-element copy, at once
 * and in streams.
 */
#include "tests/fill.h"
#include "tests/unit/gpu.h"

enum { ROWS = 24, COLUMNS = 36, N = ROWS * COLUMNS };

static const stub_control *stub;

/** Layouts of ROWS x COLUMNS elements. */
enum { RIGHT, LEFT, PADDED, TILED, EVERY_OTHER, REVERSED, WIDE, N_LAYOUTS };

static qn_layout layout_of(int kind)
{
    static const int64_t extents[] = {ROWS, COLUMNS}, tile[] = {4, 6};
    qn_layout l = {0};
    switch (kind) {
    case RIGHT:
        qn_layout_right(2, extents, &l, NULL);
        break;
    case LEFT:
        qn_layout_left(2, extents, &l, NULL);
        break;
    case PADDED:
        qn_layout_strided(2, extents, (const int64_t[]){COLUMNS + 5, 1}, &l, NULL);
        break;
    case TILED:
        qn_layout_tiled(2, extents, tile, NULL, NULL, &l, NULL);
        break;
    case EVERY_OTHER:
        qn_layout_strided(2, extents, (const int64_t[]){2 * COLUMNS, 2}, &l, NULL);
        break;
    case REVERSED:
        qn_layout_strided(2, extents, (const int64_t[]){COLUMNS, 1}, &l, NULL);
        qn_layout_reverse(&l, 0, &l, NULL);
        break;
    case WIDE:
        qn_layout_strided(2, extents, (const int64_t[]){1, ROWS + 40}, &l, NULL);
        break;
    }
    return l;
}

static qn_view view_of(qn_context *c, int space, qn_stream *s, const char *label, int dtype,
                       int kind)
{
    qn_view v = {0};
    qn_view_type type;
    qn_error err = {0};
    qn_layout l = layout_of(kind);
    const qn_alloc_options o = {.bytes = sizeof o, .label = label, .space = space, .stream = s};
    qn_view_type_init(dtype, 2, NULL, QN_FAMILY_ANY, &type, NULL);
    type.space = space;
    if (qn_view_create_layout(c, &type, &l, &o, &v, &err) != QN_OK)
        tap_ok(false, "test view: %s", err.message);
    qn_layout_release(&l);
    return v;
}

/** The address of an element; the stub's device memory is the host's. */
static char *element(const qn_view *v, int64_t i, int64_t j)
{
    int64_t offset = 0;
    const int64_t index[] = {v->layout.dim[0].lower + i, v->layout.dim[1].lower + j};
    qn_layout_at(&v->layout, 2, index, &offset, NULL);
    return (char *)v->data + offset * qn_dtype_bytes(v->dtype);
}

static void put_numbers(const qn_view *v)
{
    for (int i = 0; i < N; i++) {
        uint64_t bits = 0x0101010101010101u * (uint64_t)(i % 251) + (uint64_t)i;
        memcpy(element(v, i / COLUMNS, i % COLUMNS), &bits, (size_t)qn_dtype_bytes(v->dtype));
    }
}

static bool are_equal(const qn_view *a, const qn_view *b)
{
    for (int i = 0; i < N; i++)
        if (memcmp(element(a, i / COLUMNS, i % COLUMNS), element(b, i / COLUMNS, i % COLUMNS),
                   (size_t)qn_dtype_bytes(a->dtype)) != 0) {
            tap_note("element (%d,%d) differs", i / COLUMNS, i % COLUMNS);
            return false;
        }
    return true;
}

static const int spaces[] = {QN_SPACE_HOST, QN_SPACE_CUDA, QN_SPACE_CUDA_MANAGED,
                             QN_SPACE_CUDA_PINNED};

/** One pair of spaces: all pairs of layouts, for a dtype; `s` NULL: copies that wait. */
static void copy_all(qn_context *c, int to, int from, int dtype, qn_stream *s)
{
    int n_failed = 0;
    qn_error err = {0};
    for (int a = 0; a < N_LAYOUTS; a++)
        for (int b = 0; b < N_LAYOUTS; b++) {
            qn_view dst = view_of(c, to, NULL, "dst", dtype, a),
                    src = view_of(c, from, NULL, "src", dtype, b);
            put_numbers(&src);
            qn_status status =
                s ? qn_stream_copy(s, &dst, &src, &err) : qn_deep_copy(c, &dst, &src, &err);
            if (s && status == QN_OK)
                status = qn_stream_fence(s, &err);
            if (status != QN_OK || !are_equal(&dst, &src)) {
                tap_note("layout %d to %d: %s", b, a, status ? err.message : "wrong");
                n_failed++;
            }
            qn_view_release(&dst);
            qn_view_release(&src);
        }
    tap_ok(n_failed == 0, "%s to %s, %s, %s", qn_space_name(from), qn_space_name(to),
           qn_dtype_name(dtype), s ? "in a stream" : "waiting");
}

static void test_pairs(void)
{
    qn_context *c = stub_context();
    qn_stream *s = NULL;
    qn_stream_new(c, 0, &s, NULL);
    stub->defer(1);
    for (int to = 0; to < 4; to++)
        for (int from = 0; from < 4; from++) {
            copy_all(c, spaces[to], spaces[from], to == from ? QN_U8 : QN_F64, NULL);
            if (spaces[to] != QN_SPACE_HOST || spaces[from] != QN_SPACE_HOST)
                copy_all(c, spaces[to], spaces[from], QN_F32, s);
        }
    stub->defer(0);
    qn_stream_release(s);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of copies");
}

/** Between two devices. */
static void test_peers(void)
{
    qn_context *c = stub_context();
    qn_stream *far = NULL;
    qn_error err = {0};
    qn_stream_new(c, 1, &far, NULL);
    stub->defer(1);
    for (int a = 0; a < N_LAYOUTS; a++) {
        qn_view dst = view_of(c, QN_SPACE_CUDA, far, "dst", QN_F32, a),
                src = view_of(c, QN_SPACE_CUDA, NULL, "src", QN_F32, N_LAYOUTS - 1 - a);
        put_numbers(&src);
        tap_ok(qn_deep_copy(c, &dst, &src, &err) == QN_OK && are_equal(&dst, &src),
               "layout %d between devices: %s", a, err.message);
        tap_ok(qn_stream_copy(far, &src, &dst, &err) == QN_OK &&
                   qn_stream_fence(far, &err) == QN_OK && are_equal(&dst, &src),
               "and back in a stream: %s", err.message);
        qn_view_release(&dst);
        qn_view_release(&src);
    }
    stub->defer(0);
    qn_stream_release(far);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of them");
}

/** The driver copies directly between two devices that were connected, else through the host. */
static void test_connected(void)
{
    qn_error err = {0};
    for (int can = 0; can < 2; can++) {
        qn_context *c = stub_context();
        qn_stream *far = NULL;
        qn_stream_new(c, 1, &far, NULL);
        stub->reset();
        stub->peers(can);
        qn_view dst = view_of(c, QN_SPACE_CUDA, far, "dst", QN_F32, RIGHT),
                src = view_of(c, QN_SPACE_CUDA, NULL, "src", QN_F32, RIGHT);
        put_numbers(&src);
        for (int n = 0; n < 2; n++)
            tap_ok(qn_deep_copy(c, &dst, &src, &err) == QN_OK && are_equal(&dst, &src),
                   "a copy between devices: %s", err.message);
        tap_is_int(stub->calls("cuMemPoolSetAccess"), 2 * can,
                   "each reaches the other from the first copy on, if it can");
        qn_view_release(&dst);
        qn_view_release(&src);
        stub->peers(0);
        qn_stream_release(far);
        qn_context_release(c);
        tap_ok(is_clean(stub), "nothing is left of them");
    }
}

static void test_convert(void)
{
    qn_context *c = stub_context();
    qn_error err = {0};
    qn_stream *s = NULL;
    qn_stream_new(c, 0, &s, NULL);
    for (int to = 0; to < 4; to++)
        for (int from = 0; from < 4; from++) {
            qn_view dst = view_of(c, spaces[to], NULL, "dst", QN_F64, LEFT),
                    src = view_of(c, spaces[from], NULL, "src", QN_I16, PADDED);
            put_numbers(&src);
            bool is_right = qn_convert_copy(c, QN_SERIAL, &dst, &src, &err) == QN_OK;
            for (int i = 0; is_right && i < N; i++) {
                int16_t x;
                double y;
                memcpy(&x, element(&src, i / COLUMNS, i % COLUMNS), sizeof x);
                memcpy(&y, element(&dst, i / COLUMNS, i % COLUMNS), sizeof y);
                is_right = y == x;
            }
            tap_ok(is_right, "conversion from %s to %s %s", qn_space_name(spaces[from]),
                   qn_space_name(spaces[to]), err.message);
            if (to != 0 || from != 0)
                tap_ok(qn_stream_convert(s, &dst, &src, &err) == QN_OK &&
                           qn_stream_fence(s, &err) == QN_OK,
                       "in a stream %s", err.message);
            qn_view_release(&dst);
            qn_view_release(&src);
        }
    qn_stream_release(s);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of conversions");
}

static void test_fill(void)
{
    static const struct {
        int dtype;
        uint64_t bits;
    } values[] = {{QN_U8, 7},
                  {QN_I16, 0x1234},
                  {QN_F32, 0x3f800000},
                  {QN_F64, 0x3ff8000000000001},
                  {QN_U64, 0x0505050505050505}};
    qn_context *c = stub_context();
    qn_error err = {0};
    qn_stream *s = NULL;
    qn_stream_new(c, 0, &s, NULL);
    for (int v = 0; v < 5; v++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            qn_view x = view_of(c, QN_SPACE_CUDA, s, "x", values[v].dtype, l);
            bool is_right = fill_bits(c, &x, values[v].bits, &err) == QN_OK;
            for (int i = 0; is_right && i < N; i++)
                is_right = memcmp(element(&x, i / COLUMNS, i % COLUMNS), &values[v].bits,
                                  (size_t)qn_dtype_bytes(x.dtype)) == 0;
            is_right = is_right && stream_fill_bits(s, &x, 0, &err) == QN_OK &&
                       qn_stream_fence(s, &err) == QN_OK;
            for (int i = 0; is_right && i < N; i++)
                is_right = *element(&x, i / COLUMNS, i % COLUMNS) == 0;
            tap_ok(is_right, "fill of %s, layout %d %s", qn_dtype_name(x.dtype), l, err.message);
            qn_view_release(&x);
        }
    qn_view host = view_of(c, QN_SPACE_HOST, NULL, "h", QN_F32, RIGHT), one = {0};
    tap_ok(stream_fill_bits(s, &host, 0, &err) == QN_ERR_SPACE, "host memory in a stream: %s",
           err.message);
    tap_ok(qn_stream_copy(s, &host, &host, &err) == QN_OK, "onto itself: nothing");
    qn_view x = view_of(c, QN_SPACE_CUDA, s, "x", QN_F32, RIGHT);
    const qn_slice at[] = {{.kind = QN_AT, .begin = 3}, {.kind = QN_AT, .begin = 4}};
    uint64_t bits = 0;
    fill_bits(c, &x, 0x40490fdb, &err);
    tap_ok(qn_subview(&x, 2, at, &one, &err) == QN_OK &&
               qn_read_scalar(&one, &bits, &err) == QN_OK && bits == 0x40490fdb,
           "an element is read: %s", err.message);
    qn_view_release(&one);
    qn_view_release(&x);
    qn_view_release(&host);
    qn_stream_release(s);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of fills");
}

static void test_mirrors(void)
{
    qn_context *c = stub_context();
    qn_error err = {0};
    qn_view host = view_of(c, QN_SPACE_HOST, NULL, "h", QN_F32, LEFT), device = {0}, back = {0},
            same = {0};
    put_numbers(&host);
    tap_ok(qn_create_mirror_copy(c, QN_SPACE_CUDA, &host, &device, &err) == QN_OK &&
               device.space == QN_SPACE_CUDA && are_equal(&device, &host),
           "a mirror on the device: %s", err.message);
    tap_is_str(device.label, "h_mirror", "its label");
    tap_ok(qn_layout_is_left(&device.layout), "its layout");
    tap_ok(qn_create_mirror_copy(c, QN_SPACE_HOST, &device, &back, &err) == QN_OK &&
               back.space == QN_SPACE_HOST && are_equal(&back, &host),
           "and back: %s", err.message);
    tap_ok(qn_create_mirror_view(c, QN_SPACE_CUDA, &device, &same, &err) == QN_OK &&
               same.data == device.data,
           "a mirror view of what is there is itself");
    qn_view_release(&same);
    int64_t more[] = {ROWS + 3, COLUMNS - 2};
    tap_ok(qn_view_resize(c, &device, 2, more, NULL, &err) == QN_OK &&
               device.space == QN_SPACE_CUDA,
           "resized: %s", err.message);
    bool is_kept = true;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS - 2; j++)
            is_kept = is_kept && memcmp(element(&device, i, j), element(&host, i, j), 4) == 0;
    tap_ok(is_kept && *element(&device, ROWS, 0) == 0, "the common part is kept, the rest is zero");
    tap_ok(qn_view_realloc(c, &device, 2, more, NULL, &err) == QN_OK &&
               *element(&device, 3, 3) == 0,
           "realloc: %s", err.message);
    qn_view_release(&host);
    qn_view_release(&device);
    qn_view_release(&back);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of mirrors");
}

/** More than a piece, and pieces in every dimension. */
static void test_large(void)
{
    qn_context *c = stub_context();
    qn_error err = {0};
    const int64_t extents[] = {3, 5, 1000003};
    qn_view_type type;
    qn_layout l = {0};
    qn_view host = {0}, device = {0}, back = {0};
    const int64_t strides[] = {2, 6, 30};
    qn_layout_strided(3, extents, strides, &l, NULL);
    qn_view_type_init(QN_U8, 3, NULL, QN_FAMILY_ANY, &type, NULL);
    qn_view_create_layout(c, &type, &l, NULL, &host, &err);
    qn_view_create(c, &type, 3, extents, NULL, &back, &err);
    for (int64_t i = 0; i < 3 * 5 * 1000003; i++)
        ((unsigned char *)host.data)[2 * i] = (unsigned char)(i % 253);
    type.space = QN_SPACE_CUDA;
    const qn_alloc_options o = {.bytes = sizeof o, .space = QN_SPACE_CUDA};
    qn_view_create_layout(c, &type, &l, &o, &device, &err);
    stub->run_with(
        NULL); /* kernels of this size take too long here: only the host's half is looked at */
    tap_ok(qn_deep_copy(c, &device, &host, &err) == QN_OK,
           "a large strided copy goes in pieces: %s", err.message);
    tap_ok(stub->calls("cuMemHostAlloc") >= 2 && stub->calls("cuLaunchKernel") >= 2,
           "... more than one");
    stub_open(STUB_PATH);
    qn_view_release(&host);
    qn_view_release(&device);
    qn_view_release(&back);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of it");
}

int main(void)
{
    char reason[256];
    stub = stub_open(STUB_PATH);
    if (!stub || !has_x86(reason, sizeof reason)) {
        tap_skip(stub ? reason : "no stub driver");
        return tap_done();
    }
    test_fill();
    test_pairs();
    test_peers();
    test_connected();
    test_convert();
    test_mirrors();
    stub->reset();
    test_large();
    return tap_done();
}
