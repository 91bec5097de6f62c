# SPDX-License-Identifier: Apache-2.0
"""numpy_dlpack.py LIBRARY: arrays from numpy to Quern and back through DLPack, by ctypes. Prints TAP; see
check/numpy.sh. Only what numpy hands out and takes is tested: capsules, strides, ownership, the read-only flag."""

import ctypes as C
import gc
import sys

import numpy as np

quern = C.CDLL(sys.argv[1])
api = C.pythonapi
api.PyCapsule_GetPointer.restype = C.c_void_p
api.PyCapsule_GetPointer.argtypes = [C.py_object, C.c_char_p]
api.PyCapsule_IsValid.argtypes = [C.py_object, C.c_char_p]
api.PyCapsule_SetName.argtypes = [C.py_object, C.c_char_p]
api.PyCapsule_New.restype = C.py_object
api.PyCapsule_New.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p]
quern.qn_view_use_count.restype = C.c_int64
KINDS = {b"dltensor": "", b"dltensor_versioned": "_versioned"}
USED = {name: b"used_" + name for name in KINDS}  # capsules borrow their names
n_tests = n_failed = 0


class Error(C.Structure):
    _fields_ = [("status", C.c_int32), ("line", C.c_int32), ("message", C.c_char * 504)]


class Refused(Exception):
    pass


def ok(passed, what):
    global n_tests, n_failed
    n_tests += 1
    n_failed += not passed
    print("%s %d - %s" % ("ok" if passed else "not ok", n_tests, what), flush=True)


def call(name, *args):
    error = Error()
    if getattr(quern, name)(*args, C.byref(error)):
        raise Refused(error.message.decode())


class View:
    """A qn_view, behind enough bytes; only its functions look inside."""

    def __init__(self):
        self.room = C.create_string_buffer(4096)

    def shape_and_strides(self, rank):
        extents, strides = (C.c_int64 * rank)(), (C.c_int64 * rank)()
        call("qn_view_to_bytes", self.room, extents, strides, None)
        return tuple(extents), tuple(strides)

    def address(self, *index):
        p = C.c_void_p()
        call("qn_view_at", self.room, len(index), (C.c_int64 * len(index))(*index), C.byref(p))
        return p.value

    def release(self):
        quern.qn_view_release(self.room)


def take(capsule):
    """Takes a capsule over, as a consumer does: its name says so afterwards."""
    for name, suffix in KINDS.items():
        if api.PyCapsule_IsValid(capsule, name):
            view = View()
            pointer = C.c_void_p(api.PyCapsule_GetPointer(capsule, name))
            call("qn_view_take_dlpack" + suffix, b"numpy", pointer, C.c_uint32(0), view.room)
            api.PyCapsule_SetName(capsule, USED[name])
            return view, name.decode()
    raise Refused("no DLPack capsule")


class Producer:
    """A view as an object that numpy.from_dlpack takes."""

    def __init__(self, view, is_versioned):
        self.view, self.is_versioned = view, is_versioned

    def __dlpack__(self, **options):
        name = b"dltensor_versioned" if self.is_versioned else b"dltensor"
        out = C.c_void_p()
        call("qn_view_to_dlpack" + KINDS[name], self.view.room, None, None, C.byref(out))
        self.name = name  # borrowed by the capsule
        return api.PyCapsule_New(out, name, None)

    def __dlpack_device__(self):
        return (1, 0)


def export(array, **options):
    try:
        return array.__dlpack__(**options)
    except TypeError:  # numpy before 2.1 knows no versions
        return None


def test_take(options):
    x = np.arange(60, dtype=np.float64).reshape(5, 12)
    for what, y in [("whole", x), ("x[::-2, 1:]", x[::-2, 1:]), ("x.T", x.T), ("empty", x[2:2])]:
        capsule = export(y, **options)
        if capsule is None:
            ok(True, "versioned # SKIP numpy %s knows no versions" % np.__version__)
            return
        before = sys.getrefcount(y)
        view, name = take(capsule)
        del capsule
        shape, strides = view.shape_and_strides(2)
        ok(shape == y.shape and (y.size == 0 or strides == y.strides), "%s of %s" % (what, name))
        if y.size:
            i = tuple(k - 1 for k in y.shape)
            ok(C.c_double.from_address(view.address(*i)).value == y[i], "... last element")
        view.release()
        gc.collect()
        ok(sys.getrefcount(y) == before - 1, "... numpy gets its reference back")


def test_dtypes():
    for dtype in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split():
        try:
            view, _ = take(np.zeros(3, dtype=dtype).__dlpack__())
        except BufferError:  # old numpy has no bool
            ok(True, "%s # SKIP numpy %s does not export it" % (dtype, np.__version__))
            continue
        _, strides = view.shape_and_strides(1)
        ok(strides == (np.dtype(dtype).itemsize,), dtype)
        view.release()
    capsule = np.zeros(3, dtype=np.longdouble)
    try:
        take(capsule.__dlpack__())
        ok(False, "long double is refused")
    except (Refused, BufferError) as e:
        ok(True, "long double is refused: %s" % e)


def test_read_only():
    x = np.arange(4.0)
    x.flags.writeable = False
    try:
        capsule = export(x, max_version=(1, 0))
    except BufferError:
        capsule = None
    if capsule is None:
        ok(True, "read-only # SKIP numpy %s does not export it" % np.__version__)
        return
    view, _ = take(capsule)
    try:
        Producer(view, False).__dlpack__()
        ok(False, "a read-only view leaves without a version")
    except Refused as e:
        ok("version" in str(e), "a read-only view does not leave without a version")
    ok(not np.from_dlpack(Producer(view, True)).flags.writeable, "... and stays read-only with one")
    view.release()


def test_give(is_versioned):
    view = View()
    extents = (C.c_int64 * 2)(3, 4)
    call("qn_view_new", None, b"given", 11, 2, extents, view.room)
    try:
        array = np.from_dlpack(Producer(view, is_versioned))
    except (ValueError, RuntimeError, TypeError) as e:
        ok(is_versioned and np.__version__ < "2.1", "# SKIP numpy %s: %s" % (np.__version__, e))
        view.release()
        return
    ok(array.shape == (3, 4) and array.strides == (32, 8) and array.dtype == np.float64, "given to numpy")
    ok(array.ctypes.data == view.address(0, 0), "... without a copy")
    C.c_double.from_address(view.address(2, 1)).value = 7
    ok(array[2, 1] == 7 and array.sum() == 7, "... what is written is seen")
    ok(quern.qn_view_use_count(view.room) == 2, "... numpy holds a reference")
    part = array[1:]
    del array
    gc.collect()
    ok(quern.qn_view_use_count(view.room) == 2, "... so does a part")
    view_part, _ = take(part.__dlpack__()) if part.flags.writeable else (None, None)
    if view_part:
        ok(view_part.address(0, 0) == view.address(1, 0), "... and the part comes back")
        view_part.release()
    del part
    gc.collect()
    ok(quern.qn_view_use_count(view.room) == 1, "... until it is gone")
    view.release()


print("TAP version 13")
print("# numpy", np.__version__)
test_take({})
test_take({"max_version": (1, 0)})
test_take({"max_version": (1, 3)})
test_dtypes()
test_read_only()
test_give(False)
test_give(True)
print("1..%d" % n_tests)
sys.exit(n_failed != 0)
