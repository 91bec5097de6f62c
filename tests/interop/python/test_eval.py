# SPDX-License-Identifier: Apache-2.0
"""quern.eval against numpy: types, broadcasting, reductions. Results are equal bit by bit where the operation is exact."""

import itertools
import warnings

import quern as q
from tap import equal, numpy as np, ok, raises, skip

EXACT = ["a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "minimum(a, b)", "maximum(a, b)", "where(a < b, a, b)", "a < b",
         "a <= b", "a == b", "a != b", "a >= b", "a + 3", "2 * a", "1 - b", "a / 2", "a // 3", "a % 3", "a * 2.5", "a**2"]
INTEGER = ["a & b", "a | b", "a ^ b", "~a"]
ONE = ["-a", "abs(a)", "sqrt(abs(a))", "floor(a)", "a + True"]


def same(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    return np.array_equal(found, expected, equal_nan=found.dtype.kind in "fc")


def samples(dtype, seed):
    r = np.random.default_rng(seed)
    if dtype == "bool":
        return r.integers(0, 2, 40).astype(bool)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        x = r.integers(-20 if info.min else 0, 20, 40).astype(dtype)
        x[:3] = [info.min, info.max, 1]
        return x
    x = (r.standard_normal(40) * 8).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[:6] = [0, -0.0, np.inf, -np.inf, np.nan, 1]
    return x


def reference(text, values):
    names = {n: getattr(np, n) for n in ("minimum", "maximum", "where", "abs", "sqrt", "floor")}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, names, values)


def test_types():
    types = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
    for text in EXACT + INTEGER:
        wrong, n = [], 0
        for i, (a, b) in enumerate(itertools.product(types, types)):
            values = {"a": samples(a, i), "b": samples(b, i + 1000)}
            try:
                expected = reference(text, values)
            except (TypeError, OverflowError):
                continue
            if "//" in text or "%" in text:
                values["b"] = np.where(values["b"] == 0, values["b"].dtype.type(1), values["b"])
                if np.dtype(a).kind == "i" and np.dtype(b).kind == "i":
                    values["a"][0] = 5  # numpy itself overflows at the least number over -1
                expected = reference(text, values)
            if expected.dtype == np.float16 or expected.dtype.kind == "O":
                continue
            n += 1
            try:
                if not same(q.eval(text, values), expected):
                    wrong.append("%s,%s" % (a, b))
            except Exception as e:
                wrong.append("%s,%s: %s" % (a, b, e))
        ok(not wrong and n > 20, "%s: %d pairs of types as numpy has them" % (text, n))
        for line in wrong[:4]:
            print("#", line)


def test_unary():
    for text in ONE:
        wrong = []
        for dtype in "int16 int32 int64 uint32 float32 float64".split():
            values = {"a": samples(dtype, 3)}
            expected = reference(text, values)
            if not same(q.eval(text, values), expected):
                wrong.append(dtype)
        equal(wrong, [], text)


def test_numbers():
    a, x = np.arange(4).astype("f2"), np.float32(3)
    ok(same(q.eval("a + x"), a + x), "a number of numpy has its type")


def test_functions():
    a = np.linspace(0.1, 0.9, 101)
    for name in "sin cos tan exp log log1p expm1 sinh cosh tanh cbrt log2 log10 exp2".split():
        for x in (a, a.astype("f4")):
            found, expected = q.eval("%s(a)" % name, {"a": x}), getattr(np, name)(x)
            error = np.abs(found - expected) / np.spacing(np.abs(expected))
            ok(found.dtype == expected.dtype and error.max() <= 4, "%s of %s: %.1f units in the last place" % (name, x.dtype, error.max()))
    ok(same(q.eval("isnan(a)", {"a": np.array([np.nan, 1])}), np.array([True, False])), "isnan")
    z = np.array([1 + 2j, -3j])
    ok(same(q.eval("z * z + 1j", {"z": z}), z * z + 1j), "complex numbers")
    ok(same(q.eval("z.real - conj(z).imag", {"z": z}), z.real - z.conj().imag), "... their parts")
    ok(same(q.eval("a if a > 0.5 and not b else -a", {"a": a, "b": a > 0.7}), np.where((a > 0.5) & ~(a > 0.7), a, -a)),
       "and, not, if")
    ok(same(q.eval("0.2 < a <= 0.5", {"a": a}), (a > 0.2) & (a <= 0.5)), "chained comparisons")
    ok(same(q.eval("a + 1.5", {"a": a.astype("f4")}), a.astype("f4") + 1.5), "a number of Python takes that of the array")


def test_shapes():
    r = np.random.default_rng(1)
    shapes = [((3, 4), (4,)), ((5, 1, 3), (4, 1)), ((2, 3), ()), ((1,), (7,)), ((0, 3), (3,)), ((2, 1, 2, 1), (1, 3, 1, 4))]
    for a, b in shapes:
        values = {"a": r.random(a), "b": r.random(b)}
        ok(same(q.eval("a + 2*b", values), values["a"] + 2 * values["b"]), "%s and %s" % (a, b))
    x = r.random((6, 8, 10))
    for what, y in [("transposed", x.T), ("permuted", x.transpose(1, 2, 0)), ("steps", x[::2, ::-3, 1::4]),
                    ("backwards", x[::-1, ::-1, ::-1]), ("Fortran", np.asfortranarray(x)), ("zero strides", np.broadcast_to(x[0], (4, 8, 10)))]:
        ok(same(q.eval("y*y + 1", {"y": y}), y * y + 1), what)
    out = np.zeros((8, 6))[:, ::-2]
    z = r.random((8, 3))
    result = q.eval("z - 1", {"z": z}, out=out)
    ok(result is out and same(out, z - 1), "a result in a given array with steps")
    before = z.copy()
    q.eval("z + z", {"z": z}, out=z)
    ok(same(z, before + before), "in place")
    raises(q.ArgumentError, lambda: q.eval("z + 1", {"z": z[1:]}, out=z[:-1]), "overlap", "a result that overlaps otherwise")
    raises(ValueError, lambda: q.eval("a + b", {"a": np.ones(3), "b": np.ones(4)}), "do not broadcast", "shapes that do not fit")
    raises(ValueError, lambda: q.eval("a", {"a": np.ones(3)}, out=np.ones(4)), "another shape", "a result that does not fit")


def test_reductions():
    r = np.random.default_rng(2)
    for dtype in "int32 uint8 bool float64 float32 int64".split():
        x = (r.random((3, 4, 5)) * 9).astype(dtype)
        for name in ("sum", "prod", "min", "max", "mean", "any", "all"):
            for axis in (None, 0, 1, -1, (0, 2)):
                expected = getattr(np, name)(x, axis=axis)
                found = q.eval("%s(x, axis=%r)" % (name, axis), {"x": x})
                fits = same(found, expected) if dtype not in ("float64", "float32") else (
                    np.asarray(found).dtype == expected.dtype and np.allclose(found, expected, rtol=1e-6))
                if name == "mean":
                    fits = np.asarray(found).dtype == expected.dtype and np.allclose(found, expected, rtol=1e-6)
                if not fits or dtype == "int32" and axis is None:
                    ok(fits, "%s of %s, axis %r" % (name, dtype, axis))
        ok(True, "reductions of %s" % dtype)
    x, y = r.random((30, 40)), r.random(40)
    ok(np.allclose(q.eval("sum(x*y, axis=1)"), x @ y), "a product of matrix and vector, with the caller's variables")
    equal(q.eval("sum(n)", {"n": np.ones((2, 2), "i4")}), 4, "a number")


def test_errors():
    raises(NameError, lambda: q.eval("nothing + 1"), "'nothing' is not defined", "an unknown name")
    e = raises(SyntaxError, lambda: q.eval("a + foo(a)", {"a": np.ones(2)}), "no function foo", "an unknown function")
    equal(e.offset, 5, "... at its column")
    raises(SyntaxError, lambda: q.eval("[a]", {"a": np.ones(2)}), "no part of an expression", "a list")
    raises(SyntaxError, lambda: q.eval("1 + sum(a)", {"a": np.ones(2)}), "outermost", "a reduction inside")
    e = raises(q.DtypeError, lambda: q.eval("a & a", {"a": np.ones(2)}), "and", "an op that a type lacks")
    equal(e.line, 1, "... has a line")
    raises(ValueError, lambda: q.eval("sum(2)"), "no array", "a reduction of numbers")


if np is None:
    skip("eval", "numpy is not installed")
elif int(np.__version__.split(".")[0]) < 2:
    for test in (test_functions, test_shapes, test_errors):
        test()
    skip("types of eval", "numpy %s promotes numbers by their value" % np.__version__)
else:
    for test in (test_types, test_unary, test_numbers, test_functions, test_shapes, test_reductions, test_errors):
        test()
