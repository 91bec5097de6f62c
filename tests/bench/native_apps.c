/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_apps.c: see native_apps.h. The loops of native_apps_loops.h for both dtypes.
 */
#include "native_apps.h"

#include <math.h>
#include <stdint.h>

#define REAL float
#define NAME(name) name##_f32
#define EXP expf
#define LOG logf
#define SQRT sqrtf
#define ERF erff
#include "native_apps_loops.h"
#undef REAL
#undef NAME
#undef EXP
#undef LOG
#undef SQRT
#undef ERF

#define REAL double
#define NAME(name) name##_f64
#define EXP exp
#define LOG log
#define SQRT sqrt
#define ERF erf
#include "native_apps_loops.h"

/** The words of Philox4x32-10 of a counter (index, 0, 0, 0) and a key (seed, 0). */
static inline void draw(uint32_t index, uint32_t seed, uint32_t word[4])
{
    uint32_t a = index, b = 0, c = 0, d = 0, k = seed, l = 0;
    for (int r = 0; r < 10; r++) {
        uint64_t p = (uint64_t)a * 0xd2511f53u, q = (uint64_t)c * 0xcd9e8d57u;
        uint32_t a_next = (uint32_t)(q >> 32) ^ b ^ k, c_next = (uint32_t)(p >> 32) ^ d ^ l;
        b = (uint32_t)q;
        d = (uint32_t)p;
        a = a_next;
        c = c_next;
        k += 0x9e3779b9u;
        l += 0xbb67ae85u;
    }
    word[0] = a;
    word[1] = b;
    word[2] = c;
    word[3] = d;
}

static inline int is_inside(uint32_t a, uint32_t b)
{
    float x = (float)(int32_t)(a >> 8) * 0x1p-24f, y = (float)(int32_t)(b >> 8) * 0x1p-24f;
    return x * x + y * y < 1;
}

void pi_i64(const void *arrays)
{
    int64_t *count = ((void *const *)arrays)[0], n = 0;
    for (uint32_t i = 0; i < N_PAIRS_OF_POINTS; i++) {
        uint32_t w[4];
        draw(i, APP_SEED, w);
        n += is_inside(w[0], w[1]) + is_inside(w[2], w[3]);
    }
    *count = n;
}
