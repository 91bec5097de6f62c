-- SPDX-License-Identifier: Apache-2.0
-- functions.lua: the functions of values: those of docs/math.md and docs/random.md by their names, rounding, bits, complex
-- numbers. They become methods of values (values.lua) and functions of the module.

local core = require "quern.core"
local V = require "quern.values"
core.ours(debug.getinfo(1, "S").source)

local F, value, cast_in, new, note, ids, fail = V.functions, V.value, V.cast_in, V.new, V.note, V.ids, V.fail
local builder_of, together, op_in, kind_of, float_for = V.builder_of, V.together, V.op_in, V.kind_of, V.float_for
local FLOATS, PARTS = V.FLOATS, V.PARTS

-- A function of docs/math.md by its name; integers become floats as numpy has it.
local function math_in(b, name, ...)
    local values, dtype, weak = together(b, ...)
    if kind_of(dtype) < 2 then
        dtype = float_for(dtype)
    end
    local narrow = V.NARROW[dtype]
    for i, v in ipairs(values) do
        values[i] = cast_in(b, v, narrow and "f32" or dtype)
    end
    note(b)
    local results = {b.core:math(name, ids(values))}
    b.core:check()
    for i, id in ipairs(results) do
        local r = new(b, id)
        if narrow and r.dtype == "f32" then
            r = cast_in(b, r, dtype)
        end
        r.weak = weak and r.dtype ~= "bool"
        results[i] = r
    end
    return (table.unpack or unpack)(results)
end

function F.math(x, name, ...)
    return math_in(builder_of(x, ...), name, x, ...)
end

-- ldexp and powi, whose second argument is an i32.
local function math_with_integer(name)
    return function(x, n)
        local b = builder_of(x, n)
        x = value(b, x)
        local dtype = kind_of(x.dtype) < 2 and float_for(x.dtype) or x.dtype
        note(b)
        local r = new(b, b.core:math(name, cast_in(b, x, dtype).id, cast_in(b, n, "i32").id))
        r.weak = x.weak
        return r
    end
end

local math_functions, random_functions = core.math_functions()
for name, arguments in pairs(math_functions) do
    if arguments == "TI" then
        F[name] = math_with_integer(name)
    else
        F[name] = function(...)
            return math_in(builder_of(...), name, ...)
        end
    end
end
for alias, name in pairs {arcsin = "asin", arccos = "acos", arctan = "atan", arctan2 = "atan2", arcsinh = "asinh",
                          arccosh = "acosh", arctanh = "atanh"} do
    F[alias] = F[name]
end

-- Random numbers of a seed and an index (docs/random.md); the last two arguments are these.
for name, arity in pairs(random_functions) do
    F[name] = function(...)
        local b, args = builder_of(...), {...}
        if #args ~= arity then
            fail("ARGUMENT", ("%s takes %d arguments, not %d"):format(name, arity, #args))
        end
        for i = 1, arity do
            args[i] = value(b, args[i])
        end
        if arity >= 2 then
            args[arity - 1] = cast_in(b, args[arity - 1], "u64")
            args[arity] = cast_in(b, args[arity], "i64")
        end
        if arity == 3 and args[1].weak then
            args[1] = cast_in(b, args[1], "u64")
        end
        note(b)
        return new(b, b.core:math(name, ids(args)))
    end
end

for _, name in ipairs {"floor", "ceil", "trunc", "round"} do
    F[name] = function(x)
        return kind_of(x.dtype) < 2 and x or op_in(builder_of(x), name, x.weak, x)
    end
end
F.rint = F.round

for _, name in ipairs {"popcount", "clz", "ctz"} do
    F[name] = function(x)
        return op_in(builder_of(x), name, false, x)
    end
end

function F.abs(x)
    if PARTS[x.dtype] then
        return math_in(builder_of(x), "abs", x)
    end
    return x.dtype == "bool" and x or op_in(builder_of(x), "abs", x.weak, x)
end
F.absolute = F.abs

function F.sqrt(x)
    if PARTS[x.dtype] then
        return math_in(builder_of(x), "sqrt", x)
    end
    local b = builder_of(x)
    return op_in(b, "sqrt", x.weak, cast_in(b, x, FLOATS[x.dtype] and x.dtype or float_for(x.dtype)))
end

-- x*y + z, rounded once.
function F.fma(x, y, z)
    local b = builder_of(x, y, z)
    local values, _, weak = together(b, x, y, z)
    return op_in(b, "fma", weak, values[1], values[2], values[3])
end

function F.real(z)
    local b = builder_of(z)
    return PARTS[z.dtype] and new(b, b.core:part(z.id, 0)) or z
end

function F.imag(z)
    local b = builder_of(z)
    return PARTS[z.dtype] and new(b, b.core:part(z.id, 1)) or cast_in(b, 0, z.dtype)
end

function F.complex(re, im)
    local b = builder_of(re, im)
    local values, dtype = together(b, re, im)
    if dtype ~= "f32" then
        dtype = "f64"
    end
    note(b)
    return new(b, b.core:complex(cast_in(b, values[1], dtype).id, cast_in(b, values[2], dtype).id))
end

function F.conj(z)
    return PARTS[z.dtype] and F.complex(F.real(z), F.neg(F.imag(z))) or z
end

-- Gives a value a name for messages. Returns the value.
function F.named(x, name)
    builder_of(x).core:set_name(x.id, name)
    return x
end

return F
