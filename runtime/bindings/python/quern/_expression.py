# SPDX-License-Identifier: Apache-2.0
"""quern.eval: an expression over arrays, in the manner of numexpr. The text is parsed once; for each combination of element
types and number of dimensions a kernel is built, which Quern compiles for the extents and strides that it meets."""

import ast
import sys

from . import _quern
from ._values import (CONSTANTS, DTYPES, FUNCTIONS, N, NAMES, NUMPY, SIGNED, UNSIGNED, Value, cast, common_dtype, compare,
                      constant, op, state, value)

OPERATORS = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.FloorDiv: "__floordiv__",
             ast.Mod: "__mod__", ast.Pow: "__pow__", ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__",
             ast.LShift: "__lshift__", ast.RShift: "__rshift__"}
COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
REDUCTIONS = {"sum": "SUM", "prod": "PROD", "min": "MIN", "max": "MAX", "any": "OR", "all": "AND", "mean": "SUM"}


class Building:
    """A kernel that an expression becomes."""

    def __init__(self, name, text):
        self.builder = _quern.Builder(name)
        self.text = text

    def note_place(self):
        pass


class Expression:
    """A parsed expression with its kernels."""

    def __init__(self, text):
        self.text = text
        self.tree = ast.parse(text.strip(), mode="eval").body
        self.reduction, self.axis = None, None
        tree = self.tree
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in REDUCTIONS:
            self.take_reduction(tree)
        self.names = []
        self.find_names(self.tree)
        self.tables = {}

    def take_reduction(self, tree):
        self.reduction, self.tree = tree.func.id, tree.args[0] if tree.args else None
        options = {k.arg: k.value for k in tree.keywords}
        if len(tree.args) == 2:
            options["axis"] = tree.args[1]
        if self.tree is None or set(options) - {"axis"}:
            raise self.error(tree, "%s(expression, axis=None)" % self.reduction)
        if "axis" in options:
            axis = ast.literal_eval(options["axis"])
            self.axis = None if axis is None else axis if isinstance(axis, tuple) else (axis,)

    def error(self, node, what):
        return SyntaxError(what, ("<quern.eval>", 1, node.col_offset + 1, self.text.strip()))

    def find_names(self, node):
        """Names of operands, in the order of the text; those of functions are none."""
        if isinstance(node, ast.Call):
            for part in node.args:
                self.find_names(part)
            return
        if isinstance(node, ast.Name) and node.id not in self.names:
            self.names.append(node.id)
        for part in ast.iter_child_nodes(node):
            self.find_names(part)

    # ------------------------------------------------------------------------------------ values

    def walk(self, node, env):
        """The value of a node; numbers stay Python's until they meet a value."""
        if isinstance(node, ast.Name):
            return env[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, complex)):
            return node.value
        state.building.builder.at("<%s>" % self.text.strip(), 1, node.col_offset + 1)
        if isinstance(node, ast.BinOp):
            return self.operate(node, self.walk(node.left, env), self.walk(node.right, env))
        if isinstance(node, ast.UnaryOp):
            x = self.walk(node.operand, env)
            if isinstance(node.op, ast.Not):
                return op("not", truth(x))
            return -x if isinstance(node.op, ast.USub) else +x if isinstance(node.op, ast.UAdd) else ~value(x)
        if isinstance(node, ast.Compare):
            return self.compare(node, env)
        if isinstance(node, ast.BoolOp):
            parts = [truth(self.walk(v, env)) for v in node.values]
            name = "and" if isinstance(node.op, ast.And) else "or"
            for part in parts[1:]:
                parts[0] = op(name, parts[0], part)
            return parts[0]
        if isinstance(node, ast.IfExp):
            return FUNCTIONS["where"](*(self.walk(n, env) for n in (node.test, node.body, node.orelse)))
        if isinstance(node, ast.Attribute) and node.attr in ("real", "imag"):
            return getattr(value(self.walk(node.value, env)), node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.call(node, env)
        raise self.error(node, "this is no part of an expression")

    def operate(self, node, a, b):
        name = OPERATORS.get(type(node.op))
        if name is None:
            raise self.error(node, "no such operator")
        if not isinstance(a, Value) and not (isinstance(b, int) and isinstance(node.op, ast.Pow)):
            a = value(a)
        return getattr(a, name)(b)

    def compare(self, node, env):
        result, left = None, self.walk(node.left, env)
        for kind, right in zip(node.ops, node.comparators):
            if type(kind) not in COMPARISONS:
                raise self.error(node, "no such comparison")
            right = self.walk(right, env)
            part = compare(COMPARISONS[type(kind)], left, right)
            result, left = part if result is None else op("and", result, part), right
        return result

    def call(self, node, env):
        function = FUNCTIONS.get(node.func.id)
        if function is None:
            what = "a reduction stands outermost" if node.func.id in REDUCTIONS else "no function %s" % node.func.id
            raise self.error(node, what)
        args = [self.walk(a, env) for a in node.args]
        return function(*(a if i and function is FUNCTIONS["astype"] else value(a) for i, a in enumerate(args)))

    # ------------------------------------------------------------------------------------ kernels

    def build(self, key, reduced, dtype):
        """The kernel of a key with a result of this dtype, or None if it has another one, and the dtype that it has."""
        building = Building("expression", self.text)
        b, rank, env = building.builder, key[0], {}
        state.building = building
        kept = [d for d in range(rank) if not reduced >> (rank - 1 - d) & 1]
        result = b.view_param("result", DTYPES[dtype], len(kept), 0)
        params = []
        for name, code in zip(self.names, key[2:]):
            number = code & 63
            if code & 64:
                v = Value(b.scalar_param(name, number), NAMES[number], weak=code & 128 != 0)
            else:
                v = (b.view_param(name, number, rank, N["QN_READ_ONLY"]), NAMES[number])
            params.append(v)
        views = [p for p in params if isinstance(p, tuple)]
        index = [0] * rank
        for kind in (0, 1):  # parallel dimensions, then those of a reduction
            for d in range(rank):
                if (d in kept) == (kind == 0):
                    of, at = (result, kept.index(d)) if kind == 0 else (views[0][0], d)
                    index[d] = b.dimension(kind, b.constant(DTYPES["i64"], 0), b.extent(of, at))
        reduces = self.reduction and len(kept) < rank
        if reduces:
            b.reduce(N["QN_COMBINE_" + REDUCTIONS[self.reduction]], 0, [index[d] for d in range(rank) if d not in kept])
        for name, p in zip(self.names, params):
            env[name] = Value(b.load(p[0], index), p[1]) if isinstance(p, tuple) else p
        x = value(self.walk(self.tree, env))
        is_bool = self.reduction in ("min", "max") and x.dtype == "bool"  # which the reductions of numbers do not take
        if self.reduction:
            x = cast(x, "i8") if is_bool else self.widen(x)
        if reduces:
            x = Value(b.end_reduce(x.id))
        if is_bool:
            x = cast(x, "bool")
        if self.reduction == "mean":
            count = constant(1, "i64")
            for d in range(rank):
                if d not in kept:
                    count = op("mul", count, Value(b.extent(views[0][0], d)))
            x = x / cast(count, "f64" if x.dtype not in ("f32", "c64") else "f32")
        x = Value(x.id, x.dtype)
        if dtype == x.dtype:
            b.store(result, [index[d] for d in kept], x.id)
            return b.finish().options("strict=1"), dtype  # an overlap would make results depend on the order
        b.check()
        return None, x.dtype

    def widen(self, x):
        """The type in which numpy reduces."""
        x.weak = False
        if self.reduction in ("any", "all"):
            return truth(x)
        if self.reduction in ("sum", "prod", "mean"):
            if self.reduction == "mean" and (x.dtype == "bool" or x.dtype in SIGNED + UNSIGNED):
                return cast(x, "f64")
            if x.dtype == "bool" or x.dtype in SIGNED:
                return cast(x, "i64")
            if x.dtype in UNSIGNED:
                return cast(x, "u64")
        return x

    def make(self, reduced):
        def make(key):
            bits = (1 << key[0]) - 1 if reduced == -1 else reduced
            if self.reduction and not any(not code & 64 for code in key[2:]):
                raise ValueError("quern.eval: a reduction of no array")
            dtype = next((NAMES[code & 63] for code in key[2:] if not code & 64), "f64")  # a guess: that of the first array
            try:
                kernel, found = self.build(key, bits, dtype)
                if kernel is None:
                    kernel, dtype = self.build(key, bits, found)
            finally:
                state.building = None
            return kernel, NUMPY[dtype]
        return make

    def reduced_bits(self, values):
        if not self.reduction:
            return 0
        if self.axis is None:
            return -1
        rank = max(len(getattr(v, "shape", ())) for v in values)
        bits = 0
        for axis in self.axis:
            if not -rank <= axis < rank:
                raise ValueError("quern.eval: axis %d of %d dimensions" % (axis, rank))
            bits |= 1 << (-1 - axis if axis < 0 else rank - 1 - axis)
        return bits

    def __call__(self, values, out=None):
        reduced = self.reduced_bits(values) if self.reduction else 0
        entry = self.tables.get(reduced)
        if entry is None:
            entry = self.tables[reduced] = ({}, self.make(reduced))
        result = _quern.evaluate(entry[0], entry[1], values, out, empty_for(values), reduced)
        return result[()] if out is None and len(result.shape) == 0 else result

    def kernels(self):
        """The kernels that were made so far."""
        return [kernel for table, _ in self.tables.values() for kernel, _ in table.values()]

    def _repr_html_(self):
        from . import _show
        return "".join(_show.kernel(k) for k in self.kernels())


def truth(x):
    x = value(x)
    return x if x.dtype == "bool" else op("ne", x, constant(0, x.dtype))


def is_on_gpu(v):
    """Whether an array is in memory of a GPU, as its device of DLPack says (2), or its interface."""
    device = getattr(v, "__dlpack_device__", None)
    return device()[0] == 2 if device else hasattr(v, "__cuda_array_interface__")


def empty_for(values):
    """What makes an array for the result: numpy where it is loaded, else Quern; on the device of the operands."""
    numpy = sys.modules.get("numpy")
    array = getattr(numpy, "ndarray", None)
    for v in values:
        if array is None or not isinstance(v, (array, float, int)):
            if is_on_gpu(v):
                return lambda shape, dtype: _quern.empty(shape, dtype, N["QN_SPACE_CUDA"])
    return numpy.empty if array is not None else _quern.empty


cache = {}


def expression(text):
    """The parsed form of an expression, which is kept: e.names are its operands, e((a, b)) its value for them."""
    e = cache.get(text)
    if e is None:
        e = cache[text] = Expression(text)
    return e


def eval(text, values=None, out=None):
    """The value of an expression such as "a*x + sin(b)" or "sum(x*y, axis=0)" over arrays and numbers.

    Operands are the variables of the caller with these names, or entries of `values`. Shapes are broadcast and types promoted
    as numpy has it. The result is a new array, or `out`, or a number for a reduction of everything.
    """
    e = cache.get(text) or expression(text)
    if values is None:
        frame = sys._getframe(1)
        local = frame.f_locals
        try:
            values = tuple([local[n] for n in e.names])
        except KeyError:
            values = tuple([find(n, local, frame.f_globals) for n in e.names])
    else:
        values = tuple([find(n, values, CONSTANTS) for n in e.names])
    return e(values, out)


def find(name, local, others):
    for names in (local, others, CONSTANTS):
        if name in names:
            return names[name]
    raise NameError("quern.eval: name %r is not defined" % name)
