/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meaning.h: a second, independent meaning of ops and casts, and awkward values, for tests. Values
 * are in canonical form: bool 0 or 1, signed sign-extended, unsigned zero-extended, f32 in the low
 * half.
 */
#ifndef QN_TESTS_MEANING_H
#define QN_TESTS_MEANING_H

#include "quern.h"

__extension__ typedef __int128 wide;

/** Value of a table op for operands of the given type (for select: of the second and third). */
uint64_t meaning_op(int op, int type, uint64_t a, uint64_t b, uint64_t c);
uint64_t meaning_cast(int to, int from, uint64_t bits);

/** Distinct awkward values of a dtype; returns how many, at most MEANING_VALUES. */
enum { MEANING_VALUES = 96 };
int meaning_awkward(int type, uint64_t *out);
/** Whether bits are equal, or both are NaN and which NaN is open. */
bool meaning_agrees(int type, bool nan_is_open, uint64_t found, uint64_t expected);

/** Canonical bits of a number, modulo 2^width. */
uint64_t meaning_wrap(int type, wide x);
int meaning_width(int type);
bool meaning_is_signed(int type);
bool meaning_is_float(int type);
bool meaning_is_half(int type);

#endif
