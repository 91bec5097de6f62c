/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * fuzz_schedule.c: libFuzzer entry for texts of schedules: one that parses and verifies prints as a
 * text that does, too, and gives the bits of the interpreter: interpreted as a tree, and, where the
 * code generator QUERN_PROVIDER is, in code. Built on request only. From the root of the source:
 *
 *   clang-19 -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined \
 *            -include build/release/generated/build_id.h -I. -Iinclude -Ibuild/release \
 *            tests/fuzz/fuzz_schedule.c tests/unit/tree_*.c ir/[a-z]*.c ir/build/*.c \
 *            ir/layout/*.c jit/facts/*.c jit/analysis/*.c jit/schedule/*.c jit/emit/gdb.c \
 *            runtime/*.c runtime/cuda/*.c build/release/generated/*.c -lm -ldl -lpthread \
 *            -o fuzz_schedule
 *   export QUERN_PROVIDER=$PWD/build/release/libquern-llvm.so
 *   mkdir -p corpus && ./fuzz_schedule -max_len=4096 -max_total_time=60 corpus
 */
/* clang-format on */
#include "tests/unit/tree_case.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/** A launch with a text that verifies gives what the interpreter gave, or it is refused as the form
 * has no code or the code is too large. */
static bool runs_as_code(tree_case *c, const uint8_t *data, size_t n)
{
    static qn_context *context;
    char *text = calloc(1, n + 1);
    qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V4, .schedule = text};
    qn_error err = {0};
    bool is_same = true;
    if (!text || (!context && qn_context_new(NULL, &context, &err) != QN_OK))
        abort();
    if (n)
        memcpy(text, data, n);
    for (int p = 0; p < c->n; p++)
        memcpy(c->data[p], c->initial[p], c->bytes[p]);
    qn_status status = qn_launch(context, c->kernel, c->n, c->arg, &o, &err);
    for (int p = 0; p < c->n && status == QN_OK; p++)
        is_same &= memcmp(c->data[p], c->expected[p], c->bytes[p]) == 0;
    free(text);
    return is_same && (status == QN_OK || status == QN_ERR_UNSUPPORTED || status == QN_ERR_LIMIT ||
                       status == QN_ERR_PROVIDER || status == QN_ERR_TARGET);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static tree_case c;
    static qn_schedule s;
    static bool is_open;
    qn_error err = {0};
    if (!is_open)
        is_open = tree_case_open(&c, tree_samples[2].text, tree_samples[2].view, QN_ISA_V4, false);
    if (!is_open)
        abort();
    if (qn__schedule_parse((const char *)data, n, &s, &err) != QN_OK ||
        qn__schedule_complete(&c.x, &s, &err) != QN_OK ||
        qn__schedule_verify(&c.x, &s, &err) != QN_OK) {
        if (err.status == QN_OK || !err.message[0])
            abort();
        return 0;
    }
    if (!tree_case_agrees(&c, &s, 1) || !tree_case_is_read_again(&c, &s) ||
        (!memchr(data, 0, n) && !runs_as_code(&c, data, n)))
        abort();
    return 0;
}
