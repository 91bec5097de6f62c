/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h: memory for code. Slabs of whole pages; a blob has pages of its own, is written while
 * they are writable and then made executable once. No page is ever both at one address. The caller
 * serialises all calls.
 */
#ifndef QN_RUNTIME_ARENA_H
#define QN_RUNTIME_ARENA_H

#include "ir/ir.h"

struct qn_slab;

typedef struct qn_arena {
    struct qn_slab *first;
    int64_t bytes; /* of all slabs, used or not */
    bool is_dual; /* plain pages may not become executable here: memory files mapped twice are used
                   */
} qn_arena;

/** Pages of an arena that hold code. */
typedef struct qn_blob {
    struct qn_slab *slab;
    uint32_t first_page, n_pages;
    const void *code; /* executable */
    size_t bytes;     /* of its pages */
} qn_blob;

/** Copies code into pages of its own, executable on success. Errors: QN_ERR_MEMORY,
 * QN_ERR_EXEC_DENIED. */
qn_status qn__arena_add(qn_arena *a, const void *code, size_t n, qn_blob *out, qn_error *err);
/** Gives the pages back. Nobody runs the code any more. A blob without a slab is ignored. */
void qn__arena_drop(qn_arena *a, qn_blob *blob);
void qn__arena_release(qn_arena *a);
/** After fork, in the child: memory files are shared with the parent, so their contents move to
 * files of our own at the same addresses. Only system calls. */
void qn__arena_forked(qn_arena *a);

#endif
