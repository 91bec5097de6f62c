/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fortran.c: descriptors of Fortran arrays as views, and back. arrays.f90 calls see() with
 * arrays of many kinds; what the view must be stands here. Built and run by check/fortran.sh.
 */
#include "quern/fortran.h"
#include "tests/tap.h"

void send_sections(void);
void send_bounds(void);
void send_assumed_size(double *x);
void send_types(void);
int takes_pointer(CFI_cdesc_t *x);
double sum_of(CFI_cdesc_t *x);
int by_address(void);
void see(int which, CFI_cdesc_t *x);
void see_double(int which, CFI_cdesc_t *x);
void see_pointer(int which, CFI_cdesc_t *x);
void see_allocatable(int which, CFI_cdesc_t *x);
void see_optional(int which, CFI_cdesc_t *x);

/** Whether element (i, j) of a view is the number. */
static bool is_at(const qn_view *v, int64_t i, int64_t j, double number)
{
    void *p;
    return qn_view_at(v, 2, (const int64_t[]){i, j}, &p, NULL) == QN_OK && *(double *)p == number;
}

static bool has_shape(const qn_view *v, int64_t n, int64_t m)
{
    return v->layout.rank == 2 && v->layout.dim[0].extent == n && v->layout.dim[1].extent == m;
}

static bool has_strides(const qn_view *v, int64_t n, int64_t m)
{
    return v->layout.dim[0].stride == n && v->layout.dim[1].stride == m;
}

static bool has_lower(const qn_view *v, int64_t n, int64_t m)
{
    return v->layout.dim[0].lower == n && v->layout.dim[1].lower == m;
}

static void check_section(int which, const qn_view *v)
{
    switch (which) {
    case 1:
        tap_ok(has_shape(v, 10, 10) && has_strides(v, 1, 10) && has_lower(v, 0, 0) &&
                   is_at(v, 4, 6, 507),
               "a whole array");
        break;
    case 2:
        tap_ok(has_shape(v, 3, 5) && has_strides(v, -3, 20) && is_at(v, 0, 0, 801) &&
                   is_at(v, 2, 4, 209),
               "x(8:2:-3, ::2)");
        break;
    case 3:
        tap_ok(v->layout.rank == 1 && v->layout.dim[0].stride == 10 &&
                   ((double *)v->data)[20] == 403,
               "x(4, :)");
        break;
    case 4:
        tap_ok(v->layout.rank == 0 && *(double *)v->data == 506, "a scalar");
        break;
    case 5:
        tap_ok(has_shape(v, 0, 10) && qn_layout_size(&v->layout) == 0, "an empty section");
        break;
    case 10:
        tap_ok(has_shape(v, 6, 4) && has_lower(v, -2, 5) && is_at(v, -2, 5, 101) &&
                   is_at(v, 3, 8, 604),
               "lower bounds of an allocatable");
        break;
    case 11:
        tap_ok(has_shape(v, 6, 4) && has_strides(v, -1, 6) && has_lower(v, 0, 7) &&
                   is_at(v, 0, 7, 601) && is_at(v, 5, 10, 104),
               "a pointer to a reversed section");
        break;
    default:
        tap_ok(has_shape(v, 6, 4) && has_lower(v, 0, 0), "assumed shape: lower bounds 0");
    }
}

static void check_type(int which, const qn_view *v)
{
    const double *d = v->data;
    int64_t stride = v->layout.dim[0].stride;
    switch (which) {
    case 30:
        tap_ok(v->dtype == QN_F64 && stride == 2 && d[0] == -1 && d[10] == -6, "z%%im");
        break;
    case 31:
        tap_ok(v->dtype == QN_F64 && stride == -4 && d[0] == 6 && d[-8] == 2, "z(6:1:-2)%%re");
        break;
    case 32:
        tap_ok(v->dtype == QN_I32 && ((int32_t *)v->data)[2] == 3, "integer(c_int32_t)");
        break;
    case 33:
        tap_ok(v->dtype == QN_I8 && ((int8_t *)v->data)[2] == 3, "integer(c_int8_t)");
        break;
    case 34:
        tap_ok(v->dtype == QN_F32 && ((float *)v->data)[2] == 3, "real(c_float)");
        break;
    case 35:
        tap_ok(v->dtype == QN_BOOL && ((bool *)v->data)[2] && !((bool *)v->data)[1],
               "logical(c_bool)");
        break;
    default:
        tap_ok(v->dtype == (int)qn_dtype_of_name("c128") && stride == 1, "complex");
    }
}

void see(int which, CFI_cdesc_t *x)
{
    qn_view v;
    qn_error err = {0};
    qn_status status = qn_view_from_cfi("x", x, which == 21 ? 3 : -1, 0, &v, &err);
    if (which == 20) {
        tap_ok(status == QN_ERR_EXTENT, "assumed size: %s", err.message);
        tap_contains(err.message, "dimension 1", "... names the dimension");
    } else if (which == 21) {
        tap_ok(status == QN_OK && has_shape(&v, 4, 3) && has_strides(&v, 1, 4),
               "assumed size with the extent given");
    } else if (which == 36 || which == 37 ||
               (which == 38 && qn_dtype_of_name("c128") == QN_VOID)) {
        tap_ok(status == QN_ERR_DTYPE && strncmp(err.message, "qn_view_from_cfi: ", 18) == 0, "%s",
               err.message);
    } else if (!tap_ok(status == QN_OK, "array %d is taken", which)) {
        tap_note("%s", err.message);
    } else if (which >= 30) {
        check_type(which, &v);
    } else {
        check_section(which, &v);
    }
}

void see_double(int which, CFI_cdesc_t *x)
{
    see(which, x);
}

void see_pointer(int which, CFI_cdesc_t *x)
{
    see(which, x);
}

void see_allocatable(int which, CFI_cdesc_t *x)
{
    qn_view v;
    if (which == 12)
        tap_is_int(qn_view_from_cfi("x", x, -1, 0, &v, NULL), QN_ERR_NULL_DATA, "not allocated");
    else
        see(which, x);
}

void see_optional(int which, CFI_cdesc_t *x)
{
    qn_view v;
    (void)which;
    tap_is_int(qn_view_from_cfi("x", x, -1, 0, &v, NULL), QN_ERR_ARGUMENT, "absent");
}

/** Descriptors that Fortran itself would not send. */
static void test_refused(void)
{
    CFI_CDESC_T(1) room;
    CFI_cdesc_t *a = (CFI_cdesc_t *)&room;
    double x[8] = {0};
    qn_view v;
    qn_error err = {0};
    CFI_establish(a, x, CFI_attribute_other, CFI_type_double, 8, 1, (CFI_index_t[]){4});
    a->dim[0].sm = 12;
    tap_is_int(qn_view_from_cfi("x", a, -1, 0, &v, &err), QN_OK, "12 bytes");
    tap_ok(v.unit == 4 && v.layout.dim[0].stride == 3, "... count units of 4 bytes");
    a->dim[0].sm = 8;
    a->version = CFI_VERSION + 1;
    tap_is_int(qn_view_from_cfi("x", a, -1, 0, &v, &err), QN_ERR_VERSION, "another compiler");
    a->version = CFI_VERSION;
    a->elem_len = 16;
    tap_is_int(qn_view_from_cfi("x", a, -1, 0, &v, &err), QN_ERR_DTYPE, "a double of 16 bytes");
    tap_is_int(qn_view_from_cfi("x", NULL, -1, 0, &v, NULL), QN_ERR_ARGUMENT, "no array");
}

static void test_give(void)
{
    double x[40];
    CFI_CDESC_T(2) room;
    CFI_cdesc_t *a = (CFI_cdesc_t *)&room;
    qn_view v;
    qn_error err = {0};
    /* Rows of ten, every third column, last row first. */
    tap_ok(qn_view_from_bytes("g", x + 30, QN_F64, 2, (const int64_t[]){4, 3},
                              (const int64_t[]){-80, 24}, (const int64_t[]){3, -1}, 0, &v,
                              &err) == QN_OK,
           "a view to give");
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            x[30 - 10 * i + 3 * j] = 10 * i + j;
    tap_ok(qn_view_to_cfi(&v, CFI_attribute_other, a, &err) == QN_OK && sum_of(a) == 192,
           "assumed shape");
    tap_ok(qn_view_to_cfi(&v, CFI_attribute_pointer, a, &err) == QN_OK && takes_pointer(a) == 1,
           "a pointer with its bounds");
    tap_ok(x[30] == 1000 && x[6] == 1032, "Fortran writes through it");
    qn_view back;
    tap_ok(qn_view_from_cfi("back", a, -1, 0, &back, &err) == QN_OK && back.data == v.data &&
               has_strides(&back, -10, 3) && has_lower(&back, 3, -1),
           "there and back");

    v.traits = QN_READ_ONLY;
    tap_is_int(qn_view_to_cfi(&v, CFI_attribute_other, a, &err), QN_ERR_READ_ONLY, "read-only");
    v.traits = 0;
    v.dtype = QN_U64;
    tap_is_int(qn_view_to_cfi(&v, CFI_attribute_other, a, &err), QN_ERR_DTYPE, "unsigned");
    v.dtype = QN_F64;
    v.layout.projected = 2;
    tap_is_int(qn_view_to_cfi(&v, CFI_attribute_other, a, &err), QN_ERR_UNSUPPORTED, "projected");
    tap_contains(err.message, "qn_view_to_cfi: view \"g\": dimension 1", "... with the reason");
    v.layout.projected = 0;
    tap_is_int(qn_view_to_cfi(&v, 99, a, &err), QN_ERR_ARGUMENT, "attribute");
    tap_is_int(qn_view_to_cfi(NULL, CFI_attribute_other, a, NULL), QN_ERR_ARGUMENT, "no view");
}

int main(void)
{
    double x[12] = {0};
    send_sections();
    send_bounds();
    send_assumed_size(x);
    send_types();
    test_refused();
    test_give();
    tap_ok(by_address() == 1, "the module makes views by address and strides");
    return tap_done();
}
