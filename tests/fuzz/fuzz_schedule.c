/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_schedule.c: libFuzzer entry for texts of schedules: one that parses and verifies prints as a
 * text that does, too, and gives the bits of the interpreter: interpreted as a tree, and, where the
 * code generator QUERN_PROVIDER is, in code. The first byte says for which kernel. ./bootstrap fuzz
 * builds and runs it.
 */
#include "tests/unit/tree_case.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/** A kernel, and whether the code generator has it as it is: with others it merges dimensions or
 * loads, so that schedules are none of theirs. */
typedef struct fuzzed {
    tree_case c;
    bool is_open, is_compiled;
} fuzzed;

static qn_status launch(tree_case *c, const char *text)
{
    static qn_context *context;
    qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V4, .schedule = text};
    if (!context && qn_context_new(NULL, &context, NULL) != QN_OK)
        abort();
    for (int p = 0; p < c->n; p++)
        memcpy(c->data[p], c->initial[p], c->bytes[p]);
    return qn_launch(context, c->kernel, c->n, c->arg, &o, NULL);
}

/** A launch with a text that verifies gives what the interpreter gave, or it is refused as the form
 * has no code or the code is too large. */
static bool runs_as_code(tree_case *c, const uint8_t *data, size_t n)
{
    char *text = calloc(1, n + 1);
    bool is_same = true;
    if (!text)
        abort();
    if (n)
        memcpy(text, data, n);
    qn_status status = launch(c, text);
    for (int p = 0; p < c->n && status == QN_OK; p++)
        is_same &= memcmp(c->data[p], c->expected[p], c->bytes[p]) == 0;
    free(text);
    return is_same && (status == QN_OK || status == QN_ERR_UNSUPPORTED || status == QN_ERR_LIMIT);
}

static fuzzed *open_kernel(unsigned number)
{
    static fuzzed all[TREE_SAMPLES];
    const tree_sample *sample = &tree_samples[number];
    fuzzed *f = &all[number];
    if (f->is_open)
        return f;
    if (!tree_case_open(&f->c, sample->text, sample->view, QN_ISA_V4, false))
        abort();
    char *text = tree_case_text(f->c.schedule);
    qn_status status = text ? launch(&f->c, text) : QN_ERR_MEMORY;
    f->is_compiled = status == QN_OK || status == QN_ERR_UNSUPPORTED;
    f->is_open = true;
    free(text);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static qn_schedule s;
    qn_error err = {0};
    if (n == 0)
        return 0;
    fuzzed *f = open_kernel(*data++ % TREE_SAMPLES);
    tree_case *c = &f->c;
    n--;
    if (qn__schedule_parse((const char *)data, n, &s, &err) != QN_OK ||
        qn__schedule_complete(&c->x, &s, &err) != QN_OK ||
        qn__schedule_verify(&c->x, &s, &err) != QN_OK) {
        if (err.status == QN_OK || !err.message[0])
            abort();
        return 0;
    }
    bool is_text = !memchr(data, 0, n);
    if (!tree_case_agrees(c, &s) || !tree_case_is_read_again(c, &s) ||
        (is_text && f->is_compiled && !runs_as_code(c, data, n)))
        abort();
    return 0;
}
