/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c: stages of a specialization as files, <folder>/<kernel>-<hash>.<stage>. For people: a file
 * that cannot be written leaves a line in the history and nothing else.
 */
#define _GNU_SOURCE
#include "runtime/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

/** The kernel's name with everything but letters, digits, '-' and '_' replaced: it is not trusted.
 */
static void file_name(const char *kernel, char *out)
{
    size_t n = 0;
    for (; kernel[n] && n + 1 < NAME_BYTES; n++) {
        char ch = kernel[n];
        bool is_plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                        (ch >= '0' && ch <= '9') || ch == '-' || ch == '_';
        out[n] = is_plain ? ch : '_';
    }
    out[n] = 0;
}

static void write_file(qn_context *c, const qn_code *f, const char *stage, const qn_text *text)
{
    char name[NAME_BYTES];
    qn_text path = {0};
    file_name(f->kernel->name, name);
    qn__text_add(&path, "%s/%s-%016" PRIx64 ".%s", c->options.dump_dir, name, f->hash, stage);
    if (path.failed || text->failed) {
        qn__text_release(&path);
        return;
    }
    FILE *file = fopen(path.data, "we");
    bool is_written = file && fwrite(text->data ? text->data : "", 1, text->n, file) == text->n;
    int reason = errno;
    if (file && fclose(file) != 0 && is_written) {
        is_written = false;
        reason = errno;
    }
    if (!is_written) {
        qn_text line = {0};
        qn__text_add(&line, "dump to %s failed: %s", path.data, strerror(reason));
        qn__lock(c);
        if (line.data)
            qn__history_add(&c->history, f->kernel->name, line.data, -1);
        qn__unlock(c);
        qn__text_release(&line);
    }
    qn__text_release(&path);
}

void qn__dump(qn_context *c, const qn_code *f)
{
    uint32_t wanted = c->options.dump;
    if (wanted & QN_DUMP_KERNEL) {
        qn_text text = {0};
        qn__print(f->kernel, false, &text);
        write_file(c, f, "kernel", &text);
        qn__text_release(&text);
    }
    if (wanted & QN_DUMP_KEY) {
        qn_text text = {0};
        qn__key_print(&f->facts, f->kernel, &text);
        write_file(c, f, "key", &text);
        qn__text_release(&text);
    }
    if (wanted & QN_DUMP_PLAN)
        write_file(c, f, "plan", &f->plan);
    if (wanted & QN_DUMP_LLVM)
        write_file(c, f, "llvm", &f->llvm);
    if (wanted & QN_DUMP_ASM)
        write_file(c, f, "asm", &f->assembly);
    if (wanted & QN_DUMP_PTX && f->ptx.n > 0)
        write_file(c, f, "ptx", &(qn_text){.data = f->ptx.data, .n = f->ptx.n - 1});
}
