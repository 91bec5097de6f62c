# SPDX-License-Identifier: Apache-2.0
"""python.py [PACKAGE_FOLDER]: what calls from Python take, and expressions against numpy, numexpr and Numba where these are
installed. Each time is processor time, to which other programs do not count, and the least of 31 runs, in turns. Prints a
table in Markdown.

numexpr of PyPI has no VML; built from its sources with mkl-devel of PyPI it has (site.cfg names the folders). Numba uses SVML
with Conda's llvmlite only, so where icc-rt of PyPI and clang-19 are there, the loop that Numba would compile is compiled by
clang-19 with calls of SVML instead."""

import ctypes as C
import glob
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "release", "python")
os.environ.setdefault("QUERN_CACHE", "off")
sys.path.insert(0, PACKAGE)

import numpy as np
import quern as q

try:
    import numexpr
    numexpr.set_num_threads(1)
    numexpr.set_vml_num_threads(1)
except ImportError:
    numexpr = None
try:
    import numba
except ImportError:
    numba = None

ADD = """kernel "add" { view x: f32[1]; view y: f32[1]; view z: f32[1]; %1: i64 = extent z, 0; %0: i64 = const 0;
 %3: i64 = parallel %0, %1; %5: f32 = load x[%3]; %6: f32 = load y[%3]; %7: f32 = add %5, %6; store z[%3], %7; }"""


def measure(functions, n):
    """The least processor time of one call of each function, in seconds; one thread each, so other programs do not count."""
    best = {}
    for f in functions.values():
        f()
    for _ in range(31):
        for name, f in functions.items():
            begin = time.process_time()
            for _ in range(n):
                f()
            best[name] = min(best.get(name, 9e9), (time.process_time() - begin) / n)
    return best


class ByCtypes:
    """The same launch by ctypes: a view for each array from its address and strides, then qn_launch."""

    def __init__(self):
        lib = self.lib = C.CDLL(os.path.join(PACKAGE, "..", "libquern.so"))
        lib.qn_sizeof.restype = C.c_size_t
        lib.qn_view_box.restype = C.c_void_p
        self.context, self.kernel = C.c_void_p(), C.c_void_p()
        assert lib.qn_context_new(None, C.byref(self.context), None) == 0
        text = ADD.encode()
        assert lib.qn_kernel_parse(text, C.c_size_t(len(text)), C.byref(self.kernel), None) == 0
        self.boxes = [C.c_void_p(lib.qn_view_box(None)) for _ in range(3)]
        self.args = C.create_string_buffer(3 * lib.qn_sizeof(b"qn_arg"))
        self.error = C.create_string_buffer(lib.qn_sizeof(b"qn_error"))

    def __call__(self, *arrays):
        lib = self.lib
        for i, a in enumerate(arrays):
            extents, strides = (C.c_int64 * 1)(*a.shape), (C.c_int64 * 1)(*a.strides)
            lib.qn_view_from_bytes(b"a", C.c_void_p(a.ctypes.data), 10, 1, extents, strides, None, 0, self.boxes[i], self.error)
            lib.qn_args_set_view(self.args, i, self.boxes[i])
        return lib.qn_launch(self.context, self.kernel, 3, self.args, None, self.error)


LOOP = """#include <math.h>
void loop(long n, const double *restrict x, double *restrict out) {
    for (long i = 0; i < n; i++) out[i] = 2 * x[i] + sin(x[i] / 10);
}"""


def loop_with_svml(folder):
    """The loop with SVML, compiled by clang-19 into the folder; None without either."""
    svml = glob.glob(os.path.join(sys.prefix, "lib", "libsvml.so"))
    for needed in glob.glob(os.path.join(sys.prefix, "lib", "libintlc.so.5")):  # which libsvml.so does not find beside itself
        C.CDLL(needed, mode=C.RTLD_GLOBAL)
    source, library = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.so")
    with open(source, "w") as out:
        out.write(LOOP)
    command = ["clang-19", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fveclib=SVML", "-shared",
               "-fPIC", source, "-o", library, *svml, "-Wl,-rpath," + os.path.join(sys.prefix, "lib")]
    try:
        if svml and subprocess.run(command, capture_output=True).returncode == 0:
            return C.CDLL(library).loop
    except OSError:
        pass
    return None


def first_in_new_process(cache, text, n):
    """Seconds of the first result of an expression in a process that has launched another one, with a cache on disk."""
    code = """import sys, time; sys.path.insert(0, %r); import quern as q
x = q.zeros(%d); q.eval("x + 1"); t = time.process_time(); q.eval(%r); print(time.process_time() - t)""" % (PACKAGE, n, text)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, "QUERN_CACHE": cache})
    return float(run.stdout)


def row(what, seconds, of=None):
    unit, factor = ("us", 1e6) if seconds < 1e-3 else ("ms", 1e3)
    print("| %s | %.2f %s | %s |" % (what, seconds * factor, unit, "" if of is None else "%.2f" % (seconds / of)))


print("| what | time | relative to the first of its group |\n|---|---|---|")
x, y, z = (np.ones(5, np.float32) for _ in range(3))
add, by_ctypes, e = q.parse(ADD), ByCtypes(), q.expression("x + y")


@q.kernel
def traced(x, y, z):
    i = q.parallel(z)
    z[i] = x[i] + y[i]


calls = {"quern: a kernel, three arrays of 5": lambda: add(x, y, z), "quern: a traced function": lambda: traced(x, y, z),
         "quern: an expression, into a given array": lambda: e((x, y), z), "quern: eval of a text": lambda: q.eval("x + y", {"x": x, "y": y}),
         "ctypes": lambda: by_ctypes(x, y, z), "numpy: add": lambda: np.add(x, y, z)}
with open("/proc/cpuinfo") as lines:
    print("\n%s, Python %s, numpy %s" % (next(l for l in lines if l.startswith("model name")).split(": ")[1].strip(),
                                        sys.version.split()[0], np.__version__), file=sys.stderr)
numexpr_name = "numexpr with VML" if numexpr and numexpr.use_vml else "numexpr without VML"
numba_name = "Numba with SVML" if numba and numba.config.USING_SVML else "Numba without SVML"
if numexpr:
    calls["numexpr: evaluate"] = lambda: numexpr.evaluate("x + y")
if numba:
    add_numba = numba.njit(lambda x, y, z: np.add(x, y, z))
    calls["Numba"] = lambda: add_numba(x, y, z)
times = measure(calls, 2000)
for name, t in times.items():
    row(name, t, times["quern: a kernel, three arrays of 5"])

temporary = tempfile.TemporaryDirectory()
folder = temporary.name
for text, fn in [("2*x + sin(x/10)", lambda x: 2 * x + np.sin(x / 10)), ("a*b - 4.1*a > 2.5*b", None)]:
    x = np.linspace(0, 100, 1000000)
    a, b = x, x[::-1].copy()
    out = np.empty(1000000, bool if fn is None else float)
    values = {"x": x, "a": a, "b": b}
    calls = {"quern: " + text: lambda: q.eval(text, values, out), "numpy": lambda: np.copyto(out, eval(text, {"sin": np.sin, **values}))}
    if numexpr:
        calls[numexpr_name] = lambda: numexpr.evaluate(text, values, out=out)
    if numba and fn:
        @numba.njit(fastmath=False)
        def loop(x, out):
            for i in range(x.size):
                out[i] = 2 * x[i] + np.sin(x[i] / 10)
        calls[numba_name] = lambda: loop(x, out)
    svml = loop_with_svml(folder) if fn else None
    if svml:
        address = [C.c_void_p(x.ctypes.data), C.c_void_p(out.ctypes.data)]
        calls["a loop by clang-19 with SVML"] = lambda: svml(C.c_long(x.size), *address)
    times = measure(calls, 5)
    for name, t in times.items():
        row(name, t, times["quern: " + text])

for i in range(3):
    begin = time.process_time()
    q.eval("x*%d.25 + sin(x)" % i, values)
    first = time.process_time() - begin
row("quern: first result of a new expression, 10^6 elements", first)
cache = os.path.join(folder, "cache")
os.mkdir(cache, 0o700)
row("quern: first result in a new process, 1000 elements, compiled", first_in_new_process(cache, "x*1.5 + sin(x)", 1000))
row("quern: ... from the cache on disk", min(first_in_new_process(cache, "x*1.5 + sin(x)", 1000) for _ in range(5)))
text = "import sys, time; sys.path.insert(0, %r); t = time.process_time(); import quern; print(time.process_time() - t)" % PACKAGE
row("quern: import", min(float(subprocess.run([sys.executable, "-c", text], capture_output=True).stdout) for _ in range(5)))
