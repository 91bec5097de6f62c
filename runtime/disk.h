/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.h: a folder of entries (runtime/entry.h), shared by any number of threads and processes;
 * docs/cache.md says what is promised. Each call opens the folder anew and keeps nothing open, so
 * hosts may close descriptors and fork. No lock is needed or taken but by one who evicts.
 *
 * disk.c         folders and files, reading and writing
 * disk_walk.c    all entries, and the bound
 * disk_folder.c  the public functions of quern/cache.h
 */
#ifndef QN_RUNTIME_DISK_H
#define QN_RUNTIME_DISK_H

#include "runtime/entry.h"

#include <stdatomic.h>

#define QN_DISK_USUAL_BYTES ((int64_t)256 << 20)

typedef struct qn_disk {
    char *folder;       /* NULL: there is none */
    bool is_bundle; /* what a program ships: anybody may own it and read it; written by an export
                       only */
    int64_t most_bytes; /* of all entries */
    _Atomic int64_t
        unweighed; /* bytes written through this struct since it last looked at the bound */
    atomic_bool is_told;       /* the user knows why it cannot be used */
} qn_disk;

/** What looking for an entry gives. Only REFUSED and UNUSABLE have a reason: the entry, or the
 * whole folder, is not to be trusted or cannot be read. */
enum { QN_DISK_FOUND, QN_DISK_ABSENT, QN_DISK_REFUSED, QN_DISK_UNUSABLE };

/** Looks for an entry with the identity of `wanted`. FOUND: *out borrows from *bytes, which the
 * caller releases. */
int qn__disk_find(const qn_disk *s, const qn_stored *wanted, qn_text *bytes, qn_stored *out,
                  qn_error *why);
/** Writes an entry, so that others see all of it or nothing, and evicts. `bytes` is that of
 * qn__entry_write. */
bool qn__disk_keep(qn_disk *s, const qn_entry_name *name, const qn_text *bytes, qn_error *why);

/* ---------------------------------------------------------------- shared by the three files */

/** Opens the folder; -1: absent (why->status is QN_ERR_NOT_FOUND) or unusable. `makes`: it and its
 * parents are made. */
int qn__disk_open(const qn_disk *s, bool makes, qn_error *why);
/** Opens a folder in it that holds entries; -1 as above. */
int qn__disk_open_part(const qn_disk *s, int folder, const char *name, bool makes, qn_error *why);
/** Reads the entry of this name in an open part, whatever it is: FOUND says that its bytes are an
 * entry. `seconds`: when it was used last; may be NULL, and then now is noted as such. */
int qn__disk_read(const qn_disk *s, int part, const char *name, qn_text *bytes, qn_stored *out,
                  int64_t *seconds, qn_error *why);

enum { QN_DISK_PART_DIGITS = 2 }; /* of a name, which are the name of the folder that it is in */

/** Calls visit(arg, ...) for each entry and for what an interrupted write left (is_whole false).
 * `part` is open. */
typedef struct qn_disk_file {
    const char *folder, *name; /* of the part, and in it */
    int part;
    bool is_whole;
    int64_t seconds, bytes; /* last use; of the file */
} qn_disk_file;
bool qn__disk_walk(const qn_disk *s, void (*visit)(void *arg, const qn_disk_file *f), void *arg,
                   qn_error *why);
/** Sees that the bound is kept, unless another process does so now. */
void qn__disk_bound(qn_disk *s);

#endif
