/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * fuzz_schedule.c: libFuzzer entry for texts of schedules: one that parses and verifies prints as a
 * text that does, too, and gives the bits of the interpreter. Built on request only. From the root of the source:
 *
 *   clang-19 -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -DQN_BUILD_ID='""' -I. -Iinclude \
 *            tests/fuzz/fuzz_schedule.c tests/unit/tree_*.c ir/[a-z]*.c ir/build/*.c ir/layout/*.c \
 *            jit/facts/*.c jit/analysis/*.c jit/schedule/*.c build/release/generated/math_text.c -lm -o fuzz_schedule
 *   mkdir -p corpus && ./fuzz_schedule -max_len=4096 -max_total_time=60 corpus
 */
/* clang-format on */
#include "tests/unit/tree_case.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

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
    if (!tree_case_agrees(&c, &s, 1) || !tree_case_is_read_again(&c, &s))
        abort();
    return 0;
}
