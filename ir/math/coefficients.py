#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the constants of the mathematical functions, from 60 decimal digits and the standard library alone."""
from decimal import Decimal, getcontext
from fractions import Fraction
import math
import struct

getcontext().prec = 60


def nearest(value, code):
    """The f32 ('f') or f64 ('d') nearest to a Decimal."""
    if code == 'd':
        return float(Fraction(value))  # rounds once
    first = struct.unpack('f', struct.pack('f', float(Fraction(value))))[0]
    near = [first, math.nextafter(first, math.inf), math.nextafter(first, -math.inf)]
    near = [struct.unpack('f', struct.pack('f', x))[0] for x in near]
    step = 2.0 ** (math.frexp(first)[1] - 24) if first else 0.0
    near += [first + step, first - step]
    return min(near, key=lambda x: abs(Fraction(x) - Fraction(value)))


def cut(value, bits):
    """The value towards zero to so many bits."""
    exponent = math.frexp(float(value))[1]
    scale = Fraction(2) ** (bits - exponent)
    return float(Fraction(math.trunc(Fraction(value) * scale)) / scale)


def text(x):
    """The way kernel text prints a number."""
    if x == 0:
        return '0x0p+0'
    mantissa, exponent = x.hex().split('p')
    return mantissa.rstrip('0').rstrip('.') + 'p' + exponent


def array(name, values):
    print(f'  {name} = ' + ', '.join(text(v) for v in values) + ';')


def powers(code):
    exact = [Decimal(2) ** (Decimal(j) / 16) for j in range(16)]
    high = [nearest(v, code) for v in exact]
    array('power', high)
    array('rest', [nearest(v - Decimal(h), code) for v, h in zip(exact, high)])


def reduction(code, bits, step):
    high = cut(step, bits)
    print('  high', text(high), 'low', text(nearest(step - Decimal(high), code)), 'inverse', text(nearest(1 / step, code)))


def series(code, n):
    """1/2!, 1/3!, ..."""
    values = [1 / Decimal(math.factorial(i)) for i in range(2, n + 1)]
    print('  ', ' '.join(text(nearest(v, code)) for v in values))


ln2, ln10 = Decimal(2).ln(), Decimal(10).ln()
for code in 'fd':
    bits = 12 if code == 'f' else 38
    print('exp.qn', 'f32' if code == 'f' else 'f64')
    powers(code)
    print('  exp:')
    reduction(code, bits, ln2 / 16)
    series(code, 4 if code == 'f' else 7)
    print('  exp2: ln 2', text(nearest(ln2, code)))
    print('  exp10: ln 10', text(nearest(ln10, code)))
    reduction(code, bits, ln2 / ln10 / 16)
