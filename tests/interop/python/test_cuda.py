# SPDX-License-Identifier: Apache-2.0
"""test_cuda.py PACKAGE_FOLDER: arrays in the memory of a GPU, through the interfaces that CuPy and PyTorch have. Runs with any
driver that QUERN_CUDA_DRIVER names, also with the one of tests/stub, which has a machine for PTX in it."""

import sys

sys.path.insert(0, sys.argv[1])

import quern as q
from tap import done, equal, ok, raises

COPY = """kernel "copy" { view x: f64[1]; view y: f64[1]; %1: i64 = extent y, 0; %0: i64 = const 0;
 %3: i64 = parallel %0, %1; %5: f64 = load x[%3]; store y[%3], %5; }"""
CUDA = q.number("QN_SPACE_CUDA")


class Interface:
    """An array that has __cuda_array_interface__ alone, as CuPy's."""

    def __init__(self, array, **more):
        self.array = array
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__, **more)


class Tensor:
    """An array that has DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


@q.kernel
def ramp(y, a):
    i = q.parallel(y)
    y[i] = a * i


@q.kernel
def total(s, x):
    i = q.reduction(x)
    s[()] = q.sum(i, lambda: x[i])


def sum_of(x):
    """The sum of an array on the GPU, which a kernel writes to memory that the host may read."""
    s = q.empty((), "f64", q.number("QN_SPACE_CUDA_MANAGED"))
    total(s, x)
    return s[()]


print("TAP version 13")
x = q.empty(8, "f64", CUDA)
equal((x.space, x.__dlpack_device__()), ("cuda", (2, 0)), "an array in the memory of a GPU")
ok(not hasattr(x, "__array_interface__") and hasattr(x, "__cuda_array_interface__"), "... has the interface for GPUs alone")
raises(BufferError, lambda: memoryview(x), "on a device", "... and no buffer")
ramp(x, 2.0)
equal(sum_of(x), 56.0, "kernels run where the array is")
ramp(Interface(x), 3.0)
equal(sum_of(Interface(x)), 84.0, "__cuda_array_interface__")
ramp(Interface(x, stream=1), 1.0)
equal(sum_of(Interface(x[::-1])), 28.0, "... with a stream, and with negative strides")
ramp(Tensor(x), 4.0)
equal(sum_of(Tensor(x)), 112.0, "DLPack")
y = q.eval("x*2 + 1", {"x": Interface(x)})
equal((y.space, sum_of(y)), ("cuda", 232.0), "eval gives an array on the GPU")
raises(q.Error, lambda: q.parse(COPY)(q.zeros(8), x), "host", "host and device in one launch")
raises(q.BoundsError, lambda: q.parse(COPY)(x[:4], y), "not in [0,4)", "out of bounds on the GPU")
done()
