/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.c: the two files that perf reads, and GDB's list of code. The forms of the files are
 * perf's: /tmp/perf-PID.map has a line "START SIZE NAME" in hexadecimal
 * (tools/perf/Documentation/jit-interface.txt of Linux), and jit-PID.dump has records with the code
 * itself (jitdump-specification.txt there). Nothing is taken out of them: perf takes the latest
 * entry of an address.
 */
#define _GNU_SOURCE
#include "runtime/symbols.h"
#include "jit/emit/gdb.h"
#include "runtime/context.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NAME_BYTES = 160, PAGE_BYTES = 4096 };

/* ---------------------------------------------------------------- jitdump */

enum { DUMP_MAGIC = 0x4A695444, DUMP_VERSION = 1, RECORD_LOAD = 0 };

typedef struct dump_header {
    uint32_t magic, version, total_size, elf_machine, pad, pid;
    uint64_t timestamp, flags;
} dump_header;

typedef struct dump_load {
    uint32_t id, total_size;
    uint64_t timestamp;
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
} dump_load;
_Static_assert(sizeof(dump_header) == 40 && sizeof(dump_load) == 56,
               "the form of perf has no padding");

/** Writes all, or an errno. A record is one write, so that those of several contexts do not mix. */
static int write_all(int fd, const void *data, size_t n)
{
    ssize_t written = write(fd, data, n);
    return written == (ssize_t)n ? 0 : written < 0 ? errno : ENOSPC;
}

/** Begins the file anew unless another context of the process writes it. */
static int begin_dump(int fd)
{
    const dump_header head = {.magic = DUMP_MAGIC,
                              .version = DUMP_VERSION,
                              .total_size = sizeof head,
                              .elf_machine = QN_PROCESSOR_ELF,
                              .pid = (uint32_t)getpid(),
                              .timestamp = (uint64_t)qn__now_ns()};
    int reason = 0;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        reason = ftruncate(fd, 0) ? errno : write_all(fd, &head, sizeof head);
    if (!reason && flock(fd, LOCK_SH) != 0)
        reason = errno;
    return reason;
}

/** Opens and maps the jitdump of the process in `folder`; an errno, 0 on success. */
static int open_dump(qn_symbols *s, const char *folder)
{
    qn_text path = {0};
    qn__text_add(&path, "%s/jit-%d.dump", folder, (int)getpid());
    int fd = path.failed
                 ? -1
                 : open(path.data, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    int reason = fd < 0 ? errno : begin_dump(fd);
    qn__text_release(&path);
    void *page = MAP_FAILED;
    if (fd >= 0 && !reason) {
        page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        reason = page == MAP_FAILED ? errno : 0;
    }
    if (reason) {
        if (fd >= 0)
            close(fd);
        return reason;
    }
    s->dump = fd;
    s->dump_page = page;
    return 0;
}

static void dump_code(qn_symbols *s, const char *name, const void *code, size_t n)
{
    static _Atomic uint64_t n_codes;
    size_t name_bytes = strlen(name) + 1;
    dump_load load = {.id = RECORD_LOAD,
                      .total_size = (uint32_t)(sizeof load + name_bytes + n),
                      .timestamp = (uint64_t)qn__now_ns(),
                      .pid = (uint32_t)getpid(),
                      .tid = (uint32_t)syscall(SYS_gettid),
                      .vma = (uintptr_t)code,
                      .code_addr = (uintptr_t)code,
                      .code_size = n,
                      .code_index = atomic_fetch_add(&n_codes, 1)};
    qn_text record = {0};
    qn__text_bytes(&record, &load, sizeof load);
    qn__text_bytes(&record, name, name_bytes);
    qn__text_bytes(&record, code, n);
    if (!record.failed)
        (void)write_all(s->dump, record.data, record.n); /* what is missing is only a name */
    qn__text_release(&record);
}

/* ---------------------------------------------------------------- the map */

static int map_code(const char *name, const void *code, size_t n)
{
    char path[60], line[NAME_BYTES + 60];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid()); /* where perf looks */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return errno;
    int length =
        snprintf(line, sizeof line, "%llx %zx %s\n", (unsigned long long)(uintptr_t)code, n, name);
    int reason = write_all(fd, line, (size_t)length);
    close(fd);
    return reason;
}

/* ---------------------------------------------------------------- all */

/** "quern:NAME@HASH": the kernel and the version; what is not printed becomes a low line. */
static void name_code(const qn_code *f, char *out)
{
    int n =
        snprintf(out, NAME_BYTES, "quern:%.100s@%08x", f->kernel->name, (unsigned)(f->hash >> 32));
    for (int i = 0; i < n && i < NAME_BYTES; i++)
        if ((unsigned char)out[i] <= ' ' || out[i] == 0x7f)
            out[i] = '_';
}

static void note_failure(qn_context *c, const char *what, int reason)
{
    qn_text line = {0};
    qn__text_add(&line, "symbols: %s: %s", what, strerror(reason));
    if (line.data && !line.failed && !qn__history_has(&c->history, "(context)", line.data))
        qn__history_add(&c->history, "(context)", line.data, -1);
    qn__text_release(&line);
}

void qn__symbols_open(qn_context *c)
{
    if (!(c->options.symbols & QN_SYMBOLS_JITDUMP))
        return;
    int reason = open_dump(&c->symbols, c->options.dump_dir);
    if (reason)
        note_failure(c, "the jitdump in dump_dir", reason);
}

void qn__symbols_forked(qn_context *c)
{
    qn_symbols *s = &c->symbols;
    if (s->dump_page)
        munmap(s->dump_page, PAGE_BYTES);
    if (s->dump)
        close(s->dump);
    memset(s, 0, sizeof *s);
}

void qn__symbols_close(qn_context *c)
{
    qn__symbols_forked(c);
}

/* ---------------------------------------------------------------- GDB */

/* Its list is one of the process. Who takes the lock holds that of a context, so a fork meets it
 * free. */
static pthread_mutex_t gdb_lock = PTHREAD_MUTEX_INITIALIZER;

static void announce(qn_code *f, const qn_text *object)
{
    char name[QN_DEBUG_NAME_BYTES];
    uintptr_t address;
    memcpy(&address, &f->entry, sizeof address);
    qn__source_name(f->kernel, name);
    pthread_mutex_lock(&gdb_lock);
    f->announced = qn__gdb_announce(object->data, object->n, name, address);
    pthread_mutex_unlock(&gdb_lock);
}

void qn__symbols_drop(qn_code *f)
{
    if (!f->announced)
        return;
    pthread_mutex_lock(&gdb_lock);
    qn__gdb_forget(f->announced);
    pthread_mutex_unlock(&gdb_lock);
}

void qn__symbols_add(qn_context *c, qn_code *f, const qn_compiled *compiled)
{
    char name[NAME_BYTES];
    if (!c->options.symbols)
        return;
    if (compiled->object.n && !compiled->object.failed)
        announce(f, &compiled->object);
    const char *code = (const char *)f->blob.code + f->info.entry;
    size_t n = compiled->code.n - f->info.entry;
    name_code(f, name);
    if (c->symbols.dump)
        dump_code(&c->symbols, name, code, n);
    int reason = c->options.symbols & QN_SYMBOLS_PERF_MAP ? map_code(name, code, n) : 0;
    if (reason)
        note_failure(c, "the map of perf in /tmp", reason);
}
