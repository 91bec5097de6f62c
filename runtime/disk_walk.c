/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_walk.c: all entries of a folder, and its bound. Who writes looks at the whole now and then:
 * at most a minute after the last one who did, and whenever a context has written an eighth of the
 * bound. What was used longest ago goes until an eighth is free. One evicts at a time, by a lock
 * that ends with its process; readers and writers do not know of it.
 */
#define _GNU_SOURCE
#include "runtime/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BOUND_PARTS = 8, LOOK_SECONDS = 60, STALE_SECONDS = 3600 };
static const char lock_name[] = "lock";

/* ---------------------------------------------------------------- walking */

/** Whether a file is what a writer left that was killed: "." and 16 hexadecimal digits. */
static bool is_temporary(const char *name)
{
    return name[0] == '.' && strspn(name + 1, "0123456789abcdef") == 16 && name[17] == 0;
}

static void visit_file(DIR *stream, const char *folder, const char *name,
                       void (*visit)(void *, const qn_disk_file *), void *arg)
{
    struct stat st;
    bool is_whole = qn__entry_is_name(name);
    bool is_left = is_temporary(name);
    int part = dirfd(stream);
    if ((!is_whole && !is_left) || fstatat(part, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        S_ISDIR(st.st_mode))
        return;
    const qn_disk_file f = {.folder = folder,
                              .name = name,
                              .part = part,
                              .is_whole = is_whole,
                              .seconds = (int64_t)st.st_mtim.tv_sec,
                              .bytes = (int64_t)st.st_size};
    visit(arg, &f);
}

static void walk_part(const qn_disk *s, int folder, const char *name,
                      void (*visit)(void *, const qn_disk_file *), void *arg)
{
    qn_error ignored = {0};
    int part = qn__disk_open_part(s, folder, name, false, &ignored);
    DIR *stream = part < 0 ? NULL : fdopendir(part);
    if (!stream) {
        if (part >= 0)
            close(part);
        return;
    }
    for (const struct dirent *d; (d = readdir(stream)) != NULL;)
        visit_file(stream, name, d->d_name, visit, arg);
    closedir(stream);
}

bool qn__disk_walk(const qn_disk *s, void (*visit)(void *arg, const qn_disk_file *f), void *arg,
                   qn_error *why)
{
    static const char digit[] = "0123456789abcdef";
    int folder = qn__disk_open(s, false, why);
    if (folder < 0)
        return false;
    for (int i = 0; i < 256; i++) {
        const char name[QN_DISK_PART_DIGITS + 1] = {digit[i >> 4], digit[i & 15], 0};
        walk_part(s, folder, name, visit, arg);
    }
    close(folder);
    return true;
}

/* ---------------------------------------------------------------- the bound */

/** What is there, for eviction. */
typedef struct candidate {
    int64_t seconds, bytes;
    char path[QN_DISK_PART_DIGITS + 1 + QN_ENTRY_NAME_DIGITS + 1];
} candidate;

typedef struct candidates {
    candidate *at;
    size_t n, capacity;
    int64_t bytes, now;
} candidates;

static void add_candidate(void *arg, const qn_disk_file *f)
{
    candidates *c = arg;
    if (!f->is_whole) {
        if (c->now - f->seconds > STALE_SECONDS)
            unlinkat(f->part, f->name, 0);
        return;
    }
    if (c->n == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 256;
        candidate *more = qn__realloc(c->at, capacity * sizeof *more);
        if (!more)
            return;
        c->at = more;
        c->capacity = capacity;
    }
    candidate *new = &c->at[c->n++];
    *new = (candidate){.seconds = f->seconds, .bytes = f->bytes};
    memcpy(new->path, f->folder, QN_DISK_PART_DIGITS);
    new->path[QN_DISK_PART_DIGITS] = '/';
    memcpy(new->path + QN_DISK_PART_DIGITS + 1, f->name, QN_ENTRY_NAME_DIGITS);
    c->bytes += f->bytes;
}

static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds > y->seconds ? 1 : -1) : strcmp(x->path, y->path);
}

static void evict(const qn_disk *s, int folder)
{
    candidates c = {.now = (int64_t)time(NULL)};
    qn_error ignored = {0};
    qn__disk_walk(s, add_candidate, &c, &ignored);
    int64_t most = s->most_bytes - s->most_bytes / BOUND_PARTS;
    if (c.bytes > most)
        qsort(c.at, c.n, sizeof *c.at, compare);
    for (size_t i = 0; i < c.n && c.bytes > most; i++) {
        unlinkat(folder, c.at[i].path, 0);
        c.bytes -= c.at[i].bytes;
    }
    qn__free(c.at);
}

/** Whether it is time to look, and the lock is ours. */
static bool take_lock(qn_disk *s, int lock)
{
    struct stat st;
    bool is_much = atomic_load(&s->unweighed) > s->most_bytes / BOUND_PARTS;
    if (fstat(lock, &st) != 0)
        return false;
    int64_t age = (int64_t)time(NULL) - (int64_t)st.st_mtim.tv_sec;
    bool is_fresh = st.st_size > 0 && age >= 0 && age < LOOK_SECONDS;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    /* Where a file system has no locks, two may remove at once, which is harmless. */
    return (is_much || !is_fresh) &&
           (fcntl(lock, F_SETLK, &whole) == 0 || (errno != EACCES && errno != EAGAIN));
}

void qn__disk_bound(qn_disk *s)
{
    qn_error ignored = {0};
    int folder = qn__disk_open(s, false, &ignored);
    int lock = folder < 0 ? -1
                          : openat(folder, lock_name,
                                   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (lock >= 0 && take_lock(s, lock)) {
        atomic_store(&s->unweighed, 0);
        evict(s, folder);
        /* Its time says when; a new file has no contents, so that its own does not count. */
        if (pwrite(lock, "1", 1, 0) == 1)
            futimens(lock, NULL);
    }
    if (lock >= 0)
        close(lock);
    if (folder >= 0)
        close(folder);
}
