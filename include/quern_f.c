/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern_f.c: the C side of the module quern_kernels: launches with Fortran arrays and numbers as
 * they are. Like quern_f.f90 it is compiled into your program, by a C compiler that finds the
 * ISO_Fortran_binding.h of your Fortran compiler, as descriptors differ from one to the next.
 *
 * The context is made at the first launch, and shared by all threads of the program.
 */
#include "quern/embed.h"
#include "quern/fortran.h"

#include <stdatomic.h>

/** Arguments of a launch in Fortran. */
enum { QN_F_MOST = 16 };

/** The context of the program; NULL with an error. */
static qn_context *context_of(qn_error *err)
{
    static _Atomic(qn_context *) shared;
    qn_context *c = shared, *expected = NULL;
    if (c || qn_context_new(NULL, &c, err))
        return c;
    if (atomic_compare_exchange_strong(&shared, &expected, c))
        return c;
    qn_context_release(c); /* another thread was faster */
    return expected;
}

/** Sets *err, and returns the status. */
static qn_status fail(qn_error *err, qn_status status, const qn_kernel *k, int i,
                      const qn_param_info *p, const char *what)
{
    return qn_cfi_fail(err, status, "launch: kernel \"%s\": argument %d (%s): %s",
                       qn_kernel_name(k), i + 1, p->name, what);
}

/** The integer behind a descriptor of rank 0. */
static int64_t integer_of(const CFI_cdesc_t *a)
{
    switch (a->elem_len) {
    case 1:
        return *(const int8_t *)a->base_addr;
    case 2:
        return *(const int16_t *)a->base_addr;
    case 4:
        return *(const int32_t *)a->base_addr;
    default:
        return *(const int64_t *)a->base_addr;
    }
}

/** Whether a dtype holds an integer exactly. */
static bool holds(int dtype, int64_t value)
{
    const char *name = qn_dtype_name(dtype);
    int64_t bits = 8 * qn_dtype_bytes(dtype);
    if (name[0] == 'i')
        return bits == 64 ||
               (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
    if (name[0] == 'u')
        return value >= 0 && (bits == 64 || value < (int64_t)1 << bits);
    int64_t most = dtype == QN_F64 || dtype == QN_C128 ? (int64_t)1 << 53 : (int64_t)1 << 24;
    return (dtype == QN_F32 || dtype == QN_F64 || dtype == QN_C64 || dtype == QN_C128) &&
           value >= -most && value <= most;
}

/** A number for a scalar parameter: of its own type and kind, or an integer that it holds. */
static qn_status take_number(const qn_kernel *k, int i, const qn_param_info *p,
                             const CFI_cdesc_t *a, qn_arg *out, qn_error *err)
{
    const char *type = qn_cfi_dtype_name(a->type, a->elem_len);
    int dtype = type ? (int)qn_dtype_of_name(type) : QN_VOID;
    char what[160];
    if (a->rank != 0)
        return fail(err, QN_ERR_RANK, k, i, p, "is an array, where a number is expected");
    if (dtype == p->dtype) {
        uint64_t bits[2] = {0};
        memcpy(bits, a->base_addr, a->elem_len);
        *out = qn_arg_int(dtype, 0);
        out->bits = bits[0];
        out->high = bits[1];
        return QN_OK;
    }
    if (type && type[0] == 'i' && holds(p->dtype, integer_of(a))) {
        *out = qn_arg_int(p->dtype, integer_of(a));
        return QN_OK;
    }
    snprintf(what, sizeof what, "is a number of %s, where %s is expected",
             type ? type : "a type that Quern lacks", qn_dtype_name(p->dtype));
    return fail(err, QN_ERR_DTYPE, k, i, p, what);
}

/** Arguments of one launch. */
typedef struct arguments {
    qn_arg arg[QN_F_MOST];
    qn_view view[QN_F_MOST];
} arguments;

/** Gives an array its lower bounds: the next ones of a list, or 1. */
static void set_lower(qn_view *v, const int64_t **lower)
{
    for (int d = 0; d < v->layout.rank; d++)
        v->layout.dim[d].lower = *lower ? *(*lower)++ : 1;
}

static qn_status take_arguments(const qn_kernel *k, int n_lower, const int64_t *lower,
                                CFI_cdesc_t *const *a, arguments *out, qn_error *err)
{
    int n = qn_kernel_n_params(k), given = 0, n_bounds = 0;
    for (int i = 0; i < QN_F_MOST; i++)
        given = a[i] ? i + 1 : given;
    for (int i = 0; i < given; i++)
        if (!a[i])
            return qn_cfi_fail(err, QN_ERR_ARGUMENT, "launch: kernel \"%s\": argument %d is absent",
                               qn_kernel_name(k), i + 1);
    if (given != n)
        return qn_cfi_fail(err, QN_ERR_ARGUMENT, "launch: kernel \"%s\" takes %d arguments, not %d",
                           qn_kernel_name(k), n, given);
    qn_param_info p;
    for (int i = 0; i < n; i++) {
        qn_kernel_param(k, i, &p, sizeof p, NULL);
        n_bounds += p.rank > 0 ? p.rank : 0;
    }
    if (n_lower >= 0 && n_lower != n_bounds)
        return qn_cfi_fail(err, QN_ERR_RANK,
                           "launch: kernel \"%s\": %d lower bounds for %d dimensions",
                           qn_kernel_name(k), n_lower, n_bounds);
    const int64_t *next = n_lower >= 0 ? lower : NULL;
    for (int i = 0; i < n; i++) {
        qn_kernel_param(k, i, &p, sizeof p, NULL);
        qn_status status;
        if (p.rank < 0) {
            status = take_number(k, i, &p, a[i], &out->arg[i], err);
        } else {
            status = qn_view_from_cfi(p.name, a[i], -1, 0, &out->view[i], err);
            if (!status && out->view[i].layout.rank != p.rank)
                status = fail(err, QN_ERR_RANK, k, i, &p, "is an array of another rank");
            if (!status)
                set_lower(&out->view[i], &next);
            out->arg[i] = qn_arg_view(&out->view[i]);
        }
        if (status)
            return status;
    }
    return QN_OK;
}

/** Stops the program as Fortran does; a procedure of quern_kernels. */
void qn_f_stop(const qn_error *err);

/** Gives a failure to the caller: the status, and the message in a variable of Fortran, filled with
 * blanks. A caller that takes no status is stopped. */
static void report(const qn_error *err, int32_t *stat, CFI_cdesc_t *errmsg)
{
    size_t n = strlen(err->message);
    if (stat)
        *stat = err->status;
    if (err->status == QN_OK)
        return;
    if (errmsg && errmsg->base_addr) {
        memset(errmsg->base_addr, ' ', errmsg->elem_len);
        memcpy(errmsg->base_addr, err->message, n < errmsg->elem_len ? n : errmsg->elem_len);
    }
    if (!stat)
        qn_f_stop(err);
}

/** Writes a line on the unit of standard output; a procedure of quern_kernels. */
void qn_f_print(const char *text, int n);

static void on_print(void *unused, const qn_printed *line)
{
    (void)unused;
    qn_f_print(line->text, (int)strlen(line->text));
}

/** A kernel as quern_kernels.f90 has it. */
typedef struct qn_f_kernel {
    const qn_kernel *kernel;
    const qn_options *options;
} qn_f_kernel;

static qn_status launch(const qn_f_kernel *k, CFI_cdesc_t *const *a, const CFI_cdesc_t *lower,
                        qn_error *err)
{
    int64_t bounds[QN_F_MOST * CFI_MAX_RANK];
    int n_bounds = -1;
    arguments all;
    if (!k->kernel)
        return qn_cfi_fail(err, QN_ERR_ARGUMENT, "launch: the kernel is not finished");
    if (lower) {
        CFI_index_t n = lower->dim[0].extent;
        n_bounds = n <= QN_F_MOST * CFI_MAX_RANK ? (int)n : QN_F_MOST * CFI_MAX_RANK;
        for (int i = 0; i < n_bounds; i++)
            bounds[i] = *(const int *)((const char *)lower->base_addr + i * lower->dim[0].sm);
    }
    qn_status status = take_arguments(k->kernel, n_bounds, bounds, a, &all, err);
    if (status)
        return status;
    qn_options o = {.bytes = sizeof o};
    if (k->options)
        o = *k->options;
    o.print = on_print;
    qn_context *c = context_of(err);
    return c ? qn_launch(c, k->kernel, qn_kernel_n_params(k->kernel), all.arg, &o, err)
             : (qn_status)err->status;
}

/* qn_launch of quern_kernels.f90. Absent arguments are NULL. */
void qn_f_launch(const qn_f_kernel *k, CFI_cdesc_t *a1, CFI_cdesc_t *a2, CFI_cdesc_t *a3,
                 CFI_cdesc_t *a4, CFI_cdesc_t *a5, CFI_cdesc_t *a6, CFI_cdesc_t *a7,
                 CFI_cdesc_t *a8, CFI_cdesc_t *a9, CFI_cdesc_t *a10, CFI_cdesc_t *a11,
                 CFI_cdesc_t *a12, CFI_cdesc_t *a13, CFI_cdesc_t *a14, CFI_cdesc_t *a15,
                 CFI_cdesc_t *a16, const CFI_cdesc_t *lower, int32_t *stat, CFI_cdesc_t *errmsg);
void qn_f_launch(const qn_f_kernel *k, CFI_cdesc_t *a1, CFI_cdesc_t *a2, CFI_cdesc_t *a3,
                 CFI_cdesc_t *a4, CFI_cdesc_t *a5, CFI_cdesc_t *a6, CFI_cdesc_t *a7,
                 CFI_cdesc_t *a8, CFI_cdesc_t *a9, CFI_cdesc_t *a10, CFI_cdesc_t *a11,
                 CFI_cdesc_t *a12, CFI_cdesc_t *a13, CFI_cdesc_t *a14, CFI_cdesc_t *a15,
                 CFI_cdesc_t *a16, const CFI_cdesc_t *lower, int32_t *stat, CFI_cdesc_t *errmsg)
{
    CFI_cdesc_t *const a[QN_F_MOST] = {a1, a2,  a3,  a4,  a5,  a6,  a7,  a8,
                                       a9, a10, a11, a12, a13, a14, a15, a16};
    qn_error err = {0};
    launch(k, a, lower, &err);
    report(&err, stat, errmsg);
}
