/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_dlpack.c: DLPack tensors as views and views as tensors: what is taken and what is refused,
 * who calls which deleter when, and strides in bytes. The structs are compared with offsets written
 * down from the specification.
 */
#include "quern/bytes.h"
#include "quern/dlpack.h"
#include "tests/unit/layout.h"

#include <stdlib.h>

static float numbers[64];
static int64_t shape_34[] = {3, 4}, strides_34[] = {4, 1};

/** A 3 x 4 tensor of f32 over numbers. */
static qn_dl_tensor small(void)
{
    return (qn_dl_tensor){numbers, {1, 0}, 2, {2, 32, 1}, shape_34, strides_34, 0};
}

static void test_structs(void)
{
    tap_is_int(sizeof(qn_dl_tensor), 48, "size of a tensor");
    tap_is_int(offsetof(qn_dl_tensor, device), 8, "device");
    tap_is_int(offsetof(qn_dl_tensor, ndim), 16, "ndim");
    tap_is_int(offsetof(qn_dl_tensor, dtype), 20, "dtype");
    tap_is_int(offsetof(qn_dl_tensor, shape), 24, "shape");
    tap_is_int(offsetof(qn_dl_tensor, strides), 32, "strides");
    tap_is_int(offsetof(qn_dl_tensor, byte_offset), 40, "byte_offset");
    tap_is_int(sizeof(qn_dl_managed), 64, "size of a managed tensor");
    tap_is_int(sizeof(qn_dl_managed_versioned), 80, "size of a versioned tensor");
    tap_is_int(offsetof(qn_dl_managed_versioned, manager_ctx), 8, "manager_ctx");
    tap_is_int(offsetof(qn_dl_managed_versioned, deleter), 16, "deleter");
    tap_is_int(offsetof(qn_dl_managed_versioned, flags), 24, "flags");
    tap_is_int(offsetof(qn_dl_managed_versioned, dl_tensor), 32, "tensor");
}

/* ---------------------------------------------------------------- borrowing */

static void test_borrow(void)
{
    qn_view v;
    qn_error err = {0};
    qn_dl_tensor t = small();
    tap_ok(qn_view_from_dlpack("t", &t, 0, &v, &err) == QN_OK, "borrow");
    tap_ok(v.data == numbers && v.dtype == QN_F32 && v.layout.rank == 2 && !v.owner, "its head");
    tap_ok(v.layout.dim[0].stride == 4 && v.layout.dim[1].stride == 1 &&
               v.layout.dim[0].extent == 3 && v.layout.dim[0].lower == 0,
           "its layout");

    int64_t backwards[] = {-4, 0};
    t.strides = backwards;
    t.byte_offset = 8 * sizeof(float);
    tap_ok(qn_view_from_dlpack("t", &t, QN_READ_ONLY, &v, &err) == QN_OK &&
               v.data == numbers + 8 && v.layout.dim[0].stride == -4 &&
               v.layout.dim[1].stride == 0 && v.traits == QN_READ_ONLY,
           "negative and zero strides, byte offset, trait");

    t = small();
    t.strides = NULL;
    tap_ok(qn_view_from_dlpack(NULL, &t, 0, &v, &err) == QN_OK && v.layout.dim[0].stride == 4 &&
               v.layout.dim[1].stride == 1,
           "no strides are row-major ones");

    t.ndim = 0;
    t.shape = NULL;
    tap_ok(qn_view_from_dlpack("t", &t, 0, &v, &err) == QN_OK && v.layout.rank == 0 &&
               qn_layout_size(&v.layout) == 1,
           "rank 0");

    int64_t empty[] = {0, 3};
    t = small();
    t.shape = empty;
    t.data = NULL;
    t.byte_offset = 12;
    tap_ok(qn_view_from_dlpack("t", &t, 0, &v, &err) == QN_OK && v.data == NULL &&
               qn_layout_size(&v.layout) == 0,
           "null data of an empty tensor");
}

static void test_refused(void)
{
    qn_view v;
    qn_error err = {0};
    qn_dl_tensor t = small();
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_from_dlpack, "t", NULL, 0, &v);
    tap_is_int(qn_view_from_dlpack("t", &t, 0, NULL, NULL), QN_ERR_ARGUMENT, "out is NULL");
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_from_dlpack, "t", &t, 1u << 30, &v);

    t.data = NULL;
    t.byte_offset = 16;
    REFUSED(QN_ERR_NULL_DATA, v, qn_view_from_dlpack, "t", &t, 0, &v);
    t = small();
    t.byte_offset = 2;
    REFUSED(QN_ERR_ALIGNMENT, v, qn_view_from_dlpack, "t", &t, 0, &v);
    t.byte_offset = UINT64_MAX - 3;
    REFUSED(QN_ERR_OVERFLOW, v, qn_view_from_dlpack, "t", &t, 0, &v);
    t = small();
    t.shape = NULL;
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_from_dlpack, "t", &t, 0, &v);
    t = small();
    t.ndim = QN_MAX_RANK + 1;
    int64_t ones[QN_MAX_RANK + 1];
    for (int d = 0; d <= QN_MAX_RANK; d++)
        ones[d] = 1;
    t.shape = t.strides = ones;
    REFUSED(QN_ERR_RANK, v, qn_view_from_dlpack, "t", &t, 0, &v);
    t.ndim = QN_MAX_RANK;
    tap_ok(qn_view_from_dlpack("t", &t, 0, &v, &err) == QN_OK && v.layout.rank == QN_MAX_RANK,
           "largest rank");
    t.ndim = -1;
    REFUSED(QN_ERR_RANK, v, qn_view_from_dlpack, "t", &t, 0, &v);
    t = small();
    int64_t negative[] = {3, -4};
    t.shape = negative;
    REFUSED(QN_ERR_EXTENT, v, qn_view_from_dlpack, "t", &t, 0, &v);
}

static void test_overflow(void)
{
    static const int64_t huge[][4] = {
        /* shape, strides */
        {3, 4, INT64_MAX, 1},
        {3, 4, INT64_MIN, 1},
        {INT64_MAX, 4, 1, INT64_MAX},
        {2, 2, INT64_MAX / 2 + 1, INT64_MAX / 2 + 1},
        {2, 2, (int64_t)1 << 61, 1}, /* fits in elements, not in bytes */
        {(int64_t)1 << 62, 2, -1, 1},
    };
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        qn_view v;
        int64_t shape[] = {huge[i][0], huge[i][1]}, strides[] = {huge[i][2], huge[i][3]};
        qn_dl_tensor t = small();
        t.shape = shape;
        t.strides = strides;
        REFUSED(QN_ERR_OVERFLOW, v, qn_view_from_dlpack, "t", &t, 0, &v);
    }
    qn_view v;
    int64_t product[] = {(int64_t)1 << 32, (int64_t)1 << 32};
    qn_dl_tensor t = small();
    t.shape = product;
    t.strides = NULL;
    REFUSED(QN_ERR_OVERFLOW, v, qn_view_from_dlpack, "t", &t, 0, &v);
}

static void test_dtypes(void)
{
    static const struct {
        qn_dl_dtype type;
        const char *dtype; /* NULL: refused, with this in the message */
        const char *message;
    } row[] = {
        {{0, 8, 1}, "i8", ""},       {{0, 16, 1}, "i16", ""},     {{0, 32, 1}, "i32", ""},
        {{0, 64, 1}, "i64", ""},     {{1, 8, 1}, "u8", ""},       {{1, 16, 1}, "u16", ""},
        {{1, 32, 1}, "u32", ""},     {{1, 64, 1}, "u64", ""},     {{2, 16, 1}, "f16", ""},
        {{2, 32, 1}, "f32", ""},     {{2, 64, 1}, "f64", ""},     {{4, 16, 1}, "bf16", ""},
        {{5, 64, 1}, "c64", ""},     {{5, 128, 1}, "c128", ""},   {{6, 8, 1}, "bool", ""},
        {{3, 64, 1}, NULL, "opaque"}, {{10, 8, 1}, NULL, "fp8 e4m3fn"},
        {{12, 8, 1}, NULL, "fp8 e5m2"},
        {{17, 4, 1}, NULL, "fp4"},   {{18, 8, 1}, NULL, "unknown"}, {{2, 80, 1}, NULL, "80 bits"},
        {{0, 4, 1}, NULL, "4 bits"}, {{2, 32, 4}, NULL, "4 lanes"}, {{2, 32, 0}, NULL, "0 lanes"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        qn_dl_tensor t = small();
        qn_view v = {0};
        qn_error err = {0};
        t.dtype = row[i].type;
        qn_status status = qn_view_from_dlpack("t", &t, 0, &v, &err);
        qn_dtype expected = row[i].dtype ? qn_dtype_of_name(row[i].dtype) : QN_VOID;
        if (expected != QN_VOID)
            tap_ok(status == QN_OK && v.dtype == (int)expected, "%s", row[i].dtype);
        else
            tap_ok(status == QN_ERR_DTYPE &&
                       strstr(err.message, row[i].dtype ? row[i].dtype : row[i].message),
                   "refused: %s", err.message);
    }
}

/** Type and number of the device go through views and parts of them, and come back. */
static void check_device(const qn_view *v, int type, int number, bool is_known)
{
    qn_dl_managed *back;
    qn_view part, all;
    qn_slice slices[] = {{.kind = QN_AT, .begin = 1}, {.kind = QN_ALL}};
    tap_ok(is_known && qn_space_is_available(v->space) && v->device == number,
           "device %d, number %d", type, v->device);
    tap_ok(qn_subview(v, 2, slices, &part, NULL) == QN_OK && part.device == number, "of a part");
    tap_ok(qn_view_multi("m", 2, (qn_view[]){*v, *v}, 0, &all, NULL) == QN_OK &&
               all.device == number,
           "of a MultiView");
    qn_view_release(&all);
    tap_ok(qn_view_to_dlpack(&part, NULL, NULL, &back, NULL) == QN_OK &&
               back->dl_tensor.device.device_type == type &&
               back->dl_tensor.device.device_id == number,
           "and back");
    back->deleter(back);
    qn_view_release(&part);
}

static void test_devices(void)
{
    for (int type = -1; type <= 20; type++) {
        qn_dl_tensor t = small();
        qn_view v = {0};
        qn_error err = {0};
        t.device.device_type = type;
        t.device.device_id = 3;
        qn_status status = qn_view_from_dlpack("t", &t, 0, &v, &err);
        bool is_known = type >= 1 && type <= 18 && type != 5 && type != 6;
        if (status == QN_OK)
            check_device(&v, type, 3, is_known);
        else
            tap_ok(status == (is_known ? QN_ERR_NOT_AVAILABLE : QN_ERR_SPACE), "%s", err.message);
    }
}

/* ---------------------------------------------------------------- owning */

static int deleted;

static void count_legacy(qn_dl_managed *self)
{
    deleted += self->manager_ctx == &deleted;
}

static void count_versioned(qn_dl_managed_versioned *self)
{
    deleted += self->manager_ctx == &deleted;
}

static void test_take(void)
{
    qn_view v, part;
    qn_error err = {0};
    qn_dl_managed m = {small(), &deleted, count_legacy};
    int64_t backwards[] = {-4, 1};
    m.dl_tensor.strides = backwards;
    m.dl_tensor.byte_offset = 8 * sizeof(float);
    char label[] = "taken";
    deleted = 0;
    tap_ok(qn_view_take_dlpack(label, &m, 0, &v, &err) == QN_OK && deleted == 0, "take");
    label[0] = 'x';
    tap_is_str(v.label, "taken", "the label is copied");
    tap_is_int(qn_view_use_count(&v), 1, "one reference");
    qn_slice slices[] = {{.kind = QN_AT, .begin = 1}, {.kind = QN_ALL}};
    tap_ok(qn_subview(&v, 2, slices, &part, &err) == QN_OK && part.data == numbers + 4, "a part");
    qn_layout inside, outside;
    qn_layout_strided(2, INDEX(3, 4), INDEX(-4, 1), &inside, NULL);
    qn_layout_strided(2, INDEX(4, 4), INDEX(-4, 1), &outside, NULL);
    qn_view again;
    tap_ok(qn_view_with_layout(&v, &inside, &again, &err) == QN_OK,
           "the storage is what is reached");
    qn_view_release(&again);
    REFUSED(QN_ERR_BOUNDS, again, qn_view_with_layout, &v, &outside, &again);
    qn_view_release(&v);
    tap_is_int(deleted, 0, "the part keeps the tensor");
    qn_view_release(&part);
    tap_is_int(deleted, 1, "the last reference calls the deleter once");

    m.deleter = NULL;
    tap_ok(qn_view_take_dlpack(NULL, &m, 0, &v, &err) == QN_OK && v.label == NULL, "no deleter");
    qn_view_release(&v);

    m.deleter = count_legacy;
    m.dl_tensor.dtype.lanes = 2;
    REFUSED(QN_ERR_DTYPE, v, qn_view_take_dlpack, "t", &m, 0, &v);
    m.dl_tensor.dtype.lanes = 1;
    qn__fail_allocation(1, false);
    REFUSED(QN_ERR_MEMORY, v, qn_view_take_dlpack, "t", &m, 0, &v);
    qn__fail_allocation(0, false);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_take_dlpack, "t", NULL, 0, &v);
    tap_is_int(deleted, 1, "a failure leaves the tensor to the caller");
}

static void test_take_versioned(void)
{
    qn_view v;
    qn_error err = {0};
    qn_dl_managed_versioned m = {{1, 3}, &deleted, count_versioned, QN_DL_READ_ONLY, small()};
    deleted = 0;
    tap_ok(qn_view_take_dlpack_versioned("t", &m, 0, &v, &err) == QN_OK &&
               v.traits == QN_READ_ONLY,
           "any minor version; read-only");
    qn_view_release(&v);
    tap_is_int(deleted, 1, "deleted");
    m.flags = 1u << 1 | (uint64_t)1 << 40;
    tap_ok(qn_view_take_dlpack_versioned("t", &m, 0, &v, &err) == QN_OK && v.traits == 0,
           "other flags mean nothing here");
    qn_view_release(&v);
    m.version.major = 2;
    REFUSED(QN_ERR_VERSION, v, qn_view_take_dlpack_versioned, "t", &m, 0, &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_take_dlpack_versioned, "t", NULL, 0, &v);
    tap_is_int(deleted, 2, "refused ones are not deleted");
}

/* ---------------------------------------------------------------- export */

static void note_released(void *context)
{
    ++*(int *)context;
}

static void test_export(void)
{
    qn_view v, back;
    qn_error err = {0};
    qn_dl_managed *m;
    qn_dl_managed_versioned *mv;
    int released = 0;
    qn_view_new(NULL, "a", QN_F64, 2, INDEX(3, 4), &v, &err);
    qn_layout_offset(&v.layout, INDEX(5, -1), &v.layout, &err);
    tap_ok(qn_view_to_dlpack(&v, note_released, &released, &m, &err) == QN_OK, "export");
    tap_is_int(qn_view_use_count(&v), 2, "the tensor holds a reference");
    qn_dl_tensor *t = &m->dl_tensor;
    tap_ok(t->data == v.data && t->ndim == 2 && t->shape[0] == 3 && t->shape[1] == 4 &&
               t->strides[0] == 4 && t->strides[1] == 1 && t->byte_offset == 0 &&
               t->dtype.code == 2 && t->dtype.bits == 64 && t->dtype.lanes == 1 &&
               t->device.device_type == 1 && t->device.device_id == 0,
           "what it says");
    void *data = v.data;
    qn_view_release(&v);
    tap_ok(qn_view_take_dlpack("back", m, 0, &back, &err) == QN_OK && back.data == data &&
               back.layout.dim[0].lower == 0 && released == 0,
           "and back, without lower bounds, after the view is gone");
    qn_view_release(&back);
    tap_is_int(released, 1, "released once");

    qn_layout l;
    qn_layout_strided(1, INDEX(5), INDEX(-2), &l, &err);
    qn_view_wrap("w", numbers + 20, QN_F32, &l, QN_READ_ONLY, &v, &err);
    REFUSED(QN_ERR_READ_ONLY, m, qn_view_to_dlpack, &v, note_released, &released, &m);
    tap_ok(qn_view_to_dlpack_versioned(&v, NULL, NULL, &mv, &err) == QN_OK &&
               mv->version.major == 1 && mv->version.minor == 0 && mv->flags == QN_DL_READ_ONLY &&
               mv->dl_tensor.strides[0] == -2 && mv->dl_tensor.data == numbers + 20,
           "a read-only view has a version");
    mv->deleter(mv);
    v.traits = 0;
    tap_ok(qn_view_to_dlpack_versioned(&v, note_released, &released, &mv, &err) == QN_OK &&
               mv->flags == 0,
           "others have no flag");
    mv->deleter(mv);
    tap_is_int(released, 2, "told of unmanaged memory");

    float scalar = 1;
    v = (qn_view){.data = &scalar, .dtype = QN_F32};
    tap_ok(qn_view_to_dlpack(&v, NULL, NULL, &m, &err) == QN_OK && m->dl_tensor.ndim == 0 &&
               m->dl_tensor.data == &scalar,
           "rank 0");
    m->deleter(m);
    qn_layout_right(2, INDEX(0, 3), &l, &err);
    qn_view_wrap("e", numbers, QN_F32, &l, 0, &v, &err);
    tap_ok(qn_view_to_dlpack(&v, NULL, NULL, &m, &err) == QN_OK && !m->dl_tensor.data &&
               m->dl_tensor.strides[0] == 3,
           "an empty tensor has no data");
    m->deleter(m);
}

static void test_export_refused(void)
{
    qn_view v, none = {0};
    qn_error err = {0};
    qn_dl_managed *m;
    qn_dl_managed_versioned *mv;
    qn_layout l;
    int released = 0;
    qn_layout_tiled(2, INDEX(8, 8), INDEX(1, 4), NULL, (const int[]){0, 1}, &l, &err);
    qn_view_alloc(NULL, "tiled", QN_F32, &l, 0, &v, &err);
    REFUSED(QN_ERR_UNSUPPORTED, m, qn_view_to_dlpack, &v, note_released, &released, &m);
    qn_view_to_dlpack(&v, NULL, NULL, &m, &err);
    tap_contains(err.message, "dimension 1 has 2 digits", "the message names the dimension");
    qn_view_release(&v);
    qn_layout_release(&l);

    qn_layout_right(2, INDEX(3, 4), &l, &err);
    l.projected = 1;
    qn_view_wrap("p", numbers, QN_F32, &l, 0, &v, &err);
    REFUSED(QN_ERR_UNSUPPORTED, mv, qn_view_to_dlpack_versioned, &v, NULL, NULL, &mv);
    REFUSED(QN_ERR_DTYPE, m, qn_view_to_dlpack, &none, NULL, NULL, &m);
    REFUSED(QN_ERR_ARGUMENT, m, qn_view_to_dlpack, NULL, NULL, NULL, &m);
    tap_is_int(qn_view_to_dlpack_versioned(&v, NULL, NULL, NULL, NULL), QN_ERR_ARGUMENT, "out");

    qn_view_new(NULL, "a", QN_F32, 1, INDEX(3), &v, &err);
    qn__fail_allocation(1, false);
    REFUSED(QN_ERR_MEMORY, m, qn_view_to_dlpack, &v, note_released, &released, &m);
    qn__fail_allocation(0, false);
    tap_ok(qn_view_use_count(&v) == 1 && released == 0, "a failed export keeps nothing");
    qn_view_release(&v);
}

/* ---------------------------------------------------------------- strides in bytes */

static void test_bytes(void)
{
    qn_view v;
    qn_error err = {0};
    int64_t extents[2], strides[2], lower[2];
    tap_ok(qn_view_from_bytes("b", numbers + 40, QN_F32, 2, INDEX(3, 4), INDEX(-40, 8),
                              INDEX(1, -2), 0, &v, &err) == QN_OK &&
               v.layout.dim[0].stride == -10 && v.layout.dim[1].stride == 2 &&
               v.layout.dim[1].lower == -2 && v.data == numbers + 40,
           "byte strides");
    tap_ok(qn_view_to_bytes(&v, extents, strides, lower, &err) == QN_OK && extents[1] == 4 &&
               strides[0] == -40 && strides[1] == 8 && lower[0] == 1,
           "and back");
    tap_ok(qn_view_from_bytes("b", numbers, QN_F32, 2, INDEX(3, 4), NULL, NULL, 0, &v, &err) ==
                   QN_OK &&
               v.layout.dim[0].stride == 4,
           "row-major");
    tap_ok(qn_view_from_bytes("b", numbers, QN_F32, 2, INDEX(3, 1), INDEX(4, 7), NULL, 0, &v,
                              &err) == QN_OK,
           "the stride of a single index does not matter");
    tap_ok(qn_view_from_bytes("b", numbers, QN_F32, 2, INDEX(3, 4), INDEX(16, 6), NULL, 0, &v,
                              &err) == QN_OK &&
               v.unit == 2 && v.layout.dim[0].stride == 8 && v.layout.dim[1].stride == 3,
           "strides that are no multiple of the element count a smaller unit");
    int64_t again[2] = {0};
    tap_ok(qn_view_to_bytes(&v, NULL, again, NULL, &err) == QN_OK && again[0] == 16 &&
               again[1] == 6,
           "and are the same bytes again");
    REFUSED(QN_ERR_DTYPE, v, qn_view_from_bytes, "b", numbers, 99, 1, INDEX(3), INDEX(4), NULL, 0,
            &v);
    REFUSED(QN_ERR_RANK, v, qn_view_from_bytes, "b", numbers, QN_F32, 17, INDEX(3), INDEX(4), NULL,
            0, &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_from_bytes, "b", numbers, QN_F32, 1, NULL, INDEX(4), NULL,
            0, &v);
    REFUSED(QN_ERR_NULL_DATA, v, qn_view_from_bytes, "b", NULL, QN_F32, 1, INDEX(3), INDEX(4),
            NULL, 0, &v);
    REFUSED(QN_ERR_OVERFLOW, v, qn_view_from_bytes, "b", numbers, QN_F32, 2, INDEX(3, 3),
            INDEX(INT64_MAX - 3, INT64_MAX - 3), NULL, 0, &v);
    tap_is_int(qn_view_to_bytes(NULL, extents, strides, lower, NULL), QN_ERR_ARGUMENT, "no view");
    tap_is_int(qn_view_from_bytes("b", numbers, QN_F32, 0, NULL, NULL, NULL, 0, NULL, NULL),
               QN_ERR_ARGUMENT, "no out");
}

int main(void)
{
    test_structs();
    test_borrow();
    test_refused();
    test_overflow();
    test_dtypes();
    test_devices();
    test_take();
    test_take_versioned();
    test_export();
    test_export_refused();
    test_bytes();
    return tap_done();
}
