/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_text.c: libFuzzer entry for the text form: a text that parses must verify, and its print
 * must be a fixed point. ./bootstrap fuzz builds and runs it.
 */
#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/** The text of a kernel, to be freed. Aborting is how a fuzzer reports. */
static char *print_kernel(const qn_kernel *k, size_t *n)
{
    *n = qn_kernel_print(k, NULL, 0);
    char *text = malloc(*n + 1);
    if (!text || qn_kernel_print(k, text, *n + 1) != *n)
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    qn_kernel *k = NULL, *again = NULL;
    qn_error err = {0};
    qn_status status = qn_kernel_parse((const char *)data, n, &k, &err);
    if (status != QN_OK) {
        if (k || err.status != (int32_t)status || (status != QN_ERR_ARGUMENT && err.line < 1))
            abort();
        return 0;
    }
    size_t n_first = 0, n_second = 0;
    char *first = print_kernel(k, &n_first);
    if (qn__verify(k, NULL) != QN_OK || qn_kernel_parse(first, n_first, &again, &err) != QN_OK)
        abort();
    char *second = print_kernel(again, &n_second);
    if (n_first != n_second || memcmp(first, second, n_first) != 0 || k->hash != again->hash)
        abort();
    free(first);
    free(second);
    qn_kernel_release(k);
    qn_kernel_release(again);
    return 0;
}
