-- SPDX-License-Identifier: Apache-2.0
-- values.lua: values of a kernel under construction, with Lua's operators and numpy's rules for their types; functions.lua has
-- the functions of values. A number of Lua
-- is weak: it takes the type of what it meets, unless its kind (integer, float, complex) is above that.

local core = require "quern.core"
local ours = core.ours(debug.getinfo(1, "S").source)

local N = core.numbers()
-- Bits of the dtypes of a kind by name, dtypes of the parts of complex numbers, and names by their numbers.
local SIGNED, UNSIGNED, FLOATS, PARTS, NAMES = {}, {}, {}, {}, {}
local NARROW = {} -- floats that are computed in f32
for name, row in pairs(core.dtypes()) do
    local of = ({S = SIGNED, U = UNSIGNED, F = FLOATS})[row.kind]
    if of then
        of[name] = row.bits
    end
    PARTS[name] = row.kind == "C" and row.part or nil
    NARROW[name] = row.kind == "F" and row.bits < 32 or nil
    NAMES[row.number] = name
end

local M = {N = N, NAMES = NAMES, SIGNED = SIGNED, UNSIGNED = UNSIGNED, FLOATS = FLOATS, PARTS = PARTS, NARROW = NARROW, ours = ours}
local F = {} -- functions of values, which are their methods too
M.functions = F

local Value = {}
M.Value = Value

local function is_value(x)
    return getmetatable(x) == Value
end
M.is_value = is_value

local function fail(status, message)
    core.fail("QN_ERR_" .. status, message)
end
M.fail = fail

-- What is built now belongs to the line outside this package that asked for it. An expression has its own places.
local function note(b)
    local level = 2
    while not b.text do
        local at = debug.getinfo(level, "Sl")
        if not at then
            return
        end
        if at.currentline > 0 and not ours[at.source] then
            b.core:at(at.short_src, at.currentline)
            return
        end
        level = level + 1
    end
end
M.note = note

-- ------------------------------------------------------------------------------------------------ types

-- 0 bool, 1 integer, 2 float, 3 complex: the order in which a weak number gives way.
local function kind_of(dtype)
    return dtype == "bool" and 0 or PARTS[dtype] and 3 or FLOATS[dtype] and 2 or 1
end
M.kind_of = kind_of

-- The float that holds all values of a type, as numpy has it.
local function float_for(dtype)
    if dtype == "bool" or dtype == "i8" or dtype == "u8" then
        return "f16"
    elseif dtype == "i16" or dtype == "u16" then
        return "f32"
    end
    return kind_of(dtype) == 1 and "f64" or dtype
end
M.float_for = float_for

-- The type that values of two types have together, as numpy has it.
local function promote(a, b)
    if a == b or b == "bool" then
        return a
    elseif a == "bool" then
        return b
    elseif PARTS[a] or PARTS[b] then
        return promote(PARTS[a] or a, PARTS[b] or b) == "f64" and "c128" or "c64"
    elseif FLOATS[a] or FLOATS[b] then
        a, b = float_for(a), float_for(b)
        if a == b then
            return a
        elseif FLOATS[a] == FLOATS[b] then -- neither of two halves holds all values of the other
            return "f32"
        end
        return FLOATS[a] > FLOATS[b] and a or b
    end
    local of = SIGNED[a] and SIGNED or UNSIGNED
    if of[b] then
        return of[a] > of[b] and a or b
    end
    local signed, unsigned = a, b
    if UNSIGNED[a] then
        signed, unsigned = b, a
    end
    if SIGNED[signed] > UNSIGNED[unsigned] then
        return signed
    end
    return ({[8] = "i16", [16] = "i32", [32] = "i64", [64] = "f64"})[UNSIGNED[unsigned]]
end
M.promote = promote

local function is_integer(x)
    if math.type then
        return math.type(x) == "integer"
    end
    return x == math.floor(x) and math.abs(x) <= 2 ^ 53
end

-- ------------------------------------------------------------------------------------------------ values

local function new(b, id, dtype, weak)
    dtype = dtype or b.core:type_of(id)
    if id == 0 then
        b.core:check()
    end
    return setmetatable({id = id, builder = b, dtype = dtype, weak = weak or false}, Value)
end
M.new = new

local function constant(b, x, dtype)
    if kind_of(dtype) == 1 and type(x) == "number" and not is_integer(x) then
        fail("TYPE", ("the number %s is no integer, as %s needs"):format(x, dtype))
    end
    return new(b, b.core:constant(dtype, x), dtype)
end
M.constant = constant

-- A value for a number, a boolean or a complex number {re, im}; values of the builder as they are.
local function value(b, x)
    if is_value(x) then
        if x.builder ~= b then
            fail("BUILD", "a value belongs to another kernel than the one that it is used in")
        end
        return x
    end
    note(b)
    local v
    if type(x) == "boolean" then
        return constant(b, x, "bool")
    elseif type(x) == "number" then
        v = constant(b, x, is_integer(x) and "i64" or "f64")
    elseif type(x) == "table" and type(x[1]) == "number" and type(x[2]) == "number" then
        v = constant(b, x, "c128")
    else
        fail("TYPE", "expected a value of a kernel or a number, not a " .. type(x))
    end
    v.weak = true
    return v
end
M.value = value

-- The builder of the values among some arguments.
local function builder_of(...)
    for i = 1, select("#", ...) do
        local x = select(i, ...)
        if is_value(x) then
            return x.builder
        end
    end
    fail("TYPE", "none of the arguments is a value of a kernel")
end
M.builder_of = builder_of

local function cast_in(b, x, dtype)
    x = value(b, x)
    if x.dtype == dtype then
        return x.weak and new(b, x.id, dtype) or x
    end
    return new(b, b.core:cast(dtype, x.id), dtype)
end
M.cast_in = cast_in

function F.cast(x, dtype)
    return cast_in(builder_of(x), x, dtype)
end
F.astype = F.cast

function F.bitcast(x, dtype)
    local b = builder_of(x)
    return new(b, b.core:bitcast(dtype, x.id), dtype)
end

local function raise_kind(dtype, weak)
    if kind_of(weak) <= kind_of(dtype) then
        return dtype
    elseif kind_of(weak) == 3 then
        return (dtype == "f32" or NARROW[dtype]) and "c64" or "c128"
    end
    return weak
end

-- The type that values have together; weak ones count where their kind is above that of the others.
local function common_dtype(values)
    local strong, weak
    for _, v in ipairs(values) do
        if not v.weak then
            strong = strong and promote(strong, v.dtype) or v.dtype
        end
    end
    for _, v in ipairs(values) do
        if v.weak then
            weak = weak and promote(weak, v.dtype) or v.dtype
        end
    end
    if strong and weak then
        return raise_kind(strong, weak)
    end
    return strong or weak
end

-- Values in their common type, this type, and whether all of them are weak.
local function together(b, ...)
    local values, weak = {}, true
    for i = 1, select("#", ...) do
        values[i] = value(b, (select(i, ...)))
        weak = weak and values[i].weak
    end
    local dtype = common_dtype(values)
    for i, v in ipairs(values) do
        if v.dtype ~= dtype then
            values[i] = new(b, b.core:cast(dtype, v.id), dtype)
        end
    end
    return values, dtype, weak
end
M.together = together

local function ids(values)
    local list = {}
    for i, v in ipairs(values) do
        list[i] = v.id
    end
    return (table.unpack or unpack)(list)
end
M.ids = ids

local function op_in(b, name, weak, ...)
    note(b)
    return new(b, b.core:op(name, ids({...})), nil, weak)
end
M.op_in = op_in

-- An op of the table by its keyword, on values of the types that it takes.
function F.op(x, name, ...)
    return op_in(builder_of(x), name, x.weak, x, ...)
end

-- ------------------------------------------------------------------------------------------------ operators

local ON_BOOL = {add = "or", mul = "and", min = "and", max = "or"}

local function arithmetic(name)
    return function(x, y)
        local b = builder_of(x, y)
        local values, dtype, weak = together(b, x, y)
        return op_in(b, dtype == "bool" and ON_BOOL[name] or name, weak, values[1], values[2])
    end
end

local function compare(name)
    return function(x, y)
        local b = builder_of(x, y)
        local values, dtype = together(b, x, y)
        if dtype == "bool" and name ~= "eq" and name ~= "ne" then
            values = {cast_in(b, values[1], "i8"), cast_in(b, values[2], "i8")}
        end
        return op_in(b, name, false, values[1], values[2])
    end
end

for _, name in ipairs {"add", "sub", "mul", "min", "max", "copysign", "shl", "shr"} do
    F[name] = arithmetic(name)
end
for name, op in pairs {band = "and", bor = "or", bxor = "xor"} do
    F[name] = arithmetic(op)
end
for _, name in ipairs {"lt", "le", "gt", "ge", "eq", "ne"} do
    F[name] = compare(name)
end
F.minimum, F.maximum = F.min, F.max

function F.div(x, y)
    local b = builder_of(x, y)
    local values, dtype, weak = together(b, x, y)
    if kind_of(dtype) < 2 then
        values = {cast_in(b, values[1], "f64"), cast_in(b, values[2], "f64")}
    end
    return op_in(b, "div", weak, values[1], values[2])
end

local function truth_in(b, x)
    x = value(b, x)
    return x.dtype == "bool" and x or op_in(b, "ne", false, x, cast_in(b, 0, x.dtype))
end
M.truth_in = truth_in

-- x where the condition holds, else y; both are computed.
function F.where(condition, x, y)
    local b = builder_of(condition, x, y)
    local values, _, weak = together(b, x, y)
    return op_in(b, "select", weak, truth_in(b, condition), values[1], values[2])
end
F.select = F.where

function F.land(x, y)
    local b = builder_of(x, y)
    return op_in(b, "and", false, truth_in(b, x), truth_in(b, y))
end

function F.lor(x, y)
    local b = builder_of(x, y)
    return op_in(b, "or", false, truth_in(b, x), truth_in(b, y))
end

function F.lnot(x)
    local b = builder_of(x)
    return op_in(b, "not", false, truth_in(b, x))
end

-- Numbers together, whose type is not bool.
local function numbers_together(b, x, y)
    local values, dtype, weak = together(b, x, y)
    if dtype == "bool" then
        return cast_in(b, values[1], "i8"), cast_in(b, values[2], "i8"), "i8", weak
    end
    return values[1], values[2], dtype, weak
end

-- Whether a remainder, which has the sign of the dividend, is to have that of the divisor instead.
local function is_wrong(b, rest, y, zero)
    local signs = op_in(b, "ne", false, op_in(b, "lt", false, rest, zero), op_in(b, "lt", false, y, zero))
    return op_in(b, "and", false, op_in(b, "ne", false, rest, zero), signs)
end

-- x // y, rounded down, in the steps of numpy; 0 for a division of integers by 0.
function F.idiv(x, y)
    local b = builder_of(x, y)
    local dtype, weak, r
    x, y, dtype, weak = numbers_together(b, x, y)
    local function op(name, ...)
        return op_in(b, name, false, ...)
    end
    if FLOATS[dtype] then
        local zero, one, rest = constant(b, 0, dtype), constant(b, 1, dtype), F.fmod(x, y)
        local q = op("div", op("sub", x, rest), y)
        q = op("select", is_wrong(b, rest, y, zero), op("sub", q, one), q)
        local low = op("floor", q)
        low = op("select", op("gt", op("sub", q, low), constant(b, 0.5, dtype)), op("add", low, one), low)
        r = op("select", op("ne", q, zero), low, op("copysign", zero, op("div", x, y)))
        r = op("select", op("eq", y, zero), op("div", x, y), r)
    elseif SIGNED[dtype] then
        local zero = constant(b, 0, dtype)
        local q, rest = op("div", x, y), op("rem", x, y)
        local wrong = op("and", is_wrong(b, rest, y, zero), op("ne", y, zero))
        r = op("select", wrong, op("sub", q, constant(b, 1, dtype)), q)
    else
        r = op("div", x, y)
    end
    r.weak = weak
    return r
end

-- x % y with the sign of y, as Lua and numpy have it; 0 for a remainder of integers by 0.
function F.mod(x, y)
    local b = builder_of(x, y)
    local dtype, weak, r
    x, y, dtype, weak = numbers_together(b, x, y)
    local function op(name, ...)
        return op_in(b, name, false, ...)
    end
    local zero = constant(b, 0, dtype)
    if FLOATS[dtype] then
        local rest = F.fmod(x, y)
        r = op("select", is_wrong(b, rest, y, zero), op("add", rest, y), rest)
        r = op("select", op("eq", rest, zero), op("copysign", zero, y), r)
    else
        local rest = op("rem", x, y)
        r = rest
        if SIGNED[dtype] then
            r = op("select", is_wrong(b, rest, y, zero), op("add", rest, y), rest)
        end
        r = op("select", op("eq", y, zero), zero, r)
    end
    r.weak = weak
    return r
end

-- x ^ y; a small integer power is a product.
function F.pow(x, y)
    local b = builder_of(x, y)
    if type(y) == "number" and is_integer(y) and y >= 0 and y <= 64 then
        x = value(b, x)
        x = x.dtype == "bool" and cast_in(b, x, "i8") or x
        if y == 0 then
            return cast_in(b, 1, x.dtype)
        end
        local result, base = nil, x
        while y > 0 do
            if y % 2 == 1 then
                result = result and op_in(b, "mul", x.weak, result, base) or base
            end
            y = math.floor(y / 2)
            if y > 0 then
                base = op_in(b, "mul", x.weak, base, base)
            end
        end
        return result
    end
    local values, dtype, weak = together(b, x, y)
    if kind_of(dtype) < 2 then
        local r = F.math(cast_in(b, values[1], "f64"), "pow", cast_in(b, values[2], "f64"))
        return cast_in(b, r, dtype == "bool" and "i8" or dtype)
    end
    local r = F.math(values[1], "pow", values[2])
    r.weak = weak
    return r
end

function F.neg(x)
    return op_in(builder_of(x), "neg", x.weak, x)
end

function F.bnot(x)
    return op_in(builder_of(x), "not", x.weak, x)
end

-- ------------------------------------------------------------------------------------------------ the metatable

local function no_comparison()
    fail("TYPE", "values of a kernel are compared by functions: quern.lt(x, y) or x:lt(y), and le, gt, ge, eq, ne")
end

Value.__index = F
Value.__add, Value.__sub, Value.__mul, Value.__div = F.add, F.sub, F.mul, F.div
Value.__mod, Value.__pow, Value.__unm, Value.__idiv = F.mod, F.pow, F.neg, F.idiv
Value.__band, Value.__bor, Value.__bxor, Value.__bnot = F.band, F.bor, F.bxor, F.bnot
Value.__shl, Value.__shr = F.shl, F.shr
Value.__lt, Value.__le, Value.__eq = no_comparison, no_comparison, no_comparison
Value.__tostring = function(x)
    return "quern.Value(" .. x.dtype .. ")"
end

return M
