# SPDX-License-Identifier: Apache-2.0
"""quern.kernel: functions over indices as kernels."""

import array
import contextlib
import io
import os

import quern as q
from tap import equal, ok, raises

HERE = os.path.basename(__file__)


def filled(shape, dtype, values):
    a = q.zeros(shape, dtype)
    flat = memoryview(a).cast("B").cast({"f64": "d", "f32": "f", "i64": "q", "i32": "i"}[dtype])
    for i, v in enumerate(values):
        flat[i] = v
    return a


@q.kernel
def matmul(c, a, b):
    i, j = q.parallel(c)
    k = q.reduction(a, 1)
    c[i, j] = q.sum(k, lambda: a[i, k] * b[k, j])


@q.kernel
def blur(y, x):
    i = q.parallel(1, y.shape[0] - 1)
    y[i] = (x[i - 1] + 2 * x[i] + x[i + 1]) / 4


@q.kernel
def escape(n, re, limit):
    i = q.parallel(n)
    c = re[i]
    z, count = q.while_(limit + 1, lambda z, count: (z * z < 4) & (count < limit), lambda z, count: (z * z + c, count + 1), 0.0, 0)
    n[i] = count


@q.kernel
def horner(y, x, coefficients):
    i = q.parallel(y)
    y[i] = q.loop(0, coefficients.shape[0], lambda k, s: s * x[i] + coefficients[k], q.cast(0, y.dtype))


def clip(x, low, high):
    return q.where(x < low, low, q.where(x > high, high, x))


@q.kernel
def clipped(y, x):
    i = q.parallel(y)
    y[i] = clip(q.sin(x[i]), -0.5, 0.5)


@q.kernel
def histogram(bins, x):
    i = q.parallel(x)
    q.atomic("sum", bins, x[i], 1)


@q.kernel
def running(y):
    t = q.sequential(1, y.shape[0])
    y[t] = y[t - 1] + y[t]


@q.kernel
def gather(y, x, index):
    i = q.parallel(y)
    y[i] = x[index[i]]


@q.kernel
def positive(y):
    i = q.parallel(y)
    q.check(y[i] > 0, "y is positive", y[i])
    y[i] = q.if_(y[i] > 1, lambda: q.sqrt(y[i]), lambda: y[i] / 2)


@q.kernel(contract=True, options="executor=threads")
def axpy(y, x, a):
    i = q.parallel(y)
    y[i] = a * x[i] + y[i]


def test_kernels():
    a, b, c = filled((2, 3), "f64", range(6)), filled((3, 2), "f64", range(6)), q.zeros((2, 2))
    matmul(c, a, b)
    equal(c.tolist(), [[10, 13], [28, 40]], "a product of matrices: a reduction")
    x, y = array.array("d", [0, 4, 8, 4, 0]), q.zeros(5)
    blur(y, x)
    equal(y.tolist(), [0, 4, 6, 4, 0], "a stencil: a range of indices")
    n = q.zeros(3, "i64")
    escape(n, array.array("d", [0, 1, 3]), 50)
    equal(n.tolist(), [50, 2, 1], "a while loop")
    horner(y, array.array("d", [0, 1, 2, 3, 4]), array.array("d", [1, 2, 3]))
    equal(y.tolist(), [3, 6, 11, 18, 27], "a counted loop")
    clipped(y, array.array("d", [0, 1.5, -1.5, 0, 0]))
    equal(y.tolist()[:3], [0, 0.5, -0.5], "a function that a kernel calls")
    bins = q.zeros(4, "i32")
    histogram(bins, array.array("i", [1, 3, 3, 1, 3]))
    equal(bins.tolist(), [0, 2, 0, 3], "atomics")
    y = filled(5, "i64", [1, 2, 3, 4, 5])
    running(y)
    equal(y.tolist(), [1, 3, 6, 10, 15], "steps in order")
    y = filled(3, "f64", [0.5, 4, 9])
    positive(y)
    equal(y.tolist(), [0.25, 2, 3], "branches")
    y = filled(3, "f32", [1, 2, 3])
    axpy(y, filled(3, "f32", [1, 1, 1]), a=0.5)
    equal(y.tolist(), [1.5, 2.5, 3.5], "a number of Python, by name, takes the type of the array")
    ok("fma" in axpy.kernels()[0].text, "with contract")
    axpy(filled(3, "f64", [1, 2, 3]), filled(3, "f64", [1, 1, 1]), 0.5)
    equal(len(axpy.kernels()), 2, "one kernel for each combination of types")
    ok("kernel axpy" in axpy._repr_html_(), "a notebook sees its kernels")


def test_print():
    @q.kernel
    def shown(y):
        i = q.parallel(y)
        q.if_(y[i] > 1, lambda: q.print("large", y[i], i))
        y[i] = 0
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        shown(filled(4, "f64", [1, 2.5, 0, 3]))
    equal(text.getvalue(), "large: 2.5, 1; iteration (1)\nlarge: 3, 3; iteration (3)\n", "a kernel prints to sys.stdout")


def test_errors():
    line = gather.function.__code__.co_firstlineno + 3
    e = raises(q.BoundsError, lambda: gather(q.zeros(2), q.zeros(3), filled(2, "i64", [1, 7])), "index 7 not in [0,3)", "out of bounds")
    equal((os.path.basename(e.path or ""), e.line), (HERE, line), "... at the line of the function")
    ok('view "x"' in str(e), "... with the name of the parameter")
    e = raises(q.AssertionFailed, lambda: positive(filled(2, "f64", [1, -3])), 'assertion "y is positive" failed: -3', "an assertion")
    equal(e.line, positive.function.__code__.co_firstlineno + 3, "... at its line")
    raises(TypeError, lambda: matmul(q.zeros(2)), "takes 3 arguments", "too few arguments")

    @q.kernel
    def branches(y):
        i = q.parallel(y)
        if y[i] > 0:
            y[i] = 1
    raises(TypeError, lambda: branches(q.zeros(2)), "use where", "an if of Python on a value")

    @q.kernel
    def late(y):
        i = q.parallel(y)
        y[i] = 1
        q.parallel(y)
    e = raises(q.Error, lambda: late(q.zeros(2)), "dimensions come before", "a dimension after a store")
    equal(e.line, late.function.__code__.co_firstlineno + 4, "... at its line")
    raises(RuntimeError, lambda: q.sin(1.0), "inside a kernel only", "a function of kernels outside of one")


test_kernels()
test_print()
test_errors()
