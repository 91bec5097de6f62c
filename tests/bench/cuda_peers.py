#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# cuda_peers.py: what CuPy and PyTorch take for the lines of bench_cuda, where they have the operation, on arrays of the same extents.
#
#   cuda_peers.py [--quick] [filter...]         times the lines whose names contain all filters; tab-separated
#   cuda_peers.py --join OURS [PEERS]           joins such lines (a file, or the standard input) with bench_cuda's in the file OURS
#
# Lines: name, library, time, rate. Times are those between two events of a stream, medians of samples of several calls; results go to
# arrays that were made before, where the library can do that. Matrix products of f32 are without TF32. Every result is checked.
# What is not installed, or not there, is left out with a comment.

import statistics
import sys

VECTOR_BYTES = 512 << 20  # these as in cuda_peers.h
PLANE = (8192, 16384)
CUBE = (512, 512, 512)
SQUARE = 16384
PRODUCT = 4096
SCALE, STEP, FILL = 0.375, 0.125, 0.75
ITEM_BYTES = {"u8": 1, "f32": 4, "f64": 8}


class Library:
    """What both are asked alike: x is the module, types its dtypes."""

    def array(self, shape, dtype, seed):
        n = 1
        for extent in shape:
            n *= extent
        return self.convert((self.integers(n) * 37 + seed) % 17, self.types[dtype]).reshape(shape)

    def dot(self, y, a, b):
        return lambda: self.x.dot(a, b, out=y)

    def product(self, y, a, b):
        return lambda: self.x.matmul(a, b, out=y)

    def same(self, found, expected, tolerance):
        return bool(self.x.allclose(found, expected, rtol=tolerance, atol=0))

    def seconds(self, call, n):
        begin, end = self.event(), self.event()
        begin.record()
        for _ in range(n):
            call()
        end.record()
        end.synchronize()
        return self.milliseconds(begin, end) * 1e-3 / n


class CuPy(Library):
    """NumPy's way of writing; `out` where a function takes it."""

    name = "cupy"

    def __init__(self):
        import cupy

        self.x = cupy
        self.types = {"u8": cupy.uint8, "f32": cupy.float32, "f64": cupy.float64}
        cupy.zeros(1)
        self.version = cupy.__version__

    def integers(self, n):
        return self.x.arange(n, dtype=self.x.int64)

    def convert(self, a, to):
        return a.astype(to)

    def empty(self, shape, dtype):
        return self.x.empty(shape, dtype=self.types[dtype])

    def fill(self, y):
        return lambda: y.fill(FILL)

    def copy(self, y, a):
        return lambda: self.x.copyto(y, a)

    def transpose(self, y, a):
        return lambda: self.x.copyto(y, a.T)

    def turn(self, a):
        return a.T

    def saxpy(self, y, a):
        fused = self.x.ElementwiseKernel("T a", "T y", "y = T(%g) * a + y" % SCALE, "saxpy")
        return lambda: fused(a, y)

    def triad(self, y, a, b):
        fused = self.x.ElementwiseKernel("T a, T b", "T y", "y = a + T(%g) * b" % SCALE, "triad")
        return lambda: fused(a, b, y)

    def rows(self, y, a):
        return lambda: a.sum(axis=1, out=y)

    def columns(self, y, a):
        return lambda: a.sum(axis=0, out=y)

    def sync(self):
        self.x.cuda.Device().synchronize()

    def event(self):
        return self.x.cuda.Event()

    def milliseconds(self, begin, end):
        return self.x.cuda.get_elapsed_time(begin, end)

    def release(self):
        self.x.get_default_memory_pool().free_all_blocks()


class Torch(Library):
    """PyTorch as it is called, without torch.compile; `out` where a function takes it."""

    name = "torch"

    def __init__(self):
        import torch

        self.x = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        self.types = {"u8": torch.uint8, "f32": torch.float32, "f64": torch.float64}
        torch.zeros(1, device="cuda")
        self.version = torch.__version__

    def integers(self, n):
        return self.x.arange(n, dtype=self.x.int64, device="cuda")

    def convert(self, a, to):
        return a.to(to)

    def empty(self, shape, dtype):
        return self.x.empty(shape, dtype=self.types[dtype], device="cuda")

    def fill(self, y):
        return lambda: y.fill_(FILL)

    def copy(self, y, a):
        return lambda: y.copy_(a)

    def transpose(self, y, a):
        return lambda: y.copy_(a.T)

    def turn(self, a):
        return a.permute(*range(a.ndim - 1, -1, -1))

    def saxpy(self, y, a):
        return lambda: y.add_(a, alpha=SCALE)

    def triad(self, y, a, b):
        return lambda: self.x.add(a, b, alpha=SCALE, out=y)

    def rows(self, y, a):
        return lambda: self.x.sum(a, dim=1, out=y)

    def columns(self, y, a):
        return lambda: self.x.sum(a, dim=0, out=y)

    def sync(self):
        self.x.cuda.synchronize()

    def event(self):
        return self.x.cuda.Event(enable_timing=True)

    def milliseconds(self, begin, end):
        return begin.elapsed_time(end)

    def release(self):
        self.x.cuda.empty_cache()


# ---------------------------------------------------------------- lines


def inner(a, *shifts):
    """The inner points of an array, shifted."""
    return a[tuple(slice(1 + s, n - 1 + s) for s, n in zip(shifts, a.shape))]


def stencil(y, a):
    """With slices, as it is written in NumPy: one kernel an operation, and temporaries."""
    rank = len(a.shape)
    out, here = inner(y, *([0] * rank)), inner(a, *([0] * rank))
    shifts = [[s * (k == d) for k in range(rank)] for d in range(rank) for s in (-1, 1)]

    def call():
        total = inner(a, *shifts[0]) + inner(a, *shifts[1])
        for shift in shifts[2:]:
            total += inner(a, *shift)
        total -= (2.0 * rank) * here
        total *= STEP
        total += here
        out[...] = total

    return call


def lines():
    """name, bytes moved (0: it computes), operations, function that makes (call, check) for a library."""
    for dtype in ("f32", "f64"):
        item = ITEM_BYTES[dtype]
        n = (VECTOR_BYTES // item,)
        for name, arrays in (("fill", 1), ("copy", 2), ("saxpy", 3), ("triad", 3)):
            yield f"{name}/{dtype}", arrays * VECTOR_BYTES, 0, vector_line(name, n, dtype)
    for dtype in ("f32", "f64"):
        for rank, shape in ((2, PLANE), (3, CUBE)):
            for layout in ("right", "left", "mixed"):
                count = 2 * ITEM_BYTES[dtype]
                for extent in shape:
                    count *= extent
                yield f"stencil{2 * rank + 1}/{dtype}/{layout}", count, 0, stencil_line(shape, dtype, layout)
    for dtype in ("f32", "f64", "u8"):
        yield f"transpose/{dtype}", 2 * SQUARE * SQUARE * ITEM_BYTES[dtype], 0, transpose_line(dtype)
    for dtype in ("f32", "f64"):
        for name in ("rows", "columns"):
            yield f"{name}/{dtype}", PLANE[0] * PLANE[1] * ITEM_BYTES[dtype], 0, sum_line(name, dtype)
        yield f"dot/{dtype}", 2 * VECTOR_BYTES, 0, dot_line(dtype)
    for dtype in ("f32", "f64"):
        yield f"product/{dtype}", 0, 2 * PRODUCT**3, product_line(dtype)


def vector_line(name, n, dtype):
    def make(lib):
        y, a = lib.array(n, dtype, 11), lib.array(n, dtype, 0)
        if name == "fill":
            return lib.fill(y), lambda: float(y[0]) == FILL and float(y[-1]) == FILL
        if name == "copy":
            return lib.copy(y, a), lambda: lib.same(y, a, 0)
        if name == "saxpy":
            expected = SCALE * a + y
            return lib.saxpy(y, a), lambda: lib.same(y, expected, 0)
        b = lib.array(n, dtype, 5)
        return lib.triad(y, a, b), lambda: lib.same(y, a + SCALE * b, 0)

    return make


def stencil_line(shape, dtype, layout):
    """left: both arrays are transposed views; mixed: only the result is."""

    def array(lib, is_left, seed):
        return lib.turn(lib.array(shape[::-1], dtype, seed)) if is_left else lib.array(shape, dtype, seed)

    def make(lib):
        y, a = array(lib, layout != "right", 11), array(lib, layout == "left", 0)
        rank = len(shape)
        middle = tuple(n // 2 for n in shape)

        def check():
            total = sum(float(a[tuple(m + s * (k == d) for k, m in enumerate(middle))]) for d in range(rank) for s in (-1, 1))
            here = float(a[middle])
            return float(y[middle]) == here + STEP * (total - 2.0 * rank * here)

        return stencil(y, a), check

    return make


def transpose_line(dtype):
    def make(lib):
        y, a = lib.empty((SQUARE, SQUARE), dtype), lib.array((SQUARE, SQUARE), dtype, 0)
        return lib.transpose(y, a), lambda: lib.same(y[:64], a[:, :64].T, 0)

    return make


def sum_line(name, dtype):
    def make(lib):
        a = lib.array(PLANE, dtype, 0)
        y = lib.empty((PLANE[0 if name == "rows" else 1],), dtype)
        at = 100
        part = a[at] if name == "rows" else a[:, at]
        return getattr(lib, name)(y, a), lambda: abs(float(y[at]) - float(part.sum())) <= 1e-5 * float(part.sum())

    return make


def dot_line(dtype):
    def make(lib):
        n = (VECTOR_BYTES // ITEM_BYTES[dtype],)
        a, b, y = lib.array(n, dtype, 0), lib.array(n, dtype, 5), lib.empty((), dtype)
        return lib.dot(y, a, b), lambda: abs(float(y) - float((a * b).sum())) <= 1e-4 * float(y)

    return make


def product_line(dtype):
    def make(lib):
        shape = (PRODUCT, PRODUCT)
        a, b, y = lib.array(shape, dtype, 0), lib.array(shape, dtype, 5), lib.empty(shape, dtype)
        return lib.product(y, a, b), lambda: lib.same(y[7], (a[7][:, None] * b).sum(0), 1e-6)

    return make


# ---------------------------------------------------------------- measuring


def time_text(seconds):
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000 or unit == "ms":
            return f"{seconds * factor:.4g} {unit}"


def run_line(lib, name, moved, flops, make, is_quick):
    call, check = make(lib)
    call()
    lib.sync()
    if not check():
        print(f"# {name}: {lib.name}: the result is wrong")
        return False
    once = lib.seconds(call, 1)
    repeats = max(1, min(1000, int((2e-3 if is_quick else 4e-3) / once) + 1))
    seconds = statistics.median(lib.seconds(call, repeats) for _ in range(5 if is_quick else 11))
    rate = f"{flops * 1e-12 / seconds:.5g} TF/s" if flops else f"{moved * 1e-9 / seconds:.5g} GB/s"
    print(f"{name}\t{lib.name}\t{time_text(seconds)}\t{rate}", flush=True)
    return True


def libraries():
    for library in (CuPy, Torch):
        try:
            lib = library()
        except Exception as e:  # not installed, or no GPU
            print(f"# {library.name} is left out: {str(e).splitlines()[0] if str(e) else type(e).__name__}")
            continue
        print(f"# {lib.name} {lib.version}")
        yield lib


def run(filters, is_quick):
    passed = True
    for lib in libraries():
        for name, moved, flops, make in lines():
            if not all(f in name for f in filters):
                continue
            try:
                passed = run_line(lib, name, moved, flops, make, is_quick) and passed
            except Exception as e:
                print(f"# {name}: {lib.name} does not do it: {str(e).splitlines()[0] if str(e) else type(e).__name__}")
            lib.release()
    return 0 if passed else 1


# ---------------------------------------------------------------- joining


def seconds_of(text):
    number, unit = text.split()
    return float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[unit]


def records(file, n_fields):
    for line in file:
        fields = line.rstrip("\n").split("\t")
        if not line.startswith("#") and len(fields) >= n_fields:
            yield fields


def join(ours_path, peers):
    """name, ours, library, theirs, theirs / ours."""
    with open(ours_path, encoding="utf-8") as file:
        ours = {fields[0]: fields[1] for fields in records(file, 8)}
    print("# name\tours\tlibrary\ttheirs\ttheirs / ours")
    for name, library, theirs, *_ in records(peers, 4):
        if name in ours and ours[name] != "-":
            print(f"{name}\t{ours[name]}\t{library}\t{theirs}\t{seconds_of(theirs) / seconds_of(ours[name]):.3f}")
    return 0


def main(words):
    if words and words[0] == "--join" and len(words) in (2, 3):
        if len(words) == 2:
            return join(words[1], sys.stdin)
        with open(words[2], encoding="utf-8") as file:
            return join(words[1], file)
    filters = [word for word in words if word != "--quick"]
    if any(word.startswith("-") for word in filters):
        print("usage: cuda_peers.py [--quick] [filter...] | --join OURS [PEERS]", file=sys.stderr)
        return 2
    return run(filters, "--quick" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
