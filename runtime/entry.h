/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.h: the form of one entry of the cache on disk, as bytes; docs/cache.md draws it. Knows no
 * files. An entry is bound to its identity, which is compared byte by byte, and is read only if its
 * digest is right: nothing of it is looked at before.
 */
#ifndef QN_RUNTIME_ENTRY_H
#define QN_RUNTIME_ENTRY_H

#include "ir/ir.h"
#include "runtime/digest.h"

/** What an entry holds: X(NAME, number, text). A number keeps its meaning for ever. */
#define QN_ENTRY_KIND_LIST(X)                                                                      \
    X(X86, 1, "x86")     /* a blob for the arena */                                                \
    X(PTX, 2, "ptx")     /* zero-terminated text */                                                \
    X(CUBIN, 3, "cubin") /* what a driver made of PTX */                                           \
    X(CHOICE, 4, "choice") /* what tuning found: the key of the code, see runtime/choice.c */      \
    X(AARCH64, 5, "aarch64") /* a blob for the arena */
enum {
#define QN_X(name, number, text) QN_ENTRY_##name = number,
    QN_ENTRY_KIND_LIST(QN_X)
#undef QN_X
};
/** "x86", ...; "?" for a number of a later version. */
const char *qn__entry_kind(int32_t kind);

/** Parts of an entry: those up to KEY are its identity, with the kind. */
enum {
    QN_STORED_ENVIRONMENT, /* text: who made it, and for which processor or driver */
    QN_STORED_KERNEL,      /* canonical */
    QN_STORED_KEY,         /* of jit/facts/key.c */
    QN_N_IDENTITY,
    QN_STORED_NAME = QN_N_IDENTITY, /* of the kernel, for people */
    QN_STORED_INFO,                 /* what a launch must know, see runtime/stored.c */
    QN_STORED_PLAN,                 /* text, for people */
    QN_STORED_CODE,
    QN_N_STORED
};
typedef struct qn_stored_part {
    const void *data;
    uint64_t n;
} qn_stored_part;

/** An entry in parts, which are borrowed. */
typedef struct qn_stored {
    int32_t kind;
    qn_stored_part part[QN_N_STORED];
} qn_stored;

enum {
    QN_ENTRY_HEAD_BYTES = 24 + 8 * QN_N_STORED + QN_DIGEST_BYTES,
    QN_ENTRY_MOST_BYTES = 256 << 20
};

/** Name of the file of an entry: hexadecimal digits of a digest of its identity. */
enum { QN_ENTRY_NAME_DIGITS = 40 };
typedef struct qn_entry_name {
    char text[QN_ENTRY_NAME_DIGITS + 1];
} qn_entry_name;
qn_entry_name qn__entry_name(const qn_stored *e);
bool qn__entry_is_name(const char *text);

/** Appends the bytes of an entry. */
void qn__entry_write(const qn_stored *e, qn_text *out);
/** Takes bytes apart, which *out borrows. NULL if they are what was written, else why they are
 * refused. */
const char *qn__entry_read(const void *bytes, size_t n, qn_stored *out);
/** Whether two entries have one identity. */
bool qn__entry_is_same(const qn_stored *a, const qn_stored *b);

#endif
