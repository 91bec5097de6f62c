/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.h: counted storage behind views. A buffer belongs to the references to it and to nothing
 * else: it may outlive the context it was made with. The count is atomic; the rest never changes
 * after construction.
 */
#ifndef QN_RUNTIME_BUFFER_H
#define QN_RUNTIME_BUFFER_H

#include "ir/ir.h"

struct qn_buffer {
    _Atomic int64_t references;
    char *data;          /* aligned to 64 bytes; to 2 MiB if mapped */
    size_t bytes;        /* that views may use; at most what is there */
    size_t mapped_bytes; /* of a mapping of its own, which starts at data; 0: data stands in the
                            same block */
    char label[];        /* zero-terminated */
};

/** Storage of so many bytes, zeroed unless told otherwise, with one reference; NULL if memory runs
 * out. */
qn_buffer *qn__buffer_new(const char *label, size_t bytes, bool zeroed);
void qn__buffer_retain(qn_buffer *b);
/** Drops a reference. NULL is ignored. */
void qn__buffer_release(qn_buffer *b);

#endif
