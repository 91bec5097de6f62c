#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
math_hard.py: floats close to multiples of pi/2, where range reduction cancels most. For each exponent
e the convergents of 2^e / (pi/2) give the best m with |m 2^e - k pi/2| small (Kahan 1983; Muller,
Elementary Functions, 2016, 11.3). Prints the closest ones of f32 and f64 for math_hard.def, and the
logarithm to base 2 of the distance. Needs mpmath.
"""
import mpmath

mpmath.mp.prec = 4096


def closest(digits, first, last):
    """(distance, m, e) for the best m below 2^digits at each exponent."""
    half_pi = mpmath.pi / 2
    found = []
    for e in range(first, last + 1):
        ratio = mpmath.mpf(2) ** e / half_pi
        p0, q0, p1, q1 = 0, 1, 1, 0
        rest = ratio
        while True:
            a = int(mpmath.floor(rest))
            p0, q0, p1, q1 = p1, q1, a * p1 + p0, a * q1 + q0
            if q1 >= 2**digits:
                break
            if q1 >= 2 ** (digits - 1):
                found.append((abs(q1 * mpmath.mpf(2) ** e - p1 * half_pi), q1, e))
            if rest == a:
                break
            rest = 1 / (rest - a)
    return sorted(found)


for name, digits, first, last in (("f32", 24, -24, 104), ("f64", 53, -53, 971)):
    for distance, m, e in closest(digits, first, last)[:4]:
        number = float(m * 2**e if e >= 0 else m / 2**-e)
        print(name, number.hex(), "2^%.1f" % float(mpmath.log(distance, 2)))
