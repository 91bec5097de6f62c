# SPDX-License-Identifier: Apache-2.0
"""peers.py [PACKAGE_FOLDER [WORD...]]: Quern's Python package beside numpy, numexpr, Numba, Dr.Jit, Halide and libgccjit, as
far as they are here; what is not is named. With words, rows whose names have all of them. A result of each
cell is checked against numpy's, or by peers_gccjit.c itself. Times are the least of many runs, one thread for all, arrays in
memory that is reused. Prints a table in Markdown; docs/which-tool.md explains it.

libgccjit is measured by tests/bench/peers_gccjit.c, which is compiled here if libgccjit.h is found. OCCA is in neither PyPI
nor Debian."""

import importlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "HL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["QUERN_CACHE"] = "off"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "release", "python")
sys.path.insert(0, PACKAGE)

import numpy as np
import quern as q

missing, version = [], {"quern": "this tree", "numpy": np.__version__}


def find(name):
    try:
        module = importlib.import_module(name)
    except Exception as error:  # a library that a package needs may be missing
        missing.append("%s (%s)" % (name, str(error).splitlines()[0]))
        return None
    try:
        from importlib.metadata import version as version_of
        version[name] = version_of(name)
    except Exception:
        version[name] = "?"
    return module


numexpr, numba, drjit, halide = find("numexpr"), find("numba"), find("drjit"), find("halide")
if numexpr:
    numexpr.set_num_threads(1)
dr = None
if drjit:
    try:
        from drjit.llvm.ad import Float64, UInt32
        drjit.set_thread_count(0)
        drjit.eval(Float64(1.0) + 1)
        dr = drjit
    except Exception as error:
        missing.append("drjit (%s)" % str(error).splitlines()[0])


def least(f, seconds=0.5):
    """The least time of one call, of as many as fit into so much time, at least 5; a short call is repeated in a sample."""
    f()
    n, begin = 1, time.perf_counter()
    f()
    one = time.perf_counter() - begin
    if one < 1e-4:
        n = int(1e-3 / max(one, 1e-7)) + 1
    best, runs, stop = 9e9, 0, time.perf_counter() + seconds
    while runs < 5 or time.perf_counter() < stop:
        begin = time.perf_counter()
        for _ in range(n):
            f()
        best = min(best, (time.perf_counter() - begin) / n)
        runs += 1
    return best


def check(what, found, expected, tolerance=1e-12):
    found = np.asarray(found)
    error = np.max(np.abs(found - expected) / (1 + np.abs(expected)))
    assert found.shape == expected.shape and error <= tolerance, "%s: wrong by %g" % (what, error)


columns = ["quern", "numpy", "numexpr", "numba", "drjit", "halide", "libgccjit"]
rows = []


def row(what, times):
    rows.append((what, times))
    print("# %s: %s" % (what, ", ".join("%s %s" % (k, text_of(v)) for k, v in times.items())), file=sys.stderr, flush=True)


def text_of(t):
    for factor, unit in ((1e3, "ms"), (1e6, "us"), (1e9, "ns")):
        if t * factor >= 1:
            break
    return "%.3g %s" % (t * factor, unit)


# ---------------------------------------------------------------- the expression

N = 1000000
x = np.linspace(0, 100, N)
expected = 2 * x + np.sin(x / 10)


def halide_expression(n, number=2.0):
    i, p = halide.Var("i"), halide.ImageParam(halide.Float(64), 1)
    f = halide.Func("f%d" % time.perf_counter_ns())
    f[i] = halide.f64(number) * p[i] + halide.sin(p[i] / halide.f64(10))
    f.vectorize(i, 8)
    f.compile_jit()
    return f, p


def expression():
    times, out = {}, np.empty(N)
    q.eval("2*x + sin(x/10)", {"x": x}, out)
    check("quern", out, expected)
    times["quern"] = least(lambda: q.eval("2*x + sin(x/10)", {"x": x}, out))

    def by_numpy():
        np.divide(x, 10, out)
        np.sin(out, out)
        np.add(out, 2 * x, out)
    times["numpy"] = least(by_numpy)
    if numexpr:
        check("numexpr", numexpr.evaluate("2*x + sin(x/10)", {"x": x}), expected)
        times["numexpr"] = least(lambda: numexpr.evaluate("2*x + sin(x/10)", {"x": x}, out=out))
    if numba:
        @numba.njit
        def loop(x, out):
            for i in range(x.size):
                out[i] = 2 * x[i] + np.sin(x[i] / 10)
        loop(x, out)
        check("numba", out, expected)
        times["numba"] = least(lambda: loop(x, out))
    if dr:
        a = Float64(x)
        check("drjit", (2 * a + dr.sin(a / 10)).numpy(), expected, 1e-9)

        def by_drjit():
            r = 2 * a + dr.sin(a / 10)
            dr.eval(r)
            dr.sync_thread()
        times["drjit"] = least(by_drjit)
    if halide:
        f, p = halide_expression(N)
        p.set(halide.Buffer(x))
        result = halide.Buffer(out)
        f.realize(result)
        check("halide", out, expected, 1e-6)
        times["halide"] = least(lambda: f.realize(result))
    return times


def first_result():
    """A new expression each time, from its text or function to its result, on 1000 elements; the libraries are loaded."""
    small, times, out = x[:1000].copy(), {}, np.empty(1000)
    numbers = iter(range(1 + time.time_ns() % 99991, 1 << 30))  # no number is in a cache on disk from an earlier run

    def least_of(who, f, n, tolerance=1e-12):
        """The least time of n calls after a first one. Each is of another number and leaves its result in `out`, or returns it."""
        best = 9e9
        for i in range(n + 1):
            number = next(numbers) + 0.5
            out[:] = 0
            begin = time.perf_counter()
            result = f(number)
            one = time.perf_counter() - begin
            best = min(best, one) if i else best
            check(who, out if result is None else result.numpy(), number * small + np.sin(small / 10), tolerance)
        times[who] = best

    def by_quern(number):
        q.eval("%r*x + sin(x/10)" % number, {"x": small}, out)
    least_of("quern", by_quern, 9)
    if numexpr:
        def by_numexpr(number):
            numexpr.evaluate("%r*x + sin(x/10)" % number, {"x": small}, out=out)
        least_of("numexpr", by_numexpr, 9)
    if numba:
        def by_numba(number):
            names = {"np": np}
            exec("def f(x, out):\n for i in range(x.size):\n  out[i] = %r*x[i] + np.sin(x[i] / 10)\n" % number, names)
            numba.njit(names["f"])(small, out)
        least_of("numba", by_numba, 5)
    if dr:
        a = Float64(small)

        def by_drjit(number):
            r = number * a + dr.sin(a / 10)
            dr.eval(r)
            dr.sync_thread()
            return r
        least_of("drjit", by_drjit, 9, 1e-9)
    if halide:
        def by_halide(number):
            f, p = halide_expression(1000, number)
            p.set(halide.Buffer(small))
            f.realize(halide.Buffer(out))
        least_of("halide", by_halide, 9, 1e-6)
    return times


def call():
    """x + y of 5 elements into a third array, code known: what a call takes."""
    a, b, out, times = np.arange(5.0), np.ones(5), np.empty(5), {}
    want = a + b

    def least_checked(who, f):
        """The least time of f, which leaves its result in `out`, or returns it."""
        out[:] = 0
        result = f()
        check(who, out if result is None else result.numpy(), want)
        times[who] = least(f)

    def by_quern():
        e((a, b), out)
    e = q.expression("a + b")
    least_checked("quern", by_quern)
    times["numpy"] = least(lambda: np.add(a, b, out))
    if numexpr:
        def by_numexpr():
            numexpr.evaluate("a + b", {"a": a, "b": b}, out=out)
        least_checked("numexpr", by_numexpr)
    if numba:
        @numba.njit
        def add(a, b, out):
            for i in range(a.size):
                out[i] = a[i] + b[i]
        least_checked("numba", lambda: add(a, b, out))
    if dr:
        c, d = Float64(a), Float64(b)

        def by_drjit():
            r = c + d
            dr.eval(r)
            dr.sync_thread()
            return r
        least_checked("drjit", by_drjit)
    if halide:
        i = halide.Var("i")
        pa, pb, f = halide.ImageParam(halide.Float(64), 1), halide.ImageParam(halide.Float(64), 1), halide.Func("add")
        f[i] = pa[i] + pb[i]
        f.compile_jit()
        pa.set(halide.Buffer(a))
        pb.set(halide.Buffer(b))
        result = halide.Buffer(out)
        least_checked("halide", lambda: f.realize(result))
    return times


# ---------------------------------------------------------------- a stencil, a product, a softmax

def stencil():
    n, times = 1024, {}
    u = np.random.default_rng(1).random((n, n))
    v = np.zeros((n, n))
    want = np.zeros((n, n))
    want[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])

    @q.kernel
    def five(v, u):
        i, j = q.parallel(1, u.shape[0] - 1), q.parallel(1, u.shape[1] - 1)
        v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    five(v, u)
    check("quern", v, want)
    times["quern"] = least(lambda: five(v, u))
    inner = v[1:-1, 1:-1]

    def by_numpy():
        np.add(u[:-2, 1:-1], u[2:, 1:-1], inner)
        np.add(inner, u[1:-1, :-2], inner)
        np.add(inner, u[1:-1, 2:], inner)
        np.multiply(inner, 0.25, inner)
    times["numpy"] = least(by_numpy)
    if numexpr:
        parts = {"a": u[:-2, 1:-1], "b": u[2:, 1:-1], "c": u[1:-1, :-2], "d": u[1:-1, 2:]}
        numexpr.evaluate("0.25*(a + b + c + d)", parts, out=inner)
        check("numexpr", v, want)
        times["numexpr"] = least(lambda: numexpr.evaluate("0.25*(a + b + c + d)", parts, out=inner))
    if numba:
        @numba.njit
        def loop(v, u):
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        v[:] = 0
        loop(v, u)
        check("numba", v, want)
        times["numba"] = least(lambda: loop(v, u))
    if dr:
        a = Float64(u.ravel())
        k = dr.arange(UInt32, (n - 2) * (n - 2))
        at = (k // (n - 2) + 1) * n + k % (n - 2) + 1
        dr.eval(at)

        def by_drjit():
            r = 0.25 * (dr.gather(Float64, a, at - n) + dr.gather(Float64, a, at + n) + dr.gather(Float64, a, at - 1) +
                        dr.gather(Float64, a, at + 1))
            dr.eval(r)
            dr.sync_thread()
            return r
        check("drjit", by_drjit().numpy().reshape(n - 2, n - 2), want[1:-1, 1:-1])
        times["drjit"] = least(by_drjit)
    if halide:
        i, j = halide.Var("i"), halide.Var("j")
        p, f = halide.ImageParam(halide.Float(64), 2), halide.Func("five")
        f[j, i] = halide.f64(0.25) * (p[j, i - 1] + p[j, i + 1] + p[j - 1, i] + p[j + 1, i])
        f.vectorize(j, 8)
        f.compile_jit()
        p.set(halide.Buffer(u))
        v[:] = 0
        result = halide.Buffer(v[1:-1, 1:-1])
        result.set_min([1, 1])
        f.realize(result)
        check("halide", v, want)
        times["halide"] = least(lambda: f.realize(result))
    return times


def product():
    n, times = 512, {}
    rng = np.random.default_rng(2)
    a, b, c = rng.random((n, n)), rng.random((n, n)), np.zeros((n, n))
    want = a @ b

    @q.kernel(contract=True)
    def matmul(c, a, b):
        i, j = q.parallel(c)
        k = q.reduction(a, 1)
        c[i, j] = q.sum(k, lambda: a[i, k] * b[k, j])
    matmul(c, a, b)
    check("quern", c, want)
    times["quern"] = least(lambda: matmul(c, a, b), 1)
    times["numpy"] = least(lambda: np.matmul(a, b, c), 1)
    if numba:
        @numba.njit(fastmath={"contract"})
        def loops(c, a, b):
            for i in range(c.shape[0]):
                for j in range(c.shape[1]):
                    c[i, j] = 0
                for k in range(a.shape[1]):
                    for j in range(c.shape[1]):
                        c[i, j] += a[i, k] * b[k, j]
        loops(c, a, b)
        check("numba", c, want)
        times["numba"] = least(lambda: loops(c, a, b), 1)
    if halide:
        i, j, io, jo, ii, ji = (halide.Var(name) for name in ("i", "j", "io", "jo", "ii", "ji"))
        pa, pb, f = halide.ImageParam(halide.Float(64), 2), halide.ImageParam(halide.Float(64), 2), halide.Func("product")
        k = halide.RDom([(0, n)])
        f[j, i] = halide.f64(0)
        f[j, i] += pa[k.x, i] * pb[j, k.x]
        g = halide.Func("out")
        g[j, i] = f[j, i]
        g.tile(j, i, jo, io, ji, ii, 24, 8).vectorize(ji, 8).unroll(ji).unroll(ii)
        f.compute_at(g, jo).vectorize(j, 8).unroll(j).unroll(i)
        f.update().reorder(j, i, k.x).vectorize(j, 8).unroll(j).unroll(i)
        g.compile_jit()
        pa.set(halide.Buffer(a))
        pb.set(halide.Buffer(b))
        result = halide.Buffer(c)
        g.realize(result)
        check("halide", c, want)
        times["halide"] = least(lambda: g.realize(result), 1)
    return times


def softmax():
    rows_, n, times = 1000, 1000, {}
    a = np.random.default_rng(3).random((rows_, n)) * 8
    out = np.zeros((rows_, n))
    want = np.exp(a - a.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)

    @q.kernel
    def rows_softmax(out, a):
        i = q.parallel(a, 0)
        k = q.reduction(a, 1)
        top = q.max(k, lambda: a[i, k])
        s = q.sum(k, lambda: q.exp(a[i, k] - top))
        q.loop(0, a.shape[1], lambda j: out.__setitem__((i, j), q.exp(a[i, j] - top) / s))
    rows_softmax(out, a)
    check("quern", out, want)
    times["quern"] = least(lambda: rows_softmax(out, a))

    def by_numpy():
        np.subtract(a, a.max(1, keepdims=True), out)
        np.exp(out, out)
        np.divide(out, out.sum(1, keepdims=True), out)
    times["numpy"] = least(by_numpy)
    if numexpr:
        def by_numexpr():
            numexpr.evaluate("exp(a - m)", {"a": a, "m": a.max(1, keepdims=True)}, out=out)
            numexpr.evaluate("out / s", {"out": out, "s": out.sum(1, keepdims=True)}, out=out)
        by_numexpr()
        check("numexpr", out, want)
        times["numexpr"] = least(by_numexpr)
    if numba:
        @numba.njit
        def loops(out, a):
            for i in range(a.shape[0]):
                top = a[i, 0]
                for j in range(a.shape[1]):
                    top = max(top, a[i, j])
                s = 0.0
                for j in range(a.shape[1]):
                    out[i, j] = np.exp(a[i, j] - top)
                    s += out[i, j]
                for j in range(a.shape[1]):
                    out[i, j] /= s
        loops(out, a)
        check("numba", out, want)
        times["numba"] = least(lambda: loops(out, a))
    if halide:
        i, j = halide.Var("i"), halide.Var("j")
        p, top, e, s, f = (halide.ImageParam(halide.Float(64), 2), halide.Func("top"), halide.Func("e"), halide.Func("s"),
                           halide.Func("softmax"))
        k = halide.RDom([(0, n)])
        top[i] = p[0, i]
        top[i] = halide.max(top[i], p[k.x, i])
        e[j, i] = halide.exp(p[j, i] - top[i])
        s[i] = halide.f64(0)
        s[i] += e[k.x, i]
        f[j, i] = e[j, i] / s[i]
        f.vectorize(j, 8)
        for part in (top, s):
            part.compute_at(f, i)
        e.compute_at(f, i).vectorize(j, 8)
        f.compile_jit()
        p.set(halide.Buffer(a))
        result = halide.Buffer(out)
        f.realize(result)
        check("halide", out, want, 1e-6)
        times["halide"] = least(lambda: f.realize(result))
    return times


def gccjit():
    """Times of tests/bench/peers_gccjit.c by the name of their row."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "peers_gccjit")
        source = os.path.join(ROOT, "tests", "bench", "peers_gccjit.c")
        flags = []
        for include in ("/usr/lib/gcc/x86_64-linux-gnu/12/include", "/usr/include"):
            if os.path.exists(os.path.join(include, "libgccjit.h")):
                flags = ["-I" + include, "-L" + os.path.dirname(include)]
        done = subprocess.run(["gcc", "-std=c11", "-O2", source, "-o", program] + flags + ["-lgccjit", "-lm"], capture_output=True, text=True)
        if done.returncode != 0:
            missing.append("libgccjit (%s)" % (done.stderr.strip().splitlines() or ["?"])[0])
            return {}
        done = subprocess.run([program], capture_output=True, text=True)
        if done.returncode != 0:
            missing.append("libgccjit (%s)" % done.stderr.strip().splitlines()[-1])
            return {}
        times = {}
        for line in done.stdout.splitlines():
            name, value = line.split(": ")
            if name == "version":
                version["libgccjit"] = value
            else:
                times[name] = float(value)
        return times


of_gcc = gccjit()
for name, work in (("first result of a new expression", first_result), ("call, x + y of 5 elements", call),
                   ("2*x + sin(x/10), 10^6 f64", expression), ("5-point stencil, 1024 x 1024 f64", stencil),
                   ("matrix product, 512 x 512 f64", product), ("softmax of rows, 1000 x 1000 f64", softmax)):
    if not all(word in name for word in sys.argv[2:]):
        continue
    times = work()
    if name in of_gcc:
        times["libgccjit"] = of_gcc[name]
    row(name, times)

processor = "?"
try:
    with open("/proc/cpuinfo") as f:
        text = f.read()
    processor = "%s, family %s, model %s" % tuple(re.search(r"^%s\s*:\s*(.*)$" % name, text, re.M).group(1)
                                                   for name in ("model name", "cpu family", "model"))
except (OSError, AttributeError):
    pass
print("Processor: %s, one thread; CPython %s; %s.\n" % (processor, platform.python_version(),
                                                        ", ".join("%s %s" % v for v in version.items())))
print("| | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
for name, times in rows:
    print("| %s | %s |" % (name, " | ".join(text_of(times[c]) if c in times else "" for c in columns)))
missing.append("OCCA (in neither PyPI nor Debian)")
print("\nNot measured: %s." % "; ".join(missing))
