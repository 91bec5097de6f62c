/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.c: the folder and the files of a cache on disk, see disk.h.
 *
 * What code runs from must be ours: the folder, its parts and each file belong to the user who runs
 * the process, and nobody else may write them; of a bundle the program answers for the owner. The
 * checks are made on open descriptors, so that what was checked is what is read. Files are read,
 * not mapped: one that is cut meanwhile gives a wrong digest and no signal.
 */
#define _GNU_SOURCE
#include "runtime/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PATH = 4096, TOUCH_SECONDS = 60 };

static int fail(qn_error *why, const char *what, const char *name)
{
    int reason = errno;
    bool is_absent = reason == ENOENT;
    qn__fail(why, is_absent ? QN_ERR_NOT_FOUND : QN_ERR_NOT_AVAILABLE, "%s %.200s: %s", what, name,
             strerror(reason));
    return -1;
}

/* ---------------------------------------------------------------- trust */

/** Why what is open is not to be trusted; NULL if it is. */
static const char *distrust(const qn_disk *s, const struct stat *st)
{
    if (!s->is_bundle && st->st_uid != geteuid())
        return "it belongs to another user";
    if (st->st_mode & (s->is_bundle ? S_IWOTH : S_IWGRP | S_IWOTH))
        return "others may write it";
    return NULL;
}

/** Takes a descriptor of a folder if it is to be trusted, else closes it. */
static int check_folder(const qn_disk *s, int fd, const char *name, qn_error *why)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        fail(why, "folder", name);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    const char *reason = distrust(s, &st);
    if (!reason)
        return fd;
    close(fd);
    qn__fail(why, QN_ERR_NOT_AVAILABLE, "folder %.200s: %s", name, reason);
    return -1;
}

/* ---------------------------------------------------------------- folders */

static mode_t folder_mode(const qn_disk *s)
{
    return s->is_bundle ? 0755 : 0700;
}

/** Makes a folder and the parents that it lacks. */
static bool make_folders(const char *path, mode_t mode, qn_error *why)
{
    char name[MOST_PATH];
    size_t n = strlen(path);
    if (n >= sizeof name) {
        errno = ENAMETOOLONG;
        fail(why, "mkdir", path);
        return false;
    }
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(name, path, i);
        name[i] = 0;
        if (mkdir(name, mode) != 0 && errno != EEXIST && (i == n || access(name, F_OK) != 0)) {
            fail(why, "mkdir", name);
            return false;
        }
    }
    return true;
}

int qn__disk_open(const qn_disk *s, bool makes, qn_error *why)
{
    int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && makes) {
        if (!make_folders(s->folder, folder_mode(s), why))
            return -1;
        fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return check_folder(s, fd, s->folder, why);
}

int qn__disk_open_part(const qn_disk *s, int folder, const char *name, bool makes, qn_error *why)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(folder, name, flags);
    if (fd < 0 && errno == ENOENT && makes &&
        (mkdirat(folder, name, folder_mode(s)) == 0 || errno == EEXIST))
        fd = openat(folder, name, flags);
    return check_folder(s, fd, name, why);
}

/** The part that an entry is in. */
static int open_part_of(const qn_disk *s, const char *name, bool makes, qn_error *why)
{
    char part[QN_DISK_PART_DIGITS + 1] = {0};
    memcpy(part, name, QN_DISK_PART_DIGITS);
    int folder = qn__disk_open(s, makes, why);
    if (folder < 0)
        return -1;
    int fd = qn__disk_open_part(s, folder, part, makes, why);
    close(folder);
    return fd;
}

/* ---------------------------------------------------------------- reading */

/** All of a file that has so many bytes. */
static bool read_all(int fd, size_t n, qn_text *bytes)
{
    bytes->data = qn__alloc(n + 1);
    if (!bytes->data)
        return false;
    bytes->capacity = n + 1;
    while (bytes->n < n) {
        ssize_t part = read(fd, bytes->data + bytes->n, n - bytes->n);
        if (part > 0)
            bytes->n += (size_t)part;
        else if (part == 0 || errno != EINTR)
            break;
    }
    bytes->data[bytes->n] = 0;
    return true;
}

static int read_open(const qn_disk *s, int fd, const char *name, qn_text *bytes, qn_stored *out,
                     int64_t *seconds, qn_error *why)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        fail(why, "entry", name);
        return QN_DISK_REFUSED;
    }
    if (seconds)
        *seconds = (int64_t)st.st_mtim.tv_sec;
    const char *reason = !S_ISREG(st.st_mode) ? "it is no file"
                         : (uint64_t)st.st_size > QN_ENTRY_MOST_BYTES
                             ? "it is too long for an entry"
                             : distrust(s, &st);
    if (!reason && !read_all(fd, (size_t)st.st_size, bytes))
        reason = "no memory";
    if (!reason)
        reason = qn__entry_read(bytes->data, bytes->n, out);
    if (reason) {
        qn__fail(why, QN_ERR_NOT_AVAILABLE, "entry %.60s: %s", name, reason);
        return QN_DISK_REFUSED;
    }
    int64_t age = (int64_t)time(NULL) - (int64_t)st.st_mtim.tv_sec;
    if (!seconds && !s->is_bundle && (age > TOUCH_SECONDS || age < -TOUCH_SECONDS))
        futimens(fd, NULL);
    return QN_DISK_FOUND;
}

int qn__disk_read(const qn_disk *s, int part, const char *name, qn_text *bytes, qn_stored *out,
                  int64_t *seconds, qn_error *why)
{
    /* A name that leads to a device or a pipe does nothing by being opened so. */
    int fd = openat(part, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        bool is_absent = errno == ENOENT || errno == EMFILE || errno == ENFILE;
        fail(why, "entry", name);
        return is_absent ? QN_DISK_ABSENT : QN_DISK_REFUSED;
    }
    int result = read_open(s, fd, name, bytes, out, seconds, why);
    close(fd);
    return result;
}

int qn__disk_find(const qn_disk *s, const qn_stored *wanted, qn_text *bytes, qn_stored *out,
                  qn_error *why)
{
    const qn_entry_name name = qn__entry_name(wanted);
    int part = open_part_of(s, name.text, false, why);
    if (part < 0)
        return why->status == QN_ERR_NOT_FOUND || errno == EMFILE || errno == ENFILE
                   ? QN_DISK_ABSENT
                   : QN_DISK_UNUSABLE;
    int result = qn__disk_read(s, part, name.text, bytes, out, NULL, why);
    close(part);
    if (result == QN_DISK_FOUND && !qn__entry_is_same(out, wanted)) {
        qn__fail(why, QN_ERR_NOT_AVAILABLE, "entry %s: it is that of another kernel", name.text);
        result = QN_DISK_REFUSED;
    }
    return result;
}

/* ---------------------------------------------------------------- writing */

/** Makes a new file with a name that nobody reads. */
static int create(int part, mode_t mode, char name[40])
{
    for (int attempt = 0; attempt < 8; attempt++) {
        uint64_t number = 0;
        if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
            number = (uint64_t)getpid() << 32 ^ (uint64_t)clock() ^ (uint64_t)(uintptr_t)name;
        snprintf(name, 40, ".%016" PRIx64, number);
        int fd = openat(part, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/** Beyond the limit of the process a write would end the process by a signal. */
static bool may_write(size_t n)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           n <= limit.rlim_cur;
}

static bool write_all(int fd, const qn_text *bytes)
{
    errno = EFBIG;
    if (!may_write(bytes->n))
        return false;
    for (size_t at = 0; at < bytes->n;) {
        ssize_t n = write(fd, bytes->data + at, bytes->n - at);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}

/** Without fsync: what a loss of power leaves has a wrong digest, and is written again. */
static bool put(int part, mode_t mode, const char *name, const qn_text *bytes, qn_error *why)
{
    char temporary[40];
    int fd = create(part, mode, temporary);
    if (fd < 0) {
        fail(why, "new entry", name);
        return false;
    }
    bool is_written = write_all(fd, bytes);
    int reason = errno;
    is_written &= close(fd) == 0;
    if (is_written && renameat(part, temporary, part, name) == 0)
        return true;
    errno = is_written ? errno : reason;
    fail(why, "entry", name);
    unlinkat(part, temporary, 0);
    return false;
}

bool qn__disk_keep(qn_disk *s, const qn_entry_name *name, const qn_text *bytes, qn_error *why)
{
    if (bytes->failed || bytes->n > QN_ENTRY_MOST_BYTES || (int64_t)bytes->n > s->most_bytes) {
        qn__fail(why, QN_ERR_LIMIT, "entry %s: %zu bytes are more than the cache may have",
                 name->text, bytes->n);
        return false;
    }
    int part = open_part_of(s, name->text, true, why);
    if (part < 0)
        return false;
    bool is_kept = put(part, s->is_bundle ? 0644 : 0600, name->text, bytes, why);
    close(part);
    if (is_kept && !s->is_bundle) {
        atomic_fetch_add(&s->unweighed, (int64_t)bytes->n);
        qn__disk_bound(s);
    }
    return is_kept;
}
