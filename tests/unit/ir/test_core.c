/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_core.c: statuses, dtypes, spaces, error messages, texts, elements in memory.
 */
#include "ir/ir.h"
#include "tests/tap.h"

#include <stdlib.h>

static void test_names(void)
{
    int n_wrong = 0;
#define QN_X(name, number, text)                                                                   \
    n_wrong += strcmp(qn_status_name(number), "QN_" #name) != 0 ||                                 \
               strcmp(qn_status_text(number), text) != 0;
    QN_STATUS_LIST(QN_X)
#undef QN_X
    tap_is_int(n_wrong, 0, "names and texts of all statuses");
    tap_is_str(qn_status_name(99), "QN_ERR_UNKNOWN", "unknown status");
    tap_is_str(qn_status_name(-1), "QN_ERR_UNKNOWN", "negative status");
    tap_ok(qn_status_text(12345) != NULL, "text of an unknown status");
    tap_is_int(qn_version(), QN_VERSION_HEX, "version");
    tap_is_str(qn_space_name(QN_SPACE_CUDA_MANAGED), "cuda-managed", "space");
    tap_is_str(qn_space_name(QN_N_SPACES), "?", "unknown space");
    tap_ok(qn_space_is_available(QN_SPACE_HOST) && !qn_space_is_available(QN_SPACE_HBW) &&
               !qn_space_is_available(-1),
           "available spaces");
}

static void test_dtypes(void)
{
    int n_wrong = 0;
    for (int t = 1; t < QN_RECORD; t++) {
        n_wrong += qn_dtype_of_name(qn_dtype_name(t)) != (qn_dtype)t;
        n_wrong += qn__dtype_width(t) != (t == QN_BOOL ? 1 : 8 * qn_dtype_bytes(t));
        n_wrong += qn__dtype_class(t) == 0;
    }
    tap_is_int(n_wrong, 0, "names, widths and classes");
    tap_ok(qn_dtype_bytes(QN_VOID) == 0 && qn_dtype_bytes(QN_N_DTYPES) == 0 &&
               qn_dtype_bytes(-1) == 0 && qn__dtype_class(99) == 0 && qn__dtype_width(99) == 0,
           "no size of what is no dtype");
    tap_is_str(qn_dtype_name(QN_VOID), "void", "void");
    tap_is_str(qn_dtype_name(77), "?", "unknown dtype");
    tap_is_str(qn_dtype_name(QN_RECORD), "record", "records");
    tap_ok(qn_dtype_of_name("float") == QN_VOID && qn_dtype_of_name(NULL) == QN_VOID &&
               qn_dtype_of_name("") == QN_VOID,
           "unknown names");
}

static void test_elements(void)
{
    static const struct {
        int dtype;
        uint64_t bits, canonical;
    } row[] = {
        {QN_BOOL, 2, 1},
        {QN_BOOL, 0, 0},
        {QN_I8, 0x80, UINT64_MAX - 0x7f},
        {QN_I8, 0x17f, 0x7f},
        {QN_I16, 0xffff, UINT64_MAX},
        {QN_I32, 0x80000000u, 0xffffffff80000000u},
        {QN_I64, UINT64_MAX, UINT64_MAX},
        {QN_U8, 0x1ff, 0xff},
        {QN_U16, UINT64_MAX, 0xffff},
        {QN_U32, UINT64_MAX, 0xffffffffu},
        {QN_U64, UINT64_MAX, UINT64_MAX},
        {QN_F32, 0x123456783f800000u, 0x3f800000u},
        {QN_F64, 0x7ff4000000000001u, 0x7ff4000000000001u},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        unsigned char memory[16];
        memset(memory, 0xaa, sizeof memory);
        tap_ok(qn__canonical(row[i].dtype, row[i].bits) == row[i].canonical,
               "canonical %s %" PRIx64, qn_dtype_name(row[i].dtype), row[i].bits);
        qn__store_element(row[i].dtype, memory + 3, row[i].bits);
        int64_t bytes = qn_dtype_bytes(row[i].dtype);
        tap_ok(qn__load_element(row[i].dtype, memory + 3) == row[i].canonical &&
                   memory[2] == 0xaa && memory[3 + bytes] == 0xaa,
               "stored and loaded, misaligned, nothing beside it");
    }
    unsigned char stray = 0x40;
    tap_is_int((int64_t)qn__load_element(QN_BOOL, &stray), 1, "any non-zero byte is true");
    float one = 1;
    tap_ok(qn__load_element(QN_F32, &one) == 0x3f800000u, "f32");
}

static void test_errors(void)
{
    qn_error err = {0};
    tap_ok(qn__fail(&err, QN_ERR_RANK, "qn_x: %s %d", "a\nb\t", 7) == QN_ERR_RANK &&
               err.status == QN_ERR_RANK && err.line == 0,
           "qn__fail returns and sets the status");
    tap_is_str(err.message, "qn_x: a b  7", "one line");
    qn__fail(&err, QN_ERR_DTYPE, "qn_y: %s", err.message);
    tap_is_str(err.message, "qn_y: qn_x: a b  7", "may quote itself");
    qn__fail_line(&err, QN_ERR_PARSE, 12, "line");
    tap_is_int(err.line, 12, "line");
    tap_ok(qn__fail(NULL, QN_ERR_MEMORY, "x") == QN_ERR_MEMORY, "err may be NULL");
    char *text = malloc(5000);
    memset(text, 'x', 4999);
    text[4999] = '\0';
    qn__fail(&err, QN_ERR_PARSE, "%s", text);
    tap_is_int((int64_t)strlen(err.message), QN_MESSAGE_BYTES - 1, "long messages are cut");
    qn_text t = {0};
    for (int i = 0; i < 100; i++)
        qn__text_add(&t, "%d,", i);
    qn__text_add(&t, "%s", text);
    tap_is_int((int64_t)t.n, 290 + 4999, "text grows");
    char small[4];
    tap_ok(qn__text_out(&t, small, sizeof small) == t.n && strcmp(small, "0,1") == 0 &&
               qn__text_out(&t, NULL, 0) == t.n,
           "text is copied like snprintf");
    qn__text_release(&t);
    tap_ok(!t.data && t.n == 0 && qn__text_out(&t, small, 4) == 0 && small[0] == '\0', "released");
    qn__text_release(NULL);
    free(text);
}

static void test_memory(void)
{
    char *copy = qn__strdup("abc");
    tap_is_str(copy, "abc", "copy of a string");
    qn__free(copy);
    tap_ok(!qn__strdup(NULL), "no copy of NULL");
    tap_ok(!qn__zalloc(SIZE_MAX / 2, 16), "sizes that wrap");
    tap_ok(qn__hash("ab", 2, 0) != qn__hash("ba", 2, 0) &&
               qn__hash("ab", 2, 0) != qn__hash("ab", 2, 1) &&
               qn__hash(NULL, 0, 5) == qn__hash("", 0, 5),
           "hash");
    qn__fail_allocation(2, false);
    void *first = qn__alloc(1), *second = qn__alloc(1), *third = qn__alloc(1);
    qn__fail_allocation(0, false);
    if (second) {
        tap_skip("allocations cannot be made to fail in this build");
    } else {
        tap_ok(first && third, "the second of three allocations failed");
        qn_text t = {0};
        qn__text_add(&t, "abc");
        qn__fail_allocation(1, true);
        for (int i = 0; i < 100; i++)
            qn__text_add(&t, "0123456789");
        tap_ok(t.failed && t.n <= 128 && t.data[t.n] == '\0', "a text without memory stops");
        tap_ok(!qn__realloc(NULL, 8) && !qn__zalloc(1, 1) && !qn__strdup("x"), "for ever");
        qn__fail_allocation(0, false);
        qn__text_release(&t);
    }
    qn__free(first);
    qn__free(second);
    qn__free(third);
}

int main(void)
{
    test_names();
    test_dtypes();
    test_elements();
    test_errors();
    test_memory();
    return tap_done();
}
