/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h: BLAKE2b-256 (RFC 7693), which names and checks entries of the cache on disk. Any change
 * of an entry, by chance or by a program, gives another digest. It is faster in plain C than
 * SHA-256 is, and a launch waits for it.
 */
#ifndef QN_RUNTIME_DIGEST_H
#define QN_RUNTIME_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { QN_DIGEST_BYTES = 32 };

/** A digest in the making. */
typedef struct qn_digest {
    uint64_t state[8];
    uint64_t n; /* bytes before those in `block` */
    size_t held;
    uint8_t block[128];
} qn_digest;

void qn__digest_begin(qn_digest *d);
void qn__digest_add(qn_digest *d, const void *p, size_t n);
void qn__digest_end(qn_digest *d, uint8_t out[QN_DIGEST_BYTES]);

#endif
