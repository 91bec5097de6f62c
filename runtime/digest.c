/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.c: BLAKE2b without a key and with 32 bytes of output, as RFC 7693 defines it. Little
 * endian, as the machines that code is generated for.
 */
#include "runtime/digest.h"

#include <string.h>

enum { BLOCK_BYTES = 128, ROUNDS = 12 };

/* Fractions of the square roots of the first eight primes (RFC 7693, section 2.6). */
static const uint64_t initial[8] = {UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b),
                                    UINT64_C(0x3c6ef372fe94f82b), UINT64_C(0xa54ff53a5f1d36f1),
                                    UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
                                    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

/* The order of the message's words in each round (section 2.7); rounds 10 and 11 are 0 and 1 again.
 */
static const uint8_t order[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint64_t rotate(uint64_t x, int n)
{
    return x >> n | x << (64 - n);
}

/** Mixes two words of the message into four of the work (section 3.1). */
static inline void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] = v[a] + v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 32);
    v[c] = v[c] + v[d];
    v[b] = rotate(v[b] ^ v[c], 24);
    v[a] = v[a] + v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] = v[c] + v[d];
    v[b] = rotate(v[b] ^ v[c], 63);
}

/** Takes one block; d->n counts it (section 3.2). */
static void compress(qn_digest *d, const uint8_t *block, uint64_t is_last)
{
    uint64_t v[16], m[16];
    memcpy(m, block, sizeof m);
    memcpy(v, d->state, sizeof d->state);
    memcpy(v + 8, initial, sizeof initial);
    v[12] ^= d->n;
    v[14] ^= 0 - is_last;
    for (int round = 0; round < ROUNDS; round++) {
        const uint8_t *s = order[round % 10];
        mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++)
        d->state[i] ^= v[i] ^ v[i + 8];
}

void qn__digest_begin(qn_digest *d)
{
    memset(d, 0, sizeof *d);
    memcpy(d->state, initial, sizeof initial);
    d->state[0] ^= UINT64_C(0x01010000) ^ QN_DIGEST_BYTES; /* no key; so many bytes of output */
}

/* The last block is held back, even if it is full: it is taken with another mark. */
void qn__digest_add(qn_digest *d, const void *p, size_t n)
{
    const uint8_t *from = p;
    while (n > 0) {
        if (d->held == BLOCK_BYTES) {
            d->n += BLOCK_BYTES;
            compress(d, d->block, 0);
            d->held = 0;
        }
        size_t part = n < BLOCK_BYTES - d->held ? n : BLOCK_BYTES - d->held;
        memcpy(d->block + d->held, from, part);
        d->held += part;
        from += part;
        n -= part;
    }
}

void qn__digest_end(qn_digest *d, uint8_t out[QN_DIGEST_BYTES])
{
    memset(d->block + d->held, 0, BLOCK_BYTES - d->held);
    d->n += d->held;
    compress(d, d->block, 1);
    memcpy(out, d->state, QN_DIGEST_BYTES);
}
