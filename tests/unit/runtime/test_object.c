/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_object.c: what quern/object.h gives and refuses. tests/check/ahead.sh compiles and calls the
 * functions. What the headers of objects copy of the library, records and numbers, is compared when
 * this file is compiled.
 */
#include "ir/ir.h"
#include "quern/object.h"
#include "runtime/context.h"
#include "runtime/object_prelude.h.in"
#include "tests/unit/launch.h"

#include <elf.h>

#define IS_FIELD(name)                                                                             \
    _Static_assert(offsetof(quern_record, name) == offsetof(qn_fault, name) &&                     \
                       sizeof(((quern_record *)0)->name) == sizeof(((qn_fault *)0)->name),         \
                   "code writes " #name " of the record of headers where that of the library is")
IS_FIELD(iteration);
IS_FIELD(point);
IS_FIELD(site);
IS_FIELD(status);
IS_FIELD(index);
IS_FIELD(cancel);
_Static_assert(sizeof(quern_record) == sizeof(qn_fault), "a record of headers has all fields");
#define IS_STATUS(name)                                                                            \
    _Static_assert((int)QUERN_##name == (int)QN_##name, "the number of " #name " in headers")
IS_STATUS(OK);
IS_STATUS(ERR_ARGUMENT);
IS_STATUS(ERR_RANK);
IS_STATUS(ERR_DTYPE);
IS_STATUS(ERR_EXTENT);
IS_STATUS(ERR_ALIGNMENT);
IS_STATUS(ERR_OVERLAP);
IS_STATUS(ERR_OVERFLOW);
IS_STATUS(ERR_BOUNDS);
IS_STATUS(ERR_LIMIT);
IS_STATUS(ERR_MEMORY);
IS_STATUS(ERR_UNSUPPORTED);
IS_STATUS(ERR_TARGET);
IS_STATUS(ERR_NOT_INJECTIVE);
IS_STATUS(ERR_NULL_DATA);
IS_STATUS(ERR_RANGE);
IS_STATUS(ERR_ASSERT);
_Static_assert((int)QUERN_RANK == (int)QN_MAX_RANK, "the most dimensions in headers");

enum { N = 100 };
static qn_context *context;
static const qn_options exact = {.bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT};
static const qn_options dynamic = {.bytes = sizeof dynamic, .specialize = QN_SPECIALIZE_DYNAMIC};
static const qn_options generic = {.bytes = sizeof generic, .specialize = QN_SPECIALIZE_GENERIC};

/** y[i] = x[i / 2] for i in [0, extent y / 2): a range that C text does not compute. */
#define HALF_TEXT                                                                                  \
    "kernel \"half\" { view x: f32[1]; view y: f32[1]; %0: i64 = const 0; %1: i64 = extent y, 0;"  \
    " %2: i64 = const 2; %3: i64 = div %1, %2; %4: i64 = parallel %0, %3; %5: f32 = load x[%4];"   \
    " store y[%4], %5; }"
/** y[i] = x[i & 3] over [0, n): the index of x is proved, and is no sum. */
#define LIMITED_TEXT                                                                               \
    "kernel \"limited\" { view x: f32[1]; view y: f32[1]; scalar n: i64; %0: i64 = const 0;"       \
    " %1: i64 = param n; %2: i64 = parallel %0, %1; %3: i64 = const 3; %4: i64 = and %2, %3;"      \
    " %5: f32 = load x[%4]; store y[%2], %5; }"

/** Adds a kernel of two f32 vectors and maybe a scalar, with arguments of n elements. */
static qn_status add(qn_object *o, const char *name, const char *text, int64_t n,
                     const qn_options *options, qn_error *err)
{
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(context, "x", QN_F32, n), y = vector_of(context, "y", QN_F32, n);
    qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
    qn_param_info info;
    if (qn_kernel_n_params(k) == 3 && qn_kernel_param(k, 2, &info, sizeof info, NULL) == QN_OK &&
        info.dtype == QN_I64)
        args[2] = (qn_arg){.dtype = QN_I64, .bits = (uint64_t)n};
    qn_status status =
        qn_object_add(o, context, name, k, qn_kernel_n_params(k), args, options, err);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return status;
}

/** The header of an object; the caller frees it. */
static char *header_of(const qn_object *o)
{
    size_t n = qn_object_header(o, NULL, 0);
    char *text = malloc(n + 1);
    tap_ok(text && n > 0 && qn_object_header(o, text, n + 1) == n && strlen(text) == n,
           "a header of %zu bytes", n);
    return text;
}

static bool has(const char *text, const char *part)
{
    return text && strstr(text, part) != NULL;
}

static void test_files(void)
{
    qn_object *o = NULL;
    qn_error err = {0};
    tap_ok(qn_object_new(&o, &err) == QN_OK && add(o, NULL, SAXPY_TEXT, N, &exact, &err) == QN_OK,
           "an object of a kernel %s", err.message);
    size_t n = qn_object_file(o, NULL, 0);
    unsigned char *bytes = malloc(n);
    Elf64_Ehdr head;
    tap_ok(bytes && qn_object_file(o, bytes, n) == n, "a file of %zu bytes", n);
    memcpy(&head, bytes, sizeof head);
    tap_ok(memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_type == ET_REL &&
               head.e_machine == EM_X86_64,
           "it is relocatable, of x86-64");
    qn_text code = {0};
    uint32_t entry = 1, align = 0;
    tap_ok(qn__elf_to_blob(bytes, n, EM_X86_64, "quern_saxpy_v3_code", &code, &entry, &align,
                           &err) == QN_OK &&
               entry == 0 && align == 64,
           "its function is found, and nothing else is needed %s", err.message);
    tap_ok(qn_object_file(o, bytes, 4) == n, "a small buffer is filled as far as it goes");
    char *text = header_of(o), few[10];
    tap_ok(has(text, "int saxpy(const quern_array *x_0, const quern_array *y_1, float a_2, "
                     "quern_fault *fault)"),
           "it declares the function");
    tap_ok(qn_object_header(o, few, sizeof few) > 9 && strlen(few) == 9,
           "a small buffer ends with a zero");
    qn__text_release(&code);
    free(bytes);
    free(text);
    qn_object_release(o);
    qn_object_release(NULL);
}

/** Accesses that are proved for some arguments only are tested where the function begins, or
 * checked in the code. */
static void test_proofs(void)
{
    qn_object *o[4] = {NULL};
    char *text[4];
    qn_error err = {0};
    for (int i = 0; i < 4; i++)
        qn_object_new(&o[i], &err);
    tap_ok(add(o[0], NULL, SHIFT_TEXT, N, &exact, &err) == QN_OK &&
               add(o[1], NULL, SHIFT_TEXT, N, &dynamic, &err) == QN_OK &&
               add(o[2], NULL, SHIFT_TEXT, N, &generic, &err) == QN_OK &&
               add(o[3], NULL, LIMITED_TEXT, N, &dynamic, &err) == QN_OK,
           "four objects %s", err.message);
    for (int i = 0; i < 4; i++)
        text[i] = header_of(o[i]);
    tap_ok(!has(text[0], "quern_is_outside(r"), "exact code needs no tests");
    tap_ok(has(text[1], "quern_is_outside(r"), "dynamic code has tests");
    tap_ok(!has(text[2], "quern_is_outside(r"), "generic code checks by itself");
    tap_ok(has(text[3], "&y_1->dim[0])") && !has(text[3], "&x_0->dim[0])"),
           "so does code whose index is no sum, for that index");
    for (int i = 0; i < 4; i++) {
        free(text[i]);
        qn_object_release(o[i]);
    }
}

/** What the code relies on is tested where arrays come in. */
static void test_known(void)
{
    const qn_fact_pin pins[] = {{0, QN_PIN_EXTENT, 0, QN_PIN_MULTIPLE, 4}};
    const qn_options of_4 = {
        .bytes = sizeof of_4, .specialize = QN_SPECIALIZE_DYNAMIC, .n_pins = 1, .pins = pins};
    qn_object *o = NULL;
    qn_error err = {0};
    qn_object_new(&o, &err);
    tap_ok(add(o, NULL, SAXPY_TEXT, N, &of_4, &err) == QN_OK, "an object for multiples of 4 %s",
           err.message);
    char *text = header_of(o);
    tap_ok(has(text, "if (x_0->dim[0].extent % 4 != 0)\n        return quern_fail(fault, "
                     "QUERN_ERR_EXTENT, \"x\", 0);"),
           "refuses others");
    tap_ok(!has(text, "y_1->dim[0].extent %"), "of the array that is pinned");
    tap_ok(has(text, "if (y_1->dim[0].extent < -INT32_MAX || y_1->dim[0].extent > INT32_MAX)"),
           "and extents from 2^31 on");
    free(text);
    qn_object_release(o);
}

static void test_errors(void)
{
    qn_object *o = NULL;
    qn_error err = {0};
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    tap_ok(qn_object_new(NULL, &err) == QN_ERR_ARGUMENT, "nowhere to put it: %s", err.message);
    qn_object_new(&o, &err);
    tap_ok(qn_object_add(NULL, context, NULL, k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "no object: %s", err.message);
    tap_ok(qn_object_add(o, NULL, NULL, k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "no context: %s", err.message);
    tap_ok(qn_object_add(o, context, NULL, NULL, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "no kernel: %s", err.message);
    tap_ok(qn_object_add(o, context, "", k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "an empty name: %s", err.message);
    tap_ok(qn_object_add(o, context, "a-b", k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "a bad name: %s", err.message);
    tap_ok(qn_object_add(o, context, "quern_run", k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "a name of ours: %s", err.message);
    tap_ok(add(o, NULL, HALF_TEXT, N, &exact, &err) == QN_OK, "an exact range is a constant %s",
           err.message);
    size_t n_file = qn_object_file(o, NULL, 0), n_header = qn_object_header(o, NULL, 0);
    tap_ok(add(o, "second", HALF_TEXT, N, &dynamic, &err) == QN_ERR_UNSUPPORTED,
           "one that C does not compute: %s", err.message);
    tap_ok(qn_object_file(o, NULL, 0) == n_file && qn_object_header(o, NULL, 0) == n_header,
           "the object is as it was");
    qn_view x = vector_of(context, "x", QN_F32, N), part = x;
    part.layout.dim[0].extent = N - 1;
    part.data = (float *)x.data + 1;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&part), qn_arg_f32(1)};
    tap_ok(qn_object_add(o, context, NULL, k, 3, args, &exact, &err) == QN_ERR_UNSUPPORTED,
           "arguments that overlap: %s", err.message);
    qn_view all = vector_of(context, "all", QN_F32, N);
    all.layout.projected = 1;
    const qn_arg one[] = {qn_arg_view(&all), qn_arg_view(&x), qn_arg_f32(1)};
    tap_ok(qn_object_add(o, context, NULL, k, 3, one, &exact, &err) == QN_ERR_UNSUPPORTED,
           "a broadcast: %s", err.message);
    qn_view_release(&all);
    qn_view_release(&x);
    const qn_options gpu = {
        .bytes = sizeof gpu, .specialize = QN_SPECIALIZE_GENERIC, .isa = QN_ISA_SM80};
    tap_ok(qn_object_add(o, context, NULL, k, 0, NULL, &gpu, &err) == QN_ERR_TARGET, "a GPU: %s",
           err.message);
    tap_ok(qn_object_file(NULL, NULL, 0) == 0 && qn_object_header(NULL, NULL, 0) == 0,
           "no object has no files");
    qn_kernel_release(k);
    qn_object_release(o);
}

/** Each allocation fails once: then the object is as it was, and goes on. */
static void test_memory(void)
{
    qn_object *o = NULL;
    qn_error err = {0};
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_object_new(&o, &err);
    size_t n_header = qn_object_header(o, NULL, 0);
    qn_status status = QN_ERR_MEMORY;
    int n = 1, n_wrong = 0;
    for (; n < 2000 && status != QN_OK; n++) {
        qn__fail_allocation(n, false);
        status = qn_object_add(o, context, NULL, k, 0, NULL, &generic, &err);
        qn__fail_allocation(0, false);
        n_wrong += status != QN_OK && qn_object_header(o, NULL, 0) != n_header;
    }
    tap_ok(status == QN_OK && n > 10 && n_wrong == 0,
           "%d allocations fail once each, and leave nothing behind", n);
    qn__fail_allocation(1, false);
    size_t n_file = qn_object_file(o, NULL, 0);
    qn__fail_allocation(1, false);
    n_header = qn_object_header(o, NULL, 0);
    qn__fail_allocation(0, false);
    tap_ok(n_file == 0 && n_header == 0, "without memory there are no files");
    qn_kernel_release(k);
    qn_object_release(o);
}

int main(void)
{
    char reason[600];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = "off"};
    context = context_with(&o);
    test_files();
    test_proofs();
    test_known();
    test_errors();
    test_memory();
    qn_context_release(context);
    return tap_done();
}
