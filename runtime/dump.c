/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c: stages of a specialization as files, <folder>/<kernel>-<hash>.<stage>. For people: a file
 * that cannot be written leaves a line in the history and nothing else. The names can be guessed,
 * so a file is always a new one: where one of the names is taken, by a link too, all stages get a
 * number, <kernel>-<hash>-<number>.<stage>.
 */
#define _GNU_SOURCE
#include "runtime/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 64, MOST_NUMBERS = 10000, MOST_STAGES = 8 };

/** One stage on its way into a file. */
typedef struct stage {
    const char *name;
    const qn_text *text;
    qn_text path;
    int fd; /* -1: not open */
} stage;

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

/** Makes the file of a stage; an errno, 0 on success. */
static int create(const qn_context *c, const qn_code *f, int number, stage *s)
{
    char name[NAME_BYTES];
    file_name(f->kernel->name, name);
    qn__text_release(&s->path);
    qn__text_add(&s->path, "%s/%s-%016" PRIx64, c->options.dump_dir, name, f->hash);
    if (number > 1)
        qn__text_add(&s->path, "-%d", number);
    qn__text_add(&s->path, ".%s", s->name);
    if (s->path.failed)
        return ENOMEM;
    s->fd = open(s->path.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return s->fd < 0 ? errno : 0;
}

/** Makes the files of all stages with one number; an errno. Then none of them is there. */
static int create_all(const qn_context *c, const qn_code *f, int number, stage *s, int n)
{
    for (int i = 0; i < n; i++) {
        int reason = create(c, f, number, &s[i]);
        if (!reason)
            continue;
        for (int j = 0; j < i; j++) {
            close(s[j].fd);
            unlink(s[j].path.data);
            s[j].fd = -1;
        }
        return reason;
    }
    return 0;
}

/** Writes and closes; an errno, 0 on success. */
static int write_text(stage *s)
{
    int reason = 0;
    for (size_t at = 0; at < s->text->n && !reason;) {
        ssize_t n = write(s->fd, s->text->data + at, s->text->n - at);
        if (n >= 0)
            at += (size_t)n;
        else if (errno != EINTR)
            reason = errno;
    }
    if (close(s->fd) != 0 && !reason)
        reason = errno;
    s->fd = -1;
    return reason;
}

static void note_failure(qn_context *c, const qn_code *f, const stage *s, int reason)
{
    qn_text line = {0};
    qn__text_add(&line, "dump to %s failed: %s", s->path.data ? s->path.data : s->name,
                 strerror(reason));
    qn__lock(c);
    if (line.data)
        qn__history_add(&c->history, f->kernel->name, line.data, -1);
    qn__unlock(c);
    qn__text_release(&line);
}

static void write_stages(qn_context *c, const qn_code *f, stage *s, int n)
{
    int reason = EEXIST;
    for (int number = 1; number < MOST_NUMBERS && reason == EEXIST; number++)
        reason = create_all(c, f, number, s, n);
    for (int i = 0; i < n; i++) {
        int failure = reason ? reason : write_text(&s[i]);
        if (failure)
            note_failure(c, f, &s[i], failure);
        qn__text_release(&s[i].path);
    }
}

void qn__dump(qn_context *c, const qn_code *f)
{
    uint32_t wanted = c->options.dump;
    qn_text kernel = {0}, key = {0};
    const qn_text ptx = {.data = f->ptx.data, .n = f->ptx.n ? f->ptx.n - 1 : 0};
    if (wanted & QN_DUMP_KERNEL)
        qn__print(f->kernel, false, &kernel);
    if (wanted & QN_DUMP_KEY)
        qn__key_print(&f->facts, f->kernel, &key);
    const struct {
        uint32_t bit;
        const char *name;
        const qn_text *text;
    } known[MOST_STAGES] = {
        {QN_DUMP_KERNEL, "kernel", &kernel}, {QN_DUMP_KEY, "key", &key},
        {QN_DUMP_PLAN, "plan", &f->plan},    {QN_DUMP_LLVM, "llvm", &f->llvm},
        {QN_DUMP_ASM, "asm", &f->assembly},  {f->ptx.n ? QN_DUMP_PTX : 0, "ptx", &ptx},
        {QN_DUMP_SCHEDULE, "schedule", &f->schedule},
        {QN_DUMP_ESTIMATE, "estimate", &f->estimate},
    };
    stage s[MOST_STAGES];
    int n = 0;
    for (int i = 0; i < MOST_STAGES; i++)
        if ((wanted & known[i].bit) && !known[i].text->failed)
            s[n++] = (stage){.name = known[i].name, .text = known[i].text, .fd = -1};
    write_stages(c, f, s, n);
    qn__text_release(&kernel);
    qn__text_release(&key);
}
