/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c: the array form of the Trace Event Format (document "Trace Event Format" of the Chromium
 * project): complete events "X" with microseconds, and metadata "M". The closing bracket may be
 * missing, so a file of a process that died can be read, too.
 */
#define _GNU_SOURCE
#include "runtime/trace.h"
#include "runtime/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK_BYTES = 64 << 10, MOST_ARGUMENTS = 1000, MOST_FILES = 1000 };

/* ---------------------------------------------------------------- the file */

/** Opens a file that no other trace writes to; -1 leaves errno. */
static int open_free(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/** The file of the name, or where another context writes it, FILE.PID.1, FILE.PID.2, ... */
static int open_any(const char *name)
{
    int fd = open_free(name);
    for (int i = 1; fd < 0 && errno == EWOULDBLOCK && i < MOST_FILES; i++) {
        qn_text path = {0};
        qn__text_add(&path, "%s.%d.%d", name, (int)getpid(), i);
        errno = ENOMEM;
        fd = path.failed ? -1 : open_free(path.data);
        int reason = errno;
        qn__text_release(&path);
        errno = reason;
    }
    return fd;
}

/** Writes what waits. The lock is held. A disk that is full ends the trace. */
static void flush(qn_trace *t)
{
    for (size_t at = 0; at < t->text.n && t->is_on;) {
        ssize_t n = write(t->fd, t->text.data + at, t->text.n - at);
        at += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno != EINTR) {
            t->is_on = false;
            close(t->fd);
        }
    }
    t->text.n = 0;
}

static void note_failure(qn_context *c, int reason)
{
    qn_text line = {0};
    qn__text_add(&line, "trace to %s failed: %s", c->options.trace, strerror(reason));
    if (line.data && !line.failed) {
        qn__history_add(&c->history, "(context)", line.data, -1);
        qn__log(c, QN_LOG_WARNING, line.data);
    }
    qn__text_release(&line);
}

void qn__trace_open(qn_context *c)
{
    qn_trace *t = &c->trace;
    if (!c->options.trace)
        return;
    t->fd = open_any(c->options.trace);
    t->is_on = t->fd >= 0;
    if (!t->is_on) {
        note_failure(c, errno);
        return;
    }
    qn__text_add(
        &t->text,
        "[\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": \"%s\"}}",
        (int)getpid(), "quern");
}

void qn__trace_close(qn_context *c)
{
    qn__lock(c);
    qn_trace *t = &c->trace;
    if (t->is_on) {
        qn__text_add(&t->text, "\n]\n");
        flush(t);
        if (t->is_on)
            close(t->fd);
        t->is_on = false;
    }
    qn__text_release(&t->text);
    qn__unlock(c);
}

void qn__trace_forked(qn_context *c)
{
    if (c->trace.is_on)
        close(c->trace.fd);
    c->trace.is_on = false;
    c->trace.text.n = 0;
}

/* ---------------------------------------------------------------- events */

/** A string of JSON; bytes that are no ASCII are escaped one by one, so that any name makes a file
 * that can be read. */
static void add_string(qn_text *t, const char *text)
{
    qn__text_add(t, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool is_plain = *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\';
        if (is_plain)
            qn__text_bytes(t, p, 1);
        else
            qn__text_add(t, "\\u%04x", *p);
    }
    qn__text_add(t, "\"");
}

/** Takes over an event. */
static void add_event(qn_context *c, qn_text *event)
{
    qn__lock(c);
    qn_trace *t = &c->trace;
    if (t->is_on && event->data && !event->failed) {
        qn__text_bytes(&t->text, event->data, event->n);
        t->is_on = !t->text.failed;
        if (t->text.n >= BLOCK_BYTES)
            flush(t);
    }
    qn__unlock(c);
    qn__text_release(event);
}

static int this_thread(void)
{
    return (int)syscall(SYS_gettid);
}

void qn__trace_span(qn_context *c, const char *category, const char *name, int64_t start_ns,
                    int64_t ns, const char *arguments, ...)
{
    char more[MOST_ARGUMENTS];
    qn_text event = {0};
    va_list ap;
    va_start(ap, arguments);
    int n = qn__vformat(more, sizeof more, arguments, ap);
    va_end(ap);
    if (n < 0 || n >= MOST_ARGUMENTS)
        more[0] = 0;
    qn__text_add(&event, ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", category);
    add_string(&event, name);
    qn__text_add(
        &event,
        ", \"pid\": %d, \"tid\": %d, \"ts\": %lld.%03d, \"dur\": %lld.%03d, \"args\": {%s}}",
        (int)getpid(), this_thread(), (long long)(start_ns / 1000), (int)(start_ns % 1000),
        (long long)(ns / 1000), (int)(ns % 1000), more);
    add_event(c, &event);
}

/** No process has a number as large as those of GPUs (pid_max is at most 2^22). */
static int process_of(int device)
{
    return (1 << 30) + device;
}

void qn__trace_gpu(qn_context *c, int device, int stream, const char *name, int64_t start_ns,
                   int64_t ns, int64_t n_iterations)
{
    qn_text event = {0};
    qn__text_add(&event, ",\n{\"ph\": \"X\", \"cat\": \"gpu\", \"name\": ");
    add_string(&event, name);
    qn__text_add(&event,
                 ", \"pid\": %d, \"tid\": %d, \"ts\": %lld.%03d, \"dur\": %lld.%03d, \"args\": "
                 "{\"iterations\": %lld}}",
                 process_of(device), stream, (long long)(start_ns / 1000), (int)(start_ns % 1000),
                 (long long)(ns / 1000), (int)(ns % 1000), (long long)n_iterations);
    add_event(c, &event);
}

void qn__trace_stream(qn_context *c, int device, int stream)
{
    qn_text event = {0};
    if (!c->trace.is_on)
        return;
    if (stream == 0)
        qn__text_add(&event,
                     ",\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": "
                     "{\"name\": \"GPU %d\"}}",
                     process_of(device), device);
    qn__text_add(&event,
                 ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, "
                 "\"args\": {\"name\": \"stream %d\"}}",
                 process_of(device), stream, stream);
    add_event(c, &event);
}

void qn__trace_thread(qn_context *c, const char *name)
{
    qn_text event = {0};
    qn__text_add(&event,
                 ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, "
                 "\"args\": {\"name\": ",
                 (int)getpid(), this_thread());
    add_string(&event, name);
    qn__text_add(&event, "}}");
    add_event(c, &event);
}
