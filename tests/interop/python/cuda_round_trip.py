# SPDX-License-Identifier: Apache-2.0
"""TAP: CuPy arrays and PyTorch tensors on a real GPU, to Quern and back without copies, in the order of their streams.

    python3 tests/interop/python/cuda_round_trip.py FOLDER [--calls]

FOLDER holds the package quern: build/PRESET/python of a build folder, or a wheel that was unpacked:

    ./bootstrap build portable && python3 tests/interop/python/cuda_round_trip.py build/portable/python
    python3 -m zipfile -e build/wheel/quern-*.whl /tmp/wheel && python3 tests/interop/python/cuda_round_trip.py /tmp/wheel

A build folder is needed whole but for its object files: python/, libquern.so*, libquern-llvm.so. CPython is 3.11 or later,
numpy is needed, and the tests of a library that cannot be imported are skipped. --calls prints what calls take, too.
"""

import contextlib
import ctypes
import gc
import os
import sys
import threading
import time

sys.path.insert(0, os.path.abspath(sys.argv[1]))
os.environ.setdefault("QUERN_CACHE", "off")  # not the one of who runs the tests

import quern as q
from tap import done, equal, numpy as np, ok, raises, skip

CUDA = q.number("QN_SPACE_CUDA")
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
MANY = 1 << 20


# ---------------------------------------------------------------------------------------------------- libraries


class CuPy:
    name = "CuPy"
    has_negative_strides = True

    def __init__(self):
        import cupy
        self.m = cupy
        self.n_devices = cupy.cuda.runtime.getDeviceCount()
        self.version = "%s, %s" % (cupy.__version__, cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())

    def array(self, host): return self.m.asarray(host)
    def host(self, x): return self.m.asnumpy(x)
    def empty(self, shape, dtype): return self.m.empty(shape, dtype)
    def zeros(self, shape, dtype): return self.m.zeros(shape, dtype)
    def fill(self, x, value): x.fill(value)
    def clone(self, x): return x.copy()
    def broadcast(self, x, shape): return self.m.broadcast_to(x, shape)
    def address(self, x): return x.data.ptr
    def by_dlpack(self, a): return self.m.from_dlpack(a)
    def by_interface(self, a): return self.m.asarray(a)
    def wait(self): self.m.cuda.runtime.deviceSynchronize()
    def side_stream(self): return self.m.cuda.Stream(non_blocking=True)
    def inside(self, stream): return stream if stream is not None else contextlib.nullcontext()
    def handle(self): return self.m.cuda.get_current_stream().ptr
    def used_bytes(self): return self.m.get_default_memory_pool().used_bytes()
    def on_device(self, d): return self.m.cuda.Device(d)


class PyTorch:
    name = "PyTorch"
    has_negative_strides = False

    def __init__(self):
        import torch
        self.m = torch
        if not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
        self.n_devices = torch.cuda.device_count()
        self.version = "%s, %s" % (torch.__version__, torch.cuda.get_device_name(0))

    def dtype(self, name): return getattr(self.m, str(name))
    def array(self, host): return self.m.from_numpy(host).to("cuda")
    def host(self, x): return x.cpu().numpy()
    def empty(self, shape, dtype): return self.m.empty(shape, dtype=self.dtype(dtype), device="cuda")
    def zeros(self, shape, dtype): return self.m.zeros(shape, dtype=self.dtype(dtype), device="cuda")
    def fill(self, x, value): x.fill_(value)
    def clone(self, x): return x.clone()
    def broadcast(self, x, shape): return x.expand(shape)
    def address(self, x): return x.data_ptr()
    def by_dlpack(self, a): return self.m.from_dlpack(a)
    def by_interface(self, a): return self.m.as_tensor(a, device="cuda")
    def wait(self): self.m.cuda.synchronize()
    def side_stream(self): return self.m.cuda.Stream()
    def inside(self, stream): return self.m.cuda.stream(stream) if stream is not None else contextlib.nullcontext()
    def handle(self): return self.m.cuda.current_stream().cuda_stream
    def used_bytes(self): return self.m.cuda.memory_allocated()
    def on_device(self, d): return self.m.cuda.device(d)


class Interface:
    """An array with __cuda_array_interface__ alone, changed by `more`."""

    def __init__(self, array, **more):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **more}


def sleep(lib, ms=200):
    """Keeps the current stream of a library busy: the driver calls usleep there."""
    driver, libc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
    result = driver.cuLaunchHostFunc(ctypes.c_void_p(lib.handle()), ctypes.cast(libc.usleep, ctypes.c_void_p),
                                     ctypes.c_void_p(1000 * ms))
    if result:
        raise RuntimeError("cuLaunchHostFunc: error %d" % result)


# ---------------------------------------------------------------------------------------------------- kernels


@q.kernel
def copy_0(y, x):
    y[()] = x[()]


@q.kernel
def copy_1(y, x):
    i = q.parallel(y)
    y[i] = x[i]


@q.kernel
def copy_2(y, x):
    i, j = q.parallel(y)
    y[i, j] = x[i, j]


@q.kernel
def axpy(y, x, a):
    i = q.parallel(y)
    y[i] = a * x[i] + y[i]


@q.kernel
def beyond(y, x):
    i = q.parallel(y)
    y[i] = x[i + 1]


def values(dtype, shape):
    """Values that no two neighbours have in common, and that the dtype has."""
    n = int(np.prod(shape, dtype=int))
    if dtype == "bool":
        return (np.arange(n) % 3 == 0).reshape(shape)
    a = (np.arange(n) % 100 + 1).astype(dtype)
    return (a * (1 + 2j) if dtype.startswith("complex") else a).astype(dtype).reshape(shape)


def same(found, expected):
    return found.shape == expected.shape and found.dtype == expected.dtype and bool((found == expected).all())


def test(name, function, *args):
    """Runs a group of tests; what it raises is a failure, and the next group runs."""
    try:
        function(*args)
    except Exception as e:
        ok(False, "%s: %s" % (args[0].name if args else "", name))
        print("# %s: %s" % (type(e).__name__, str(e).replace("\n", " ")), flush=True)


# ---------------------------------------------------------------------------------------------------- groups


def dtypes(lib):
    for dtype in DTYPES:
        expected = values(dtype, 1000)
        what = "%s: %s" % (lib.name, dtype)
        try:
            x, y = lib.array(expected), lib.empty(1000, dtype)
            lib.host(y)
        except (TypeError, AttributeError, RuntimeError, NotImplementedError) as e:
            skip(what, "the library: %s" % str(e).splitlines()[0])
            continue
        copy_1(y, x)
        ok(same(lib.host(y), expected), "%s through a kernel" % what)
        view = q.view(x)
        equal((view.space, view.shape, np.dtype(expected.dtype).itemsize), ("cuda", (1000,), view.strides[0]), "%s as a view" % what)
        a = q.empty(1000, dtype, CUDA)
        copy_1(a, x)
        ok(same(lib.host(lib.by_dlpack(a)), expected), "%s back by DLPack" % what)
        try:
            back = lib.by_interface(a)
        except (TypeError, ValueError, RuntimeError) as e:
            skip("%s back by the array interface" % what, "the library: %s" % str(e).splitlines()[0])
            continue
        ok(same(lib.host(back), expected), "%s back by the array interface" % what)
    if lib.name == "PyTorch":
        t = lib.m
        x = t.arange(1000, device="cuda").to(t.bfloat16)
        y = t.zeros(1000, dtype=t.bfloat16, device="cuda")
        copy_1(y, x)
        ok(bool((x == y).all()), "PyTorch: bfloat16 through a kernel")
        a = q.empty(1000, "bfloat16", CUDA)
        copy_1(a, x)
        ok(bool((t.from_dlpack(a) == x).all()), "PyTorch: bfloat16 back by DLPack")


def addresses(lib):
    x = lib.array(values("float32", 100))
    at = lib.address(x)
    equal(q.view(x).__cuda_array_interface__["data"], (at, False), "%s: a view is the memory itself" % lib.name)
    a = q.empty(100, "f32", CUDA)
    at = a.__cuda_array_interface__["data"][0]
    equal(lib.address(lib.by_dlpack(a)), at, "%s: DLPack gives the memory itself" % lib.name)
    equal(lib.address(lib.by_interface(a)), at, "%s: the array interface gives the memory itself" % lib.name)
    x = lib.array(values("float32", 100))
    back = lib.by_dlpack(q.view(x))
    lib.fill(back, 5)
    lib.wait()
    ok(bool((lib.host(x) == 5).all()), "%s: there and back is the memory itself" % lib.name)
    copy_1(x, Interface(lib.array(values("float32", 100))))
    ok(same(lib.host(x), values("float32", 100)), "%s: an object with the array interface alone" % lib.name)


def strides(lib):
    host = values("float32", (30, 40))
    x = lib.array(host)
    parts = {"transposed": lambda v: v.T[:30, :30], "every second of both": lambda v: v[::2, 1::2], "a block": lambda v: v[3:20, 5:9],
             "a column stretched": lambda v: v[:, 2:3], "empty": lambda v: v[:0]}
    if lib.has_negative_strides:
        parts["rows backwards"] = lambda v: v[::-1]
        parts["both backwards"] = lambda v: v[::-1, ::-2]
    for name, part in parts.items():
        expected, given = part(host), part(x)
        if name == "a column stretched":
            expected, given = np.broadcast_to(expected, (30, 40)), lib.broadcast(given, (30, 40))
        y = lib.zeros(expected.shape, "float32")
        copy_2(y, given)
        ok(same(lib.host(y), expected), "%s: loads, %s" % (lib.name, name))
        if name == "a column stretched":
            continue
        target = lib.zeros((30, 40), "float32")
        wanted = np.zeros((30, 40), "float32")
        part(wanted)[...] = 7
        copy_2(part(target), lib.array(np.full(expected.shape, 7, "float32")))
        ok(same(lib.host(target), wanted), "%s: stores, %s, and nothing beside them" % (lib.name, name))
    y = lib.zeros((), "float32")
    copy_0(y, x[3, 4])
    equal(float(y), float(host[3, 4]), "%s: no dimension" % lib.name)
    a = q.empty((30, 40), "f32", CUDA)
    copy_2(a, x)
    for name, part in parts.items():
        if name != "a column stretched" and name != "transposed":
            ok(same(lib.host(lib.by_dlpack(part(a))), part(host)), "%s: a part of an array of Quern by DLPack, %s" % (lib.name, name))
            ok(same(lib.host(lib.by_interface(part(a))), part(host)), "%s: ... by the array interface" % lib.name)


sums = []  # one number that host and GPU see: memory is not allocated while a stream sleeps, which might wait for it


def total(x):
    """The sum of f32 values, which arrives on the host."""
    if not sums:
        sums.append(q.empty((), "f64", q.number("QN_SPACE_CUDA_MANAGED")))
    add_up(sums[0], x)
    return sums[0][()]


@q.kernel
def add_up(s, x):
    i = q.reduction(x)
    s[()] = q.sum(i, lambda: q.cast(x[i], "f64"))


def streams(lib):
    x, y = lib.zeros(MANY, "float32"), lib.zeros(MANY, "float32")  # first of all what compiles
    lib.fill(x, 1)
    y += x
    copy_1(y, x)
    axpy(y, lib.broadcast(lib.zeros(1, "float32") + 1, (MANY,)), 4.0)
    equal((float(x.sum()), total(x)), (MANY, MANY), "%s: sums" % lib.name)
    for name, stream in (("the default stream", None), ("a stream of the library", lib.side_stream())):
        with lib.inside(stream):
            x = lib.zeros(MANY, "float32")
            lib.wait()
            sleep(lib)
            lib.fill(x, 3)
            unordered = total(Interface(x, stream=None, version=3))
            found = total(x)
            equal(found, 3.0 * MANY, "%s: a call sees what was given to %s before" % (lib.name, name))
            ok(unordered == 0, "%s: ... which was not done yet" % lib.name)
            lib.fill(x, 1)
            y = lib.zeros(MANY, "float32")
            lib.wait()
            sleep(lib)
            y += x
            copy_1(x, lib.zeros(MANY, "float32"))
            equal(float(y.sum()), float(MANY), "%s: stores wait for loads given to %s before" % (lib.name, name))
            sleep(lib)
            lib.fill(x, 2)
            view = q.view(x)
            equal(total(view), 2.0 * MANY, "%s: a view is made behind what was given to %s" % (lib.name, name))
            lib.fill(x, 0)
            axpy(x, lib.broadcast(lib.zeros(1, "float32") + 1, (MANY,)), 4.0)
        other = lib.side_stream()
        with lib.inside(other):
            equal(float(x.sum()), 4.0 * MANY, "%s: any stream sees what a call did" % lib.name)
    with lib.inside(lib.side_stream()):
        x = lib.zeros(MANY, "float32")
        lib.wait()
        sleep(lib)
        lib.fill(x, 3)
        handle = lib.handle()
        with lib.inside(lib.side_stream()):
            found = total(Interface(x, stream=handle, version=3))
        equal(found, 3.0 * MANY, "%s: the stream that an array interface names" % lib.name)
    a = q.empty(MANY, "f32", CUDA)
    x = lib.by_dlpack(a)
    lib.fill(x, 1)
    lib.wait()
    sleep(lib)
    lib.fill(x, 6)
    equal(total(a), 6.0 * MANY, "%s: an array of Quern waits for the default stream of who was given it" % lib.name)


def errors(lib):
    x, y = lib.array(values("float32", 100)), lib.zeros(100, "float32")
    locked = Interface(y, data=(lib.address(y), True))
    raises(q.ArgumentError, lambda: copy_1(locked, x), "read-only", "%s: an array that is read-only is not stored to" % lib.name)
    copy_1(y, Interface(x, data=(lib.address(x), True)))
    ok(same(lib.host(y), lib.host(x)), "%s: ... but is loaded from" % lib.name)
    raises(BufferError, lambda: q.view(locked).__dlpack__(), "read-only", "%s: ... and is no tensor of DLPack before 1.0" % lib.name)
    raises(q.Error, lambda: copy_1(np.zeros(100, "float32"), x), "host", "%s: host and GPU in one call" % lib.name)
    raises(q.BoundsError, lambda: beyond(y, x), "not in [0,100)", "%s: out of bounds" % lib.name)
    copy_1(y, x)
    ok(same(lib.host(y), lib.host(x)), "%s: ... and the next call works" % lib.name)
    raises(q.Error, lambda: q.view(Interface(x, data=(64, False))), "", "%s: an address that is no memory of a GPU" % lib.name)
    raises(TypeError, lambda: q.view(Interface(x, typestr=">f4")), "", "%s: another order of bytes" % lib.name)
    raises(ValueError, lambda: q.view(Interface(x, stream=0)), "stream 0", "%s: stream 0" % lib.name)
    if lib.name == "PyTorch":
        raises(BufferError, lambda: copy_1(y, x.clone().requires_grad_()), "grad", "PyTorch: a tensor that wants a gradient")
    if lib.n_devices < 2:
        skip("%s: two GPUs in one call" % lib.name, "there is one GPU")
        return
    with lib.on_device(1):
        far = lib.zeros(100, "float32")
        far_2 = lib.zeros(100, "float32")
        lib.fill(far_2, 9)
        copy_1(far, far_2)
        ok(bool((lib.host(far) == 9).all()), "%s: a call on the second GPU" % lib.name)
    raises((q.Error, BufferError), lambda: copy_1(y, far), "", "%s: two GPUs in one call" % lib.name)


def lifetimes(lib):
    x, y = lib.array(values("float32", MANY)), lib.zeros(MANY, "float32")
    copy_1(y, x)
    gc.collect()
    used, references = lib.used_bytes(), sys.getrefcount(x)
    for _ in range(200):
        copy_1(y, x)
    gc.collect()
    equal((lib.used_bytes(), sys.getrefcount(x)), (used, references), "%s: calls keep nothing" % lib.name)
    view, at, expected = q.view(x), lib.address(x), float(values("float64", MANY).sum())
    del x
    gc.collect()
    others = [lib.zeros(MANY, "float32") for _ in range(4)]
    ok(at not in [lib.address(o) for o in others] and total(view) == expected, "%s: a view keeps the memory of an array" % lib.name)
    del others
    with_view = lib.used_bytes()
    del view
    gc.collect()
    equal(with_view - lib.used_bytes(), 4 * MANY, "%s: ... and gives it back" % lib.name)
    a = q.empty(MANY, "f32", CUDA)
    copy_1(a, y)
    expected, references = total(a), sys.getrefcount(a)
    x, z = lib.by_dlpack(a), lib.by_interface(a)
    ok(sys.getrefcount(a) > references, "%s: an array of Quern is kept by who was given it" % lib.name)
    del x, z
    gc.collect()
    equal(sys.getrefcount(a), references, "%s: ... and let go" % lib.name)
    for name, take in (("DLPack", lib.by_dlpack), ("the array interface", lib.by_interface)):
        a = q.empty(MANY, "f32", CUDA)
        copy_1(a, y)
        x = take(a)
        del a
        gc.collect()
        others = [q.empty(MANY, "f32", CUDA) for _ in range(4)]
        for o in others:
            copy_1(o, lib.zeros(MANY, "float32"))
        ok(float(x.double().sum() if lib.name == "PyTorch" else x.sum(dtype="f8")) == expected,
           "%s: memory of Quern by %s outlives its array" % (lib.name, name))
        z = lib.zeros(MANY, "float32")
        lib.wait()
        sleep(lib)
        z += x
        del x
        gc.collect()
        others = [q.empty(MANY, "f32", CUDA) for _ in range(4)]
        for o in others:
            copy_1(o, lib.zeros(MANY, "float32"))
        ok(same(lib.host(z), lib.host(y)), "%s: ... and is not used again before the default stream has read it" % lib.name)


def expressions(lib):
    host = np.linspace(0, 10, 1000)
    x, b = lib.array(host), lib.array(np.linspace(1, 2, 1000))
    y = q.eval("2*x + sin(x/10)*b")
    expected = 2 * host + np.sin(host / 10) * np.linspace(1, 2, 1000)
    equal(y.space, "cuda", "%s: eval gives an array on the GPU" % lib.name)
    ok(bool(np.allclose(lib.host(lib.by_dlpack(y)), expected, rtol=1e-14, atol=0)), "%s: ... with numpy's values" % lib.name)
    out = lib.empty(1000, "float64")
    q.eval("2*x + sin(x/10)*b", out=out)
    ok(bool(np.allclose(lib.host(out), expected, rtol=1e-14, atol=0)), "%s: eval into a given array" % lib.name)
    grid = lib.array(values("float64", (20, 30)))
    row = lib.array(values("float64", 30))
    ok(same(lib.host(lib.by_dlpack(q.eval("grid*row + 1"))), values("float64", (20, 30)) * values("float64", 30) + 1),
       "%s: operands are broadcast" % lib.name)
    ok(same(lib.host(lib.by_dlpack(q.eval("sum(grid, axis=1)"))), values("float64", (20, 30)).sum(axis=1)), "%s: a reduction along an axis" % lib.name)


def threads(lib):
    """Four threads with a stream each; each call ends with its own stream's work, and the lock is free while it waits."""
    wrong = []

    def work(number):
        with lib.inside(lib.side_stream()):
            x, y = lib.zeros(MANY, "float32"), lib.zeros(MANY, "float32")
            for turn in range(20):
                lib.fill(x, number + turn)
                axpy(y, x, 1.0)
                lib.fill(x, -1)
                if turn % 5 == 0 and float(y[MANY // 2]) != sum(number + t for t in range(turn + 1)):
                    wrong.append((number, turn))
            if turn != 19:
                wrong.append(number)

    all_threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(4)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    equal(wrong, [], "%s: four threads, a stream each" % lib.name)
    x = lib.zeros(100, "float32")
    total(x)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    lib.wait()
    sleep(lib, 300)
    lib.fill(x, 1)
    before = counted[0]
    found = total(x)
    during = counted[0] - before
    stop.set()
    counter.join()
    equal(found, 100.0, "%s: a call that waits for long" % lib.name)
    ok(during > 50, "%s: ... leaves the lock of the interpreter to others" % lib.name)


def both(cupy, torch):
    """One call with arrays of two libraries, each in its own stream."""
    with cupy.inside(cupy.side_stream()), torch.inside(torch.side_stream()):
        x, y = cupy.zeros(MANY, "float32"), torch.zeros(MANY, "float32")
        cupy.wait()
        sleep(cupy)
        cupy.fill(x, 2)
        sleep(torch)
        torch.fill(y, 5)
        axpy(y, x, 10.0)
        equal(float(y.double().sum()), 25.0 * MANY, "CuPy and PyTorch in one call, in a stream each")


def calls(lib):
    """What calls take, with the wait for their end; the least of some runs."""
    def least(f, inner):
        times = []
        for _ in range(15):
            lib.wait()
            begin = time.perf_counter()
            for _ in range(inner):
                f()
            lib.wait()
            times.append((time.perf_counter() - begin) / inner)
        return 1e6 * min(times)

    x, y, z = (lib.zeros(5, "float64") for _ in range(3))
    kernel = q.parse("""kernel "add" { view x: f64[1]; view y: f64[1]; view z: f64[1]; %0: i64 = const 0; %1: i64 = extent z, 0;
 %2: i64 = parallel %0, %1; %3: f64 = load x[%2]; %4: f64 = load y[%2]; %5: f64 = add %3, %4; store z[%2], %5; }""")
    a, b, c = (q.empty(5, "f64", CUDA) for _ in range(3))
    print("# %s, three arrays of 5: quern %.1f us, its own arrays %.1f us, the library with its wait %.1f us" %
          (lib.name, least(lambda: kernel(x, y, z), 100), least(lambda: kernel(a, b, c), 100),
           least(lambda: (x + y, lib.wait()), 100)))
    x = lib.zeros(10**7, "float64") + 1
    out, e = lib.zeros(10**7, "float64"), q.expression("2*x + sin(x/10)")
    sin = lib.m.sin
    print("# %s, 2*x + sin(x/10), 10^7 f64: quern %.0f us, the library %.0f us" %
          (lib.name, least(lambda: e((x,), out), 10), least(lambda: 2 * x + sin(x / 10), 10)), flush=True)


# ---------------------------------------------------------------------------------------------------- all


def main():
    print("TAP version 13")
    if np is None:
        print("1..0 # SKIP there is no numpy")
        return
    libraries = []
    for kind in (CuPy, PyTorch):
        try:
            libraries.append(kind())
            print("# %s %s" % (kind.name, libraries[-1].version), flush=True)
        except Exception as e:
            skip("%s" % kind.name, str(e).splitlines()[0] if str(e) else type(e).__name__)
    for lib in libraries:
        for group in (dtypes, addresses, strides, streams, errors, lifetimes, expressions, threads):
            test(group.__name__, group, lib)
        if "--calls" in sys.argv:
            calls(lib)
    if len(libraries) == 2:
        test("both", both, *libraries)
    else:
        skip("CuPy and PyTorch in one call", "one of them is missing")
    done()


main()
