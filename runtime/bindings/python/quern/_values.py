# SPDX-License-Identifier: Apache-2.0
"""Values of a kernel under construction, with Python's operators and numpy's rules for their types. A kernel is under
construction in one thread at a time, so the builder that functions such as sin and where mean is a thread's own."""

import math
import threading

from . import _quern

N = _quern.numbers()
TABLE = _quern.dtypes()  # the rows of quern/dtypes.def
DTYPES = {row[0]: row[1] for row in TABLE}
NAMES = {number: name for name, number in DTYPES.items()}
SIGNED, UNSIGNED, FLOATS, COMPLEX = ([row[0] for row in TABLE if row[2] == kind] for kind in "SUFC")
NUMPY = {row[0]: row[3] for row in TABLE}
BITS = {row[0]: row[4] for row in TABLE}
PART = {row[0]: row[5] for row in TABLE}
NARROW = [name for name in FLOATS if BITS[name] < 32]  # computed in f32
state = threading.local()


def current():
    """The kernel that this thread builds."""
    building = getattr(state, "building", None)
    if building is None:
        raise RuntimeError("quern: this is used inside a kernel only")
    return building


def kind_of(dtype):
    """0 bool, 1 integer, 2 float, 3 complex: the order in which a weak number gives way."""
    return 0 if dtype == "bool" else 3 if dtype in COMPLEX else 2 if dtype in FLOATS else 1


def float_for(dtype):
    """The float that holds all values of a type, as numpy has it."""
    if dtype in ("bool", "i8", "u8"):
        return "f16"
    if dtype in ("i16", "u16"):
        return "f32"
    return "f64" if kind_of(dtype) == 1 else dtype


def promote(a, b):
    """The type that values of two types have together, as numpy has it."""
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    if a in COMPLEX or b in COMPLEX:
        return "c128" if promote(PART[a], PART[b]) == "f64" else "c64"
    if a in FLOATS or b in FLOATS:
        a, b = float_for(a), float_for(b)
        if a == b:
            return a
        if BITS[a] == BITS[b]:  # neither of two halves holds all values of the other
            return "f32"
        return a if BITS[a] > BITS[b] else b
    if (a in SIGNED) == (b in SIGNED):
        return a if BITS[a] > BITS[b] else b
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    if BITS[signed] > BITS[unsigned]:
        return signed
    return {8: "i16", 16: "i32", 32: "i64", 64: "f64"}[BITS[unsigned]]


class Value:
    """A value of a kernel. A weak one comes of a Python number and takes the type of what it meets."""

    __slots__ = ("id", "dtype", "weak")
    __array_ufunc__ = None  # numpy's arrays leave operators to this class
    __hash__ = None

    def __init__(self, id, dtype=None, weak=False):
        self.id = id
        self.weak = weak
        self.dtype = dtype or NAMES.get(current().builder.type_of(id), "bool")

    def __bool__(self):
        raise TypeError("a value of a kernel is not known while the kernel is built: use where, if_ or loop")

    def __add__(self, o): return arithmetic("add", self, o)
    def __radd__(self, o): return arithmetic("add", o, self)
    def __sub__(self, o): return arithmetic("sub", self, o)
    def __rsub__(self, o): return arithmetic("sub", o, self)
    def __mul__(self, o): return arithmetic("mul", self, o)
    def __rmul__(self, o): return arithmetic("mul", o, self)
    def __truediv__(self, o): return divide(self, o)
    def __rtruediv__(self, o): return divide(o, self)
    def __floordiv__(self, o): return floor_divide(self, o)
    def __rfloordiv__(self, o): return floor_divide(o, self)
    def __mod__(self, o): return modulo(self, o)
    def __rmod__(self, o): return modulo(o, self)
    def __pow__(self, o): return power(self, o)
    def __rpow__(self, o): return power(o, self)
    def __and__(self, o): return arithmetic("and", self, o)
    def __rand__(self, o): return arithmetic("and", o, self)
    def __or__(self, o): return arithmetic("or", self, o)
    def __ror__(self, o): return arithmetic("or", o, self)
    def __xor__(self, o): return arithmetic("xor", self, o)
    def __rxor__(self, o): return arithmetic("xor", o, self)
    def __lshift__(self, o): return arithmetic("shl", self, o)
    def __rshift__(self, o): return arithmetic("shr", self, o)
    def __lt__(self, o): return compare("lt", self, o)
    def __le__(self, o): return compare("le", self, o)
    def __gt__(self, o): return compare("gt", self, o)
    def __ge__(self, o): return compare("ge", self, o)
    def __eq__(self, o): return compare("eq", self, o)
    def __ne__(self, o): return compare("ne", self, o)
    def __neg__(self): return op("neg", self)
    def __pos__(self): return self
    def __invert__(self): return op("not", self)
    def __abs__(self): return absolute(self)

    def astype(self, dtype):
        return cast(self, dtype)

    @property
    def real(self): return Value(current().builder.part(self.id, 0)) if self.dtype in COMPLEX else self

    @property
    def imag(self): return Value(current().builder.part(self.id, 1)) if self.dtype in COMPLEX else constant(0, self.dtype)


def dtype_name(dtype):
    """The name of Quern for a dtype of numpy, a Python type or a name."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = {"int": "i64", "float": "f64", "complex": "c128"}.get(name, name)
    for ours, other in NUMPY.items():
        if name in (ours, other):
            return ours
    raise TypeError("%r is no dtype" % (dtype,))


def constant(number, dtype):
    if not isinstance(number, complex) and dtype in FLOATS:
        number = float(number)
    return Value(current().builder.constant(DTYPES[dtype], number), dtype)


def value(x):
    """A value for a number; values as they are."""
    if isinstance(x, Value):
        return x
    current().note_place()
    dtype = {bool: "bool", int: "i64", float: "f64", complex: "c128"}.get(type(x))
    if dtype is None:  # a number of numpy has its own type
        dtype = dtype_name(getattr(x, "dtype", type(x)))
        return constant(x.item() if hasattr(x, "item") else x, dtype)
    v = constant(x, dtype)
    v.weak = dtype != "bool"
    return v


def cast(x, dtype):
    x, dtype = value(x), dtype_name(dtype)
    if x.dtype == dtype:
        return x if not x.weak else Value(x.id, dtype)
    return Value(current().builder.cast(DTYPES[dtype], x.id), dtype)


def common_dtype(values):
    """The type that values have together; weak ones count where their kind is above that of the others."""
    strong = [v.dtype for v in values if not v.weak]
    weak = [v.dtype for v in values if v.weak]
    dtype = strong[0] if strong else weak[0]
    for other in strong[1:] if strong else weak[1:]:
        dtype = promote(dtype, other)
    for other in weak if strong else []:
        if kind_of(other) > kind_of(dtype):
            if kind_of(other) == 3:
                dtype = "c64" if dtype == "f32" or dtype in NARROW else "c128"
            else:
                dtype = other
    return dtype


def together(*xs):
    """Values in their common type."""
    values = [value(x) for x in xs]
    dtype = common_dtype(values)
    weak = all(v.weak for v in values)
    return [v if v.dtype == dtype else Value(current().builder.cast(DTYPES[dtype], v.id), dtype) for v in values], dtype, weak


def op(name, *xs):
    values = [value(x) for x in xs]
    current().note_place()
    result = current().builder.op(name, [v.id for v in values])
    return Value(result, weak=all(v.weak for v in values))


def arithmetic(name, a, b):
    values, dtype, weak = together(a, b)
    if dtype == "bool":
        name = {"add": "or", "mul": "and", "min": "and", "max": "or"}.get(name, name)
    r = op(name, *values)
    r.weak = weak
    return r


def compare(name, a, b):
    values, dtype, _ = together(a, b)
    if dtype == "bool" and name not in ("eq", "ne"):
        values = [cast(v, "i8") for v in values]
    return op(name, *values)


def divide(a, b):
    values, dtype, weak = together(a, b)
    if kind_of(dtype) < 2:
        values = [cast(v, "f64") for v in values]
    r = op("div", *values)
    r.weak = weak
    return r


def numbers_together(a, b):
    """Values in their common type, which is not bool."""
    values, dtype, weak = together(a, b)
    return (values, dtype, weak) if dtype != "bool" else ([cast(v, "i8") for v in values], "i8", weak)


def floor_divide(a, b):
    (x, y), dtype, weak = numbers_together(a, b)
    if dtype in FLOATS:  # the steps of numpy, in its order
        zero, one, rest = constant(0, dtype), constant(1, dtype), math_call("fmod", x, y)
        q = op("div", op("sub", x, rest), y)
        q = where((rest != zero) & ((y < zero) != (rest < zero)), op("sub", q, one), q)
        low = op("floor", q)
        low = where(op("sub", q, low) > constant(0.5, dtype), op("add", low, one), low)
        r = where(q != zero, low, op("copysign", zero, op("div", x, y)))
        r = where(y == zero, op("div", x, y), r)
    elif dtype in SIGNED:
        q, rest = op("div", x, y), op("rem", x, y)
        zero = constant(0, dtype)
        wrong = (rest != zero) & ((rest < zero) != (y < zero)) & (y != zero)
        r = where(wrong, op("sub", q, constant(1, dtype)), q)
    else:
        r = op("div", x, y)
    r.weak = weak
    return r


def modulo(a, b):
    (x, y), dtype, weak = numbers_together(a, b)
    zero = constant(0, dtype)
    if dtype in FLOATS:
        rest = math_call("fmod", x, y)
        r = where((rest != zero) & ((rest < zero) != (y < zero)), op("add", rest, y), rest)
        r = where(rest == zero, op("copysign", zero, y), r)
    else:
        rest = op("rem", x, y)
        r = rest
        if dtype in SIGNED:
            r = where((rest != zero) & ((rest < zero) != (y < zero)), op("add", rest, y), rest)
        r = where(y == zero, zero, r)
    r.weak = weak
    return r


def power(a, b):
    if isinstance(b, int) and not isinstance(b, bool) and (0 <= b <= 64) and isinstance(a, Value):
        a = cast(a, "i8") if a.dtype == "bool" else a
        if b == 0:
            return constant(1, a.dtype)
        result, base = None, a
        while b:
            if b & 1:
                result = base if result is None else op("mul", result, base)
            b >>= 1
            if b:
                base = op("mul", base, base)
        result.weak = a.weak
        return result
    (x, y), dtype, weak = together(a, b)
    if kind_of(dtype) < 2:
        x, y = cast(x, "f64"), cast(y, "f64")
        return cast(math_call("pow", x, y), dtype if dtype != "bool" else "i8")
    r = math_call("pow", x, y)
    r.weak = weak
    return r


def math_call(name, *xs):
    """A function of docs/math.md; integers become floats as numpy has it."""
    values, dtype, weak = together(*xs)
    if kind_of(dtype) < 2:
        dtype = float_for(dtype)
    values = [v if v.dtype == dtype else cast(v, dtype) for v in values]
    wide = [cast(v, "f32") for v in values] if dtype in NARROW else values
    current().note_place()
    results = current().builder.math(name, [v.id for v in wide])
    current().builder.check()
    results = [Value(r) for r in results]
    if wide is not values:
        results = [cast(r, dtype) if r.dtype == "f32" else r for r in results]
    for r in results:
        r.weak = weak and r.dtype != "bool"
    return results[0] if len(results) == 1 else tuple(results)


def absolute(x):
    x = value(x)
    if x.dtype in COMPLEX:
        return math_call("abs", x)
    return x if x.dtype == "bool" else op("abs", x)


def rounded(name):
    def function(x):
        x = value(x)
        return x if kind_of(x.dtype) < 2 else op(name, x)
    return function


def where(condition, a, b):
    """a where the condition holds, else b."""
    condition = value(condition)
    if condition.dtype != "bool":
        condition = op("ne", condition, constant(0, condition.dtype))
    values, _, weak = together(a, b)
    r = op("select", condition, *values)
    r.weak = weak
    return r


def minimum(a, b): return arithmetic("min", a, b)
def maximum(a, b): return arithmetic("max", a, b)


def fma(a, b, c):
    """a*b + c, rounded once."""
    values, dtype, _ = together(a, b, c)
    return op("fma", *values)


def sqrt(x):
    x = value(x)
    if x.dtype in COMPLEX:
        return math_call("sqrt", x)
    return op("sqrt", x if x.dtype in FLOATS else cast(x, float_for(x.dtype)))


MATH = ("exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinpi cospi asin acos atan atan2 sinh cosh tanh asinh acosh "
        "atanh erf erfc gelu sigmoid softplus cbrt hypot pow fmod remainder rsqrt recip sincos tgamma lgamma isnan isinf "
        "isfinite signbit nextafter logb").split()


def math_function(name):
    def function(*xs):
        return math_call(name, *xs)
    function.__name__ = name
    function.__doc__ = "The function %s of docs/math.md." % name
    return function


FUNCTIONS = {name: math_function(name) for name in MATH}
FUNCTIONS.update(arcsin=FUNCTIONS["asin"], arccos=FUNCTIONS["acos"], arctan=FUNCTIONS["atan"], arctan2=FUNCTIONS["atan2"],
                 arcsinh=FUNCTIONS["asinh"], arccosh=FUNCTIONS["acosh"], arctanh=FUNCTIONS["atanh"], sqrt=sqrt, abs=absolute,
                 absolute=absolute, floor=rounded("floor"), ceil=rounded("ceil"), trunc=rounded("trunc"),
                 rint=rounded("round"), round=rounded("round"), where=where, minimum=minimum, maximum=maximum, fma=fma,
                 copysign=lambda a, b: arithmetic("copysign", a, b), astype=cast, real=lambda z: value(z).real,
                 imag=lambda z: value(z).imag, conj=lambda z: conj(z))


def conj(z):
    z = value(z)
    if z.dtype not in COMPLEX:
        return z
    b = current().builder
    return Value(b.complex(b.part(z.id, 0), b.op("neg", [b.part(z.id, 1)])))


CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
