# SPDX-License-Identifier: Apache-2.0
"""test_cuda.py PACKAGE_FOLDER: arrays in the memory of a GPU, through the interfaces that CuPy and PyTorch have. Runs with any
driver that QUERN_CUDA_DRIVER names, also with the one of tests/stub, which has a machine for PTX in it."""

import ctypes
import mmap
import os
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


class Refusing(mmap.mmap):
    """An array whose buffer is refused, as CuPy's from version 14 on; a map that was closed refuses it."""

    def __new__(cls, array):
        self = super().__new__(cls, -1, 8)
        self.close()
        if array is not None:
            self.__cuda_array_interface__ = array.__cuda_array_interface__
        return self


class Wrong(Interface):
    """An array whose DLPack fails; the interface is right."""

    def __dlpack__(self, **options):
        raise BufferError("strides of another sign")


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


class Driver:
    """The driver itself, whose calls give work to streams as another library does. That of tests/stub begins it only when
    somebody waits for it, so that a wait that is missing is seen."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["QUERN_CUDA_DRIVER"])
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxPushCurrent_v2", context)
        try:
            table = (ctypes.c_void_p * 10).in_dll(self.library, "stub_control_table")
            self.misuse = ctypes.CFUNCTYPE(ctypes.c_char_p)(table[4])
            self.defer = ctypes.CFUNCTYPE(None, ctypes.c_int)(table[6])
        except ValueError:  # a real driver
            self.misuse, self.defer = lambda: None, lambda on: None

    def call(self, name, *args):
        result = getattr(self.library, name)(*args)
        if result:
            raise RuntimeError("%s: error %d" % (name, result))

    def stream(self):
        handle = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(handle), 1)
        return handle.value

    def set(self, array, bits, stream):
        """Gives all elements of an f64 array these bits in their upper and lower halves, in a stream."""
        at = array.__cuda_array_interface__["data"][0]
        self.call("cuMemsetD32Async", ctypes.c_uint64(at), bits, 2 * len(array), ctypes.c_void_p(stream))

    def wait(self, stream, other):
        """`stream` waits for `other`."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 2)
        self.call("cuEventRecord", event, ctypes.c_void_p(other))
        self.call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        self.call("cuEventDestroy_v2", event)


class Producer(Tensor):
    """An array whose owner works in a stream and has all of DLPack, as CuPy's and PyTorch's."""

    def __init__(self, array, driver, current, device=(2, 0)):
        super().__init__(array)
        self.driver, self.current, self.device, self.asked = driver, current, device, None

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=-1, **options):
        self.asked = stream
        self.driver.wait(stream, self.current)
        return self.array.__dlpack__(**options)


BITS = 0x40404040
VALUE = float.fromhex("0x1.0404040404040p+5")  # whose halves are these bits

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
ramp(Refusing(x), 1.0)
equal(sum_of(Refusing(x)), 28.0, "... of an array that refuses a buffer")
raises(ValueError, lambda: ramp(Refusing(None), 1.0), "closed", "what refuses a buffer and is nothing else says why")
equal(sum_of(Wrong(x)), 28.0, "the interface is taken where DLPack fails")
ramp(Tensor(x), 4.0)
equal(sum_of(Tensor(x)), 112.0, "DLPack")
y = q.eval("x*2 + 1", {"x": Interface(x)})
equal((y.space, sum_of(y)), ("cuda", 232.0), "eval gives an array on the GPU")
raises(q.Error, lambda: q.parse(COPY)(q.zeros(8), x), "host", "host and device in one launch")
raises(q.BoundsError, lambda: q.parse(COPY)(x[:4], y), "not in [0,4)", "out of bounds on the GPU")

driver = Driver()
driver.defer(1)
theirs = driver.stream()


def follows(wrap, stream, what):
    """The call sees what was given to a stream before it."""
    x = q.empty(8, "f64", CUDA)
    wrapped = wrap(x)
    driver.set(x, 0, None)
    driver.set(x, BITS, stream)
    equal(sum_of(wrapped), 8 * VALUE, what)


follows(lambda x: Interface(x, stream=1), None, "work of the default stream comes first where an interface names it")
follows(lambda x: Interface(x, stream=theirs), theirs, "... of another stream")
follows(lambda x: Interface(x, version=2), None, "... of the default stream, where an interface is too old to name one")
follows(lambda x: Tensor(x), None, "... and where DLPack tells no device")
follows(lambda x: Producer(x, driver, theirs), theirs, "a producer of DLPack lets the call wait for its stream")
follows(lambda x: x, None, "an array of Quern that another library was given waits for the default stream")
x = q.empty(8, "f64", CUDA)
driver.set(x, 0, None)
producer = Producer(x, driver, None)
driver.set(x, BITS, None)
equal(sum_of(q.view(producer)), 8 * VALUE, "a view of an array has what its owner gave before")
ok(producer.asked not in (None, -1, 0, 1, 2), "a producer is given a stream of Quern")
driver.set(x, BITS, None)
ramp(x, 1.0)
equal(sum_of(x), 28.0, "stores come behind what was given before")
x = q.empty(8, "f64", CUDA)
driver.set(x, BITS, None)
del x, producer
x = q.empty(8, "f64", CUDA)
ramp(x, 1.0)
driver.defer(0)
equal(driver.misuse(), None, "memory is not freed under work of the default stream")
raises(ValueError, lambda: ramp(Interface(x, stream=0), 1.0), "stream 0", "stream 0 is refused, as the protocol has it")
driver.defer(1)
x, y = (q.empty(4, "f64", q.number("QN_SPACE_CUDA_MANAGED")) for _ in range(2))
for i in range(4):
    memoryview(x)[i], memoryview(y)[i] = float(i), -1.0
q.parse(COPY).options("executor=cuda")(x, y)
equal(y.tolist(), [0.0, 1.0, 2.0, 3.0], "a launch that options send to the GPU is over when the call is")
driver.defer(0)
done()
