/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c: the printed texts of kernels as files in dump_dir, whose lines a debugger shows. A file
 * is never written to twice: one of the same name with the same text serves, and beside one with
 * another text, or a link, stands a file with a number.
 */
#define _GNU_SOURCE
#include "runtime/symbols.h"
#include "runtime/context.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NUMBERS = 1000 };

void qn__source_name(const qn_kernel *k, char *name)
{
    size_t n = 0;
    for (; k->name[n] && n + 1 < QN_DEBUG_NAME_BYTES; n++) {
        char ch = k->name[n];
        bool is_plain =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
        name[n] = is_plain ? ch : '_';
    }
    if (n == 0)
        name[n++] = '_';
    name[n] = 0;
}

/** Whether a file holds this text. */
static bool has_text(const char *path, const qn_text *text)
{
    char block[4096];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool is_same = fd >= 0;
    size_t at = 0;
    ssize_t n = 0;
    while (is_same && (n = read(fd, block, sizeof block)) > 0) {
        is_same = (size_t)n <= text->n - at && memcmp(block, text->data + at, (size_t)n) == 0;
        at += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    return is_same && n == 0 && at == text->n;
}

/** Makes a file with this text; an errno, 0 on success. */
static int make_file(const char *path, const qn_text *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    ssize_t n = write(fd, text->data, text->n);
    int reason = n < 0 ? errno : (size_t)n == text->n ? 0 : ENOSPC;
    close(fd);
    if (reason)
        unlink(path);
    return reason;
}

/** "FOLDER/NAME-HASH.qn", with a number from the second on. */
static void set_path(const qn_context *c, const qn_kernel *k, const char *name, int number,
                     qn_text *path)
{
    qn__text_release(path);
    if (c->options.dump_dir[0] != '/') {
        char *folder = getcwd(NULL, 0);
        qn__text_add(path, "%s/", folder ? folder : "");
        free(folder); /* of the C library */
    }
    qn__text_add(path, "%s/%s-%08x", c->options.dump_dir, name, (unsigned)(k->hash >> 32));
    if (number > 1)
        qn__text_add(path, "-%d", number);
    qn__text_add(path, ".qn");
}

static void note_failure(qn_context *c, const qn_kernel *k, const qn_text *path, int reason)
{
    qn_text line = {0};
    qn__text_add(&line, "no lines for GDB: %s: %s", path->data ? path->data : "?",
                 strerror(reason));
    qn__lock(c);
    if (line.data && !line.failed && !qn__history_has(&c->history, k->name, line.data))
        qn__history_add(&c->history, k->name, line.data, -1);
    qn__unlock(c);
    qn__text_release(&line);
}

bool qn__symbols_source(qn_context *c, const qn_kernel *k, char *name, qn_text *path)
{
    qn_text text = {0};
    int reason = EEXIST;
    if (!(c->options.symbols & QN_SYMBOLS_GDB))
        return false;
    qn__source_name(k, name);
    qn__print(k, false, &text);
    if (text.failed)
        reason = ENOMEM;
    for (int number = 1; number < MOST_NUMBERS && reason == EEXIST; number++) {
        set_path(c, k, name, number, path);
        reason = path->failed ? ENOMEM : make_file(path->data, &text);
        if (reason == EEXIST && has_text(path->data, &text))
            reason = 0;
    }
    if (reason)
        note_failure(c, k, path, reason);
    qn__text_release(&text);
    return reason == 0;
}
