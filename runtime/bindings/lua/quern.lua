-- SPDX-License-Identifier: Apache-2.0
-- Quern, a JIT for array kernels, in Lua (docs/lua.md). Three levels:
--
--     quern.eval("a*x + sin(b)", {a = 2, x = x, b = b})    an expression over arrays
--     quern.kernel(function(b, y, x) ... end)              a function over indices
--     quern.parse(text), quern.builder(name)               kernel text and the builder

local core = require "quern.core"
local V = require "quern.values"
require "quern.functions"
local builder = require "quern.builder"
local expression = require "quern.expression"
core.ours(debug.getinfo(1, "S").source)

local quern = {
    version = core.version,
    parse = core.parse,
    counters = core.counters,
    Array = core.Array,
    Kernel = core.Kernel,
    Error = core.Error,
    builder = builder.new,
    kernel = builder.kernel,
    eval = expression.eval,
    expression = expression.expression,
    promote = V.promote,
}

-- ------------------------------------------------------------------------------------------------ arrays

local SPACES = {host = "HOST", cuda = "CUDA", ["cuda-managed"] = "CUDA_MANAGED", ["cuda-pinned"] = "CUDA_PINNED"}

local function space_number(name)
    local word = SPACES[name or "host"]
    if not word then
        V.fail("SPACE", "no memory space has the name " .. tostring(name))
    end
    return V.N["QN_SPACE_" .. word]
end

-- Lower bounds and memory space of options: a number, a table of numbers, or {lower =, space =}.
local function options_of(options)
    if type(options) == "table" and options[1] == nil then
        return options.lower, space_number(options.space)
    end
    return options, space_number()
end

local function new_array(extents, dtype, options, is_raw)
    local lower, space = options_of(options)
    return core.new_array(extents, dtype, lower, space, is_raw)
end

-- A new array of zeros; extents is an integer or a table of them, dtype "f64" if it is not given.
function quern.zeros(extents, dtype, options)
    return new_array(extents, dtype, options, false)
end

-- A new array whose elements are not set.
function quern.empty(extents, dtype, options)
    return new_array(extents, dtype, options, true)
end

-- A new array with the elements of nested tables: "bool" if they are booleans, else "f64", or of the given dtype.
function quern.array(elements, dtype, options)
    return core.array(elements, dtype, (options_of(options)))
end

-- The address of a pointer or an array of LuaJIT's ffi.
local function address_of(memory)
    local ffi = require "ffi"
    return tonumber(ffi.cast("intptr_t", ffi.cast("void *", memory)))
end

-- An array in memory of others: a string, which is read-only, a light userdata, an address, or a pointer or array of LuaJIT's
-- ffi. options: strides in elements, lower, read_only, and base, which is kept as long as the array.
function quern.wrap(memory, extents, dtype, options)
    options = options or {}
    local base = options.base
    if type(memory) == "cdata" then
        base = base or memory
        memory = address_of(memory)
    end
    return core.wrap(memory, extents, dtype, options.strides, options.lower, base or false, options.read_only)
end

-- The numbers first, first + step, ... up to last.
local fill_range = quern.kernel(function(b, y, first, step)
    local i = b:parallel(y, 1)
    y[i] = first + (i - y:first(1)) * step
end, {name = "range"})

function quern.range(first, last, step, dtype)
    step = step or 1
    local y = quern.empty(math.max(0, math.floor((last - first) / step) + 1), dtype)
    fill_range(y, first, step)
    return y
end

-- A copy in another memory space: array:to("cuda").
function core.Array.to(a, space)
    return a:copy(nil, space_number(space))
end

local function each_element(a, i)
    i = i + 1
    if i <= a:lower()[1] + #a - 1 then
        return i, a[i]
    end
end

-- for i, x in a:each() do ... end: indices of the first dimension, with elements or rows.
function core.Array.each(a)
    return each_element, a, a:lower()[1] - 1
end

-- Operators of arrays are expressions.
for event, text in pairs {add = "a + b", sub = "a - b", mul = "a * b", div = "a / b", mod = "a % b", pow = "a ^ b",
                          idiv = "a // b", band = "a & b", bor = "a | b", bxor = "a ~ b"} do
    local e = quern.expression(text)
    core.Array["__" .. event] = function(a, b)
        return e:value({a, b})
    end
end
for event, text in pairs {unm = "-a", bnot = "~a"} do
    local e = quern.expression(text)
    core.Array["__" .. event] = function(a)
        return e:value({a})
    end
end

-- ------------------------------------------------------------------------------------------------ functions of values

for name, f in pairs(V.functions) do
    quern[name] = quern[name] or f
end

return quern
