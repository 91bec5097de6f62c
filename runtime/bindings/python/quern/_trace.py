# SPDX-License-Identifier: Apache-2.0
"""quern.kernel: a Python function as a kernel. The function is called once for each combination of element types and ranks,
with views and values that note what is done with them; what it noted is the kernel."""

import functools
import os
import sys

from . import _quern
from ._values import DTYPES, N, NAMES, Value, cast, constant, current, op, state, value

HERE = os.path.dirname(os.path.abspath(__file__))


class Building:
    """A kernel that a function becomes."""

    def __init__(self, name, flags):
        self.builder = _quern.Builder(name, flags)

    def note_place(self):
        """What is built now belongs to the line of the function, or of one that it calls, outside this package."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(HERE):
            frame = frame.f_back
        if frame is not None:
            self.builder.at(frame.f_code.co_filename, frame.f_lineno)


class View:
    """An array parameter: v[i, j] loads, v[i, j] = x stores, v.shape are its extents."""

    def __init__(self, id, name, dtype, rank):
        self.id, self.name, self.dtype, self.ndim = id, name, dtype, rank

    def index(self, key):
        key = key if isinstance(key, tuple) else (key,)
        return [value(k).id for k in key]

    def __getitem__(self, key):
        index = self.index(key)
        current().note_place()
        return Value(current().builder.load(self.id, index), self.dtype)

    def __setitem__(self, key, x):
        index, x = self.index(key), cast(x, self.dtype)
        current().note_place()
        current().builder.store(self.id, index, x.id)
        current().builder.check()

    @property
    def shape(self):
        return tuple(Value(current().builder.extent(self.id, d), "i64") for d in range(self.ndim))

    def __len__(self):
        raise TypeError("the extents of %s are values: use %s.shape" % (self.name, self.name))

    def __iter__(self):
        raise TypeError("%s cannot be walked: use quern.parallel(%s)" % (self.name, self.name))


def dimensions(kind, first, second):
    b = current().builder
    current().note_place()
    if isinstance(first, View):
        which = range(first.ndim) if second is None else [second]
        bounds = []
        for d in which:
            low = b.lower(first.id, d)
            bounds.append((low, b.op("add", [low, b.extent(first.id, d)])))
    else:
        begin, end = (0, first) if second is None else (first, second)
        bounds = [(value(begin).id, value(end).id)]
    found = tuple(Value(b.dimension(kind, *bound), "i64") for bound in bounds)
    b.check()
    return found[0] if len(found) == 1 else found


def parallel(first, second=None):
    """Indices whose iterations are independent: parallel(view) of all its dimensions, parallel(view, d) of one, parallel(end)
    and parallel(begin, end) of a range. Dimensions come before everything that uses an index."""
    return dimensions(0, first, second)


def reduction(first, second=None):
    """Indices for quern.sum and the like; see parallel."""
    return dimensions(1, first, second)


def sequential(first, second=None):
    """Indices that are walked in order, outside all parallel ones, each step seeing what earlier ones stored; see parallel."""
    return dimensions(2, first, second)


def reduce(combine):
    def function(over, body, order="default"):
        b = current().builder
        over = over if isinstance(over, tuple) else (over,)
        orders = {"default": 0, "indexed": 1, "striped": 2, "ordered": 3}
        current().note_place()
        b.reduce(N["QN_COMBINE_" + combine], orders[order], [k.id for k in over])
        x = value(body())
        return Value(b.end_reduce(x.id), x.dtype)
    function.__doc__ = "%s(over, body): combines body() over reduction indices." % combine.lower()
    return function


sum, prod, min, max, any, all = (reduce(c) for c in ("SUM", "PROD", "MIN", "MAX", "OR", "AND"))


def listed(x):
    return list(x) if isinstance(x, (tuple, list)) else [] if x is None else [x]


def like(xs, dtypes):
    """Values in the types that a region has for them."""
    return [cast(x, d).id for x, d in zip(xs, dtypes)]


def given(ids, dtypes):
    values = tuple(Value(i, d) for i, d in zip(ids, dtypes))
    return values[0] if len(values) == 1 else values if values else None


def loop(begin, end, body, *init, step=1):
    """Calls body(index, *carried) for a counted loop; it returns the next carried values. Returns the last ones."""
    b = current().builder
    init = [value(x) for x in init]
    dtypes = [x.dtype for x in init]
    current().note_place()
    index, carried = b.for_(value(begin).id, value(end).id, step, [x.id for x in init])
    following = listed(body(Value(index, "i64"), *(Value(c, d) for c, d in zip(carried, dtypes))))
    return given(b.end_for(like(following, dtypes)), dtypes)


def while_(most, condition, body, *init):
    """Calls body(*carried) while condition(*carried) holds, at most `most` times. Returns the last carried values."""
    b = current().builder
    init = [value(x) for x in init]
    dtypes = [x.dtype for x in init]
    current().note_place()
    ids = b.while_(value(most).id, [x.id for x in init])
    carried = [Value(i, d) for i, d in zip(ids, dtypes)]
    b.do_(value(condition(*carried)).id)
    return given(b.end_while(like(listed(body(*carried)), dtypes)), dtypes)


def if_(condition, then, otherwise=None, rare=False):
    """Calls then() where the condition holds, else otherwise(). Returns the values that they give."""
    b = current().builder
    current().note_place()
    b.if_(value(condition).id, rare)
    values = [value(x) for x in listed(then())]
    dtypes = [x.dtype for x in values]
    if otherwise is None:
        return given(b.end_if([]), [])
    b.else_([x.id for x in values])
    return given(b.end_if(like(listed(otherwise()), dtypes)), dtypes)


def check(condition, message, *values):
    """Asserts that a condition holds at run time; the message and values of the first failure are raised."""
    current().note_place()
    current().builder.assert_(value(condition).id, message, [value(x).id for x in values])


def print(message, *values):
    """Prints a line with the message, values and iteration, for each iteration that comes here, in their order."""
    current().note_place()
    current().builder.print(message, [value(x).id for x in values])


def atomic(combine, view, index, x):
    """Combines an element with x in one step: "sum", "min", "max", "and", "or", "xor", "exchange". Returns the old value."""
    current().note_place()
    old = current().builder.atomic(N["QN_COMBINE_" + combine.upper()], view.id, view.index(index), cast(x, view.dtype).id)
    return Value(old, view.dtype)


class Traced:
    """A function that is a kernel. Call it with arrays and numbers."""

    def __init__(self, function, options, flags):
        functools.update_wrapper(self, function)
        self.function, self.launch_options, self.flags = function, options, flags
        self.table = {}
        code = function.__code__
        self.names = code.co_varnames[:code.co_argcount]

    def build(self, key):
        n = len(self.names)
        if len(key) != 2 * n:
            raise TypeError("%s takes %d arguments, not %d" % (self.__name__, n, len(key) // 2))
        if getattr(state, "building", None):
            raise RuntimeError("a kernel cannot be launched while another one is traced")
        building = state.building = Building(self.__name__, self.flags)
        try:
            args = []
            for name, code, rank in zip(self.names, key[:n], key[n:]):
                number = code & 63
                if code & 64:
                    v = Value(building.builder.scalar_param(name, number), NAMES[number], weak=code & 128 != 0)
                else:
                    v = View(building.builder.view_param(name, number, rank, 0), name, NAMES[number], rank)
                args.append(v)
            self.function(*args)
            kernel = building.builder.finish()
        finally:
            state.building = None
        return (kernel.options(self.launch_options) if self.launch_options else kernel), None

    def __call__(self, *args, **names):
        if names:
            args = args + tuple(names[n] for n in self.names[len(args):])
        return _quern.dispatch(self.table, self.build, args)

    def kernels(self):
        """The kernels that were made so far."""
        return [kernel for kernel, _ in self.table.values()]

    def _repr_html_(self):
        from . import _show
        return "".join(_show.kernel(k) for k in self.kernels())


def kernel(function=None, *, options="", contract=False):
    """Decorator: makes a kernel of a function over arrays and numbers. `options` is text as "executor=threads checks=none";
    with `contract` a*b + c is rounded once."""
    flags = N["QN_CONTRACT"] if contract else 0
    if function is None:
        return lambda f: Traced(f, options, flags)
    return Traced(function, options, flags)
