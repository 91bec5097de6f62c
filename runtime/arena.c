/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c: memory for code, see arena.h. Two kinds of slabs:
 *
 *   plain  private anonymous pages, read-write; the pages of a blob become read-execute by one
 * mprotect, and writable again only when they are used anew, which is after every blob on them is
 * dead dual   a memory file mapped twice, read-write here and read-execute there, for systems that
 * refuse the former (W^X policies). Its pages are not used anew before the whole slab is free,
 * because no mprotect then tells the other processors that the code has changed
 *
 * A slab that is free goes back to the system unless it is the only one.
 */
#define _GNU_SOURCE
#include "runtime/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What lies behind code traps: int3 on x86; AArch64 has no instruction 0xcccccccc. */
enum { SLAB_PAGES = 256, FILLER = 0xcc };
enum { PAGE_FRESH = 0, PAGE_USED = 1, PAGE_OLD = 2 }; /* old: still executable, free to use */

struct qn_slab {
    struct qn_slab *next;
    char *writable, *executable; /* the same in a plain slab */
    uint32_t n_pages, n_used;
    bool is_dual;
    uint8_t page[]; /* PAGE_... */
};

/* ---------------------------------------------------------------- slabs */

/** Of a page of the system: 4096, and on some machines of AArch64 more. */
static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/** Maps a fresh memory file twice; false leaves errno. With `slab` addresses set, it replaces those
 * mappings. */
static bool map_dual(struct qn_slab *s)
{
    size_t bytes = (size_t)s->n_pages * page_bytes();
    int fd = memfd_create("quern", MFD_CLOEXEC);
    if (fd < 0)
        return false;
    void *rw = MAP_FAILED, *rx = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0) {
        rw = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        rx = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    }
    int reason = errno;
    close(fd);
    if (rw != MAP_FAILED && rx != MAP_FAILED) {
        s->writable = rw;
        s->executable = rx;
        return true;
    }
    if (rw != MAP_FAILED)
        munmap(rw, bytes);
    if (rx != MAP_FAILED)
        munmap(rx, bytes);
    errno = reason;
    return false;
}

static bool map_plain(struct qn_slab *s)
{
    void *p = mmap(NULL, (size_t)s->n_pages * page_bytes(), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    s->writable = s->executable = p;
    return true;
}

static int64_t slab_bytes(const struct qn_slab *s)
{
    return (int64_t)(s->n_pages * page_bytes());
}

static void unmap(struct qn_slab *s)
{
    size_t bytes = (size_t)s->n_pages * page_bytes();
    munmap(s->writable, bytes);
    if (s->is_dual)
        munmap(s->executable, bytes);
}

static qn_status add_slab(qn_arena *a, uint32_t n_pages, struct qn_slab **out, qn_error *err)
{
    n_pages = n_pages < SLAB_PAGES ? SLAB_PAGES : n_pages;
    struct qn_slab *s = qn__zalloc(1, sizeof *s + n_pages);
    if (!s)
        return qn__fail(err, QN_ERR_MEMORY, "qn__arena_add: no memory for a slab of %u pages",
                        n_pages);
    s->n_pages = n_pages;
    s->is_dual = a->is_dual;
    if (s->is_dual ? !map_dual(s) : !map_plain(s)) {
        int reason = errno;
        qn__free(s);
        bool is_denied = a->is_dual && reason != ENOMEM && reason != EMFILE && reason != ENFILE;
        return qn__fail(err, is_denied ? QN_ERR_EXEC_DENIED : QN_ERR_MEMORY,
                        "qn__arena_add: mapping %u pages: %s", n_pages, strerror(reason));
    }
    s->next = a->first;
    a->first = s;
    a->bytes += slab_bytes(s);
    *out = s;
    return QN_OK;
}

static void free_slab(struct qn_slab *s)
{
    unmap(s);
    qn__free(s);
}

/* ---------------------------------------------------------------- pages */

/** First of n pages in a row that may be written, or n_pages of the slab. */
static uint32_t find_pages(const struct qn_slab *s, uint32_t n)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i < s->n_pages; i++) {
        bool is_free = s->page[i] == PAGE_FRESH || (s->page[i] == PAGE_OLD && !s->is_dual);
        run = is_free ? run + 1 : 0;
        if (run == n)
            return i + 1 - n;
    }
    return s->n_pages;
}

/** Writes the code and makes it executable. On failure the pages stay free, but nobody knows how
 * far mprotect came. */
static bool place(struct qn_slab *s, uint32_t first, uint32_t n, const void *code, size_t n_bytes)
{
    char *at = s->writable + (size_t)first * page_bytes();
    size_t bytes = (size_t)n * page_bytes();
    bool has_old = memchr(s->page + first, PAGE_OLD, n) != NULL;
    if (has_old && mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    memcpy(at, code, n_bytes);
    memset(at + n_bytes, FILLER, bytes - n_bytes);
    if (!s->is_dual && mprotect(at, bytes, PROT_READ | PROT_EXEC) != 0) {
        memset(s->page + first, PAGE_OLD, n);
        return false;
    }
    char *code_at = s->executable + (at - s->writable);
    __builtin___clear_cache(code_at, code_at + bytes); /* of instructions; nothing on x86 */
    memset(s->page + first, PAGE_USED, n);
    s->n_used += n;
    return true;
}

static qn_status add_here(qn_arena *a, const void *code, size_t n_bytes, qn_blob *out,
                          qn_error *err)
{
    uint32_t n = (uint32_t)((n_bytes + page_bytes() - 1) / page_bytes()), first = 0;
    struct qn_slab *s = a->first;
    for (; s; s = s->next) {
        first = s->is_dual == a->is_dual ? find_pages(s, n) : s->n_pages;
        if (first < s->n_pages)
            break;
    }
    if (!s) {
        qn_status status = add_slab(a, n, &s, err);
        if (status)
            return status;
        first = 0;
    }
    if (!place(s, first, n, code, n_bytes))
        return qn__fail(err, errno == ENOMEM ? QN_ERR_MEMORY : QN_ERR_EXEC_DENIED,
                        "qn__arena_add: making %u pages executable: %s", n, strerror(errno));
    *out = (qn_blob){s, first, n, s->executable + (size_t)first * page_bytes(),
                     (size_t)n * page_bytes()};
    return QN_OK;
}

qn_status qn__arena_add(qn_arena *a, const void *code, size_t n, qn_blob *out, qn_error *err)
{
    if (n == 0 || n > (size_t)64 << 20)
        return qn__fail(err, QN_ERR_INTERNAL, "qn__arena_add: code of %zu bytes", n);
    qn_error inner = {0};
    qn_status status = add_here(a, code, n, out, &inner);
    if (status == QN_ERR_EXEC_DENIED && !a->is_dual) {
        a->is_dual = true;
        status = add_here(a, code, n, out, &inner);
    }
    return status ? qn__fail(err, status, "%s", inner.message) : QN_OK;
}

/** Drops slabs without blobs, but keeps one. */
static void trim(qn_arena *a)
{
    for (struct qn_slab **link = &a->first; *link;) {
        struct qn_slab *s = *link;
        bool is_only = s == a->first && !s->next;
        if (s->n_used == 0 && (!is_only || s->is_dual)) {
            *link = s->next;
            a->bytes -= slab_bytes(s);
            free_slab(s);
        } else {
            link = &s->next;
        }
    }
}

void qn__arena_drop(qn_arena *a, qn_blob *blob)
{
    struct qn_slab *s = blob->slab;
    if (!s)
        return;
    memset(s->page + blob->first_page, PAGE_OLD, blob->n_pages);
    s->n_used -= blob->n_pages;
    memset(blob, 0, sizeof *blob);
    if (s->n_used == 0)
        trim(a);
}

void qn__arena_release(qn_arena *a)
{
    while (a->first) {
        struct qn_slab *next = a->first->next;
        free_slab(a->first);
        a->first = next;
    }
}

/** Moves a mapping over another of the same size. */
static bool move_over(char *from, char *to, size_t bytes)
{
    return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

/** Gives a slab a memory file of its own, with the same contents at the same addresses. */
static bool separate(struct qn_slab *s)
{
    size_t bytes = (size_t)s->n_pages * page_bytes();
    struct qn_slab own = {.n_pages = s->n_pages, .is_dual = true};
    if (!map_dual(&own))
        return false;
    memcpy(own.writable, s->writable, bytes);
    if (!move_over(own.writable, s->writable, bytes)) {
        unmap(&own);
        return false;
    }
    if (move_over(own.executable, s->executable, bytes))
        return true;
    munmap(own.executable, bytes);
    return false;
}

void qn__arena_forked(qn_arena *a)
{
    for (struct qn_slab *s = a->first; s; s = s->next) {
        if (!s->is_dual || separate(s))
            continue;
        /* Still the parent's, in part: what is there runs, and nothing more is written to it. */
        for (uint32_t i = 0; i < s->n_pages; i++)
            s->page[i] = s->page[i] == PAGE_FRESH ? PAGE_OLD : s->page[i];
    }
}
