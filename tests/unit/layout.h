/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h: what the tests of layouts and views share: repeatable random numbers, awkward numbers,
 * and the check of a refused call.
 */
#ifndef QN_TESTS_UNIT_LAYOUT_H
#define QN_TESTS_UNIT_LAYOUT_H

#include "ir/ir.h"
#include "tests/tap.h"

__extension__ typedef __int128 wide;

#define INDEX(...)                                                                                 \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static uint64_t random_state = 0x9e3779b97f4a7c15u;

/** splitmix64, so that runs are the same everywhere. */
static inline uint64_t random_bits(void)
{
    uint64_t x = random_state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline int64_t random_in(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

/** A random permutation of 0 .. n - 1. */
static inline void random_order(int n, int *order)
{
    for (int i = 0; i < n; i++) {
        int j = (int)random_in(0, i);
        order[i] = order[j];
        order[j] = i;
    }
}

/** A call that must fail with a status, say its name first and leave *out alone. */
#define REFUSED(expected, out, function, ...)                                                      \
    do {                                                                                           \
        qn_error err_ = {0};                                                                       \
        memset(&(out), 0x5a, sizeof(out));                                                         \
        qn_status status_ = function(__VA_ARGS__, &err_);                                          \
        bool same_ = true;                                                                         \
        for (size_t k_ = 0; k_ < sizeof(out); k_++)                                                \
            same_ &= ((const unsigned char *)&(out))[k_] == 0x5a;                                  \
        bool named_ = strncmp(err_.message, #function ": ", strlen(#function) + 2) == 0;           \
        if (!tap_ok(status_ == (expected) && err_.status == (int)(expected) && same_ && named_,    \
                    #function "(" #__VA_ARGS__ ") gives " #expected))                              \
            tap_note("%s: %s", qn_status_name((int)status_), err_.message);                        \
    } while (0)

#endif
