# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out without numpy: Array, buffers, DLPack, the array interface; scalars; kernels from text and builder."""

import array
import ctypes
import gc
import sys

import quern as q
from tap import equal, ok, raises

COPY = """kernel "copy" { view x: %s[1]; view y: %s[1]; %%1: i64 = extent y, 0; %%0: i64 = const 0;
 %%3: i64 = parallel %%0, %%1; %%5: %s = load x[%%3]; store y[%%3], %%5; }"""
SCALE = """kernel "scale" { view x: f64[2]; scalar s: f64; %0: i64 = const 0; %1: i64 = extent x, 0; %2: i64 = extent x, 1;
 %3: i64 = parallel %0, %1; %4: i64 = parallel %0, %2; %5: f64 = param s; %6: f64 = load x[%3, %4];
 %7: f64 = mul %6, %5; store x[%3, %4], %7; }"""


class Foreign:
    """An object with the array interface alone."""

    def __init__(self, memory, shape, strides=None, typestr="<f8", read_only=False):
        self.memory = memory
        self.__array_interface__ = {"data": (ctypes.addressof(memory), read_only), "shape": shape, "strides": strides,
                                    "typestr": typestr, "version": 3}


class Tensor:
    """An object with DLPack alone; `versions`: whether it takes max_version."""

    def __init__(self, base, versions):
        self.base, self.versions = base, versions

    def __dlpack__(self, **options):
        if options and not self.versions:
            raise TypeError("no options")
        return self.base.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.base.__dlpack_device__()


def test_array():
    a = q.zeros((2, 3), "f64")
    equal((a.shape, a.strides, a.dtype, a.space, len(a)), ((2, 3), (24, 8), "f64", "host", 2), "a new array")
    view = memoryview(a)
    equal((view.format, view.shape, view.readonly), ("d", (2, 3), False), "its buffer")
    for i in range(6):
        view[i // 3, i % 3] = i
    equal(a.tolist(), [[0, 1, 2], [3, 4, 5]], "written through the buffer")
    equal(a[::-1, 1:].tolist(), [[4, 5], [1, 2]], "a part, backwards")
    equal(a[::-1, ::-2].strides, (-24, -16), "... has negative strides")
    equal((a[1, 2], a[-1, -3], a[1].tolist()), (5.0, 3.0, [3, 4, 5]), "elements and rows")
    equal(a[1:1].tolist(), [], "an empty part")
    raises(IndexError, lambda: a[2, 0], "not in an extent", "an index out of range")
    raises(IndexError, lambda: a[0, 0, 0], "3 indices", "too many indices")
    equal(q.view(a[1])[0], 3.0, "a view of a part")
    equal(len(repr(a)) > 10, True, "repr: %r" % a)


def test_dtypes():
    letters = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f32": "f",
               "f64": "d"}
    for dtype, letter in letters.items():
        x, y = array.array(letter, [1, 2, 3]), q.zeros(3, dtype)
        q.parse(COPY % (dtype, dtype, dtype))(x, y)
        equal(y.tolist(), [1, 2, 3], "%s from array.array" % dtype)
    for dtype in ("bool", "f16", "bf16", "c64", "c128"):
        x, y = q.zeros(3, dtype), q.zeros(3, dtype)
        q.parse(COPY % (dtype, dtype, dtype))(x, y)
        equal([complex(v) for v in y.tolist()], [0, 0, 0], dtype)
    k = q.parse(COPY % ("f32", "f32", "f32"))
    raises(q.DtypeError, lambda: k(array.array("d", [1]), q.zeros(1, "f32")), "f64", "another dtype is refused")
    raises(TypeError, lambda: k("text", q.zeros(1, "f32")), "expected an array", "a string is no array")


def test_memory():
    k = q.parse(COPY % ("u8", "u8", "u8"))
    out = bytearray(5)
    k(b"hello", out)
    equal(bytes(out), b"hello", "bytes are read, a bytearray is written")
    raises(q.ArgumentError, lambda: k(out, b"hello"), "read-only", "bytes are not written")
    k(memoryview(b"dlrow")[::-1], out)
    equal(bytes(out), b"world", "strides are negative")
    k(out, bytearray(5))
    out.append(1)
    equal(len(out), 6, "a buffer is let go after a launch")
    try:
        k(out, q.zeros(5, "f32"))
    except q.Error:
        pass
    out.append(2)
    equal(len(out), 7, "... and after a failed one")


def test_interfaces():
    memory = (ctypes.c_double * 6)(0, 1, 2, 3, 4, 5)
    scale = q.parse(SCALE)
    scale(Foreign(memory, (2, 3)), 10)
    equal(list(memory), [0, 10, 20, 30, 40, 50], "__array_interface__")
    scale(Foreign(memory, (3, 2), (8, 24)), 0.1)
    equal([round(v, 9) for v in memory], [0, 1, 2, 3, 4, 5], "... with strides")
    raises(q.ArgumentError, lambda: scale(Foreign(memory, (2, 3), None, "<f8", True), 1), "read-only", "... read-only")
    raises(TypeError, lambda: scale(Foreign(memory, (2, 3), None, ">f8"), 1), ">f8", "... of foreign byte order")
    a = q.zeros((2, 2), "f64")
    memoryview(a)[1, 0] = 3
    for versions in (True, False):
        before = sys.getrefcount(a)
        scale(Tensor(a, versions), 2)
        gc.collect()
        equal(sys.getrefcount(a), before, "DLPack %s versions: nothing is kept" % ("with" if versions else "without"))
    equal(a[1, 0], 12.0, "... and memory is shared")
    b = q.view(Tensor(a[1:], True))
    del a
    gc.collect()
    equal(b.tolist(), [[12, 0]], "a view keeps the memory of a tensor")
    capsule = b.__dlpack__()
    del capsule, b
    gc.collect()
    ok(True, "a capsule that nobody takes is freed")


def test_scalars():
    k = q.parse('kernel "s" { view x: i32[0]; scalar s: i32; %0: i32 = param s; store x[], %0; }')
    x = q.zeros((), "i32")
    k(x, -7)
    equal(x[()], -7, "an integer")
    k(x=x, s=True)
    equal(x[()], 1, "by name")
    raises(OverflowError, lambda: k(x, 2**31), "does not fit i32", "an integer that is too large")
    raises(TypeError, lambda: k(x, 1.5), "", "a float is no integer")
    raises(TypeError, lambda: k(x), "takes 2 arguments", "a missing argument")
    raises(TypeError, lambda: k(x, t=1), "no argument for parameter \"s\"", "a wrong name")


def test_builder():
    b = q.Builder("sum")
    f64, i64 = q.number("QN_F64"), q.number("QN_I64")
    x, y = b.view_param("x", f64, 1, q.number("QN_READ_ONLY")), b.view_param("y", f64, 0)
    i = b.dimension(1, b.constant(i64, 0), b.extent(x, 0))
    b.reduce(q.number("QN_COMBINE_SUM"), 0, [i])
    total = b.end_reduce(b.load(x, [i]))
    b.store(y, [], b.math("exp", [total])[0])
    k = b.finish()
    y = q.zeros((), "f64")
    k(array.array("d", [1, 2, -3]), y)
    equal(y[()], 1.0, "a kernel of the builder")
    equal([p["name"] for p in k.params], ["x", "y"], "its parameters")
    ok([s for s in k.statements() if s["word"] == "load"], "its statements")
    equal(q.parse(k.text).text, k.text, "its text reads back")
    b = q.Builder("wrong")
    b.at("my.dsl", 3, 4)
    b.op("add", [b.scalar_param("a", f64), b.scalar_param("b", i64)])
    e = raises(q.DtypeError, b.finish, "; at my.dsl:3:4", "errors have a place")
    equal((e.line, e.path), (3, "my.dsl"), "... as numbers")


def test_texts():
    k = q.parse(SCALE).options("engine=interp")
    a = q.zeros((2, 3), "f64")
    ok("interp" in k.explain(a, 1.0), "explain knows the options")
    k = q.parse(SCALE)
    k(a, 2)
    ok("vector" in k.stage("plan", a, 1.0) or k.stage("plan", a, 1.0), "the plan of arguments")
    ok("\n" in k.stage("asm", a, 1.0), "their assembly")
    equal(k.last_plan(), k.stage("plan", a, 2.0), "the plan of the last launch")
    html = k._repr_html_()
    ok("kernel scale" in html and "<summary>plan</summary>" in html and "1 launches" in html, "a notebook sees text, plan, time")
    raises(q.ArgumentError, lambda: k.options("engin=native"), "did you mean engine?", "options are checked")
    raises(q.ParseError, lambda: q.parse("kernel 3"), "line 1", "texts are checked")
    equal(q.counters()["launches"] > 0, True, "counters")


for test in (test_array, test_dtypes, test_memory, test_interfaces, test_scalars, test_builder, test_texts):
    test()
