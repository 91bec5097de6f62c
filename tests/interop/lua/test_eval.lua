-- SPDX-License-Identifier: Apache-2.0
-- Expressions: operators and functions against loops of Lua, types as numpy has them, broadcasting, reductions, mistakes.

local quern, tap = require "quern", require "tap"

local x = quern.array {{1.5, -2, 3}, {4, 0.25, -6}}
local b = quern.array {2, 3, -5}

-- value(i, j) of the expression's result for each element.
local function matches(text, operands, expected)
    local r, same = quern.eval(text, operands), true
    for i = 1, 2 do
        for j = 1, 3 do
            local e = expected(x(i, j), b(j))
            same = same and (r(i, j) == e or (r(i, j) ~= r(i, j) and e ~= e))
        end
    end
    tap.ok(same, text)
end
local both = {x = x, b = b, a = 2.5}
matches("a*x + b", both, function(u, v) return 2.5 * u + v end)
matches("x - b*2 - 1", both, function(u, v) return u - v * 2 - 1 end)
matches("-x^2", both, function(u) return -(u ^ 2) end)
matches("2^-1 * x", both, function(u) return u / 2 end)
matches("x ^ 3 ^ 0", both, function(u) return u end)
matches("x / b", both, function(u, v) return u / v end)
matches("x % b", both, function(u, v) return u - math.floor(u / v) * v end)
matches("x // b", both, function(u, v) return math.floor(u / v) end)
matches("(x + b) * (x - b)", both, function(u, v) return (u + v) * (u - v) end)
matches("x < b", both, function(u, v) return u < v end)
matches("x <= b and not (b == 3 or x ~= x)", both, function(u, v) return u <= v and not (v == 3 or u ~= u) end)
matches("x > 0 and b > 0", both, function(u, v) return u > 0 and v > 0 end)
matches("where(x > b, x, b)", both, function(u, v) return u > v and u or v end)
matches("minimum(x, b) + maximum(x, 1)", both, function(u, v) return math.min(u, v) + math.max(u, 1) end)
matches("abs(x) + floor(x) - ceil(x)", both, function(u) return math.abs(u) + math.floor(u) - math.ceil(u) end)
matches("sqrt(abs(x))", both, function(u) return math.sqrt(math.abs(u)) end)
matches("0x10 + 1e1 + .5 + x", both, function(u) return 26.5 + u end)
matches("x * inf", both, function(u) return u * math.huge end)
local far = 0
for i = 1, 2 do
    for j = 1, 3 do
        local u, v = x(i, j), b(j)
        far = math.max(far, math.abs(quern.eval("sin(x) + exp(b / 4) * cos(pi*x)", both)(i, j) -
            (math.sin(u) + math.exp(v / 4) * math.cos(math.pi * u))))
    end
end
tap.ok(far < 1e-14, "sin, exp, cos, pi")

-- Integers: shifts and bits, and division as Lua has it.
local n, m = quern.array({7, -7, 8, -8, 0}, "i32"), quern.array({3, 3, -3, -3, 0}, "i32")
local quotients, rests = quern.eval("n // m", {n = n, m = m}), quern.eval("n % m", {n = n, m = m})
tap.equal({quotients:dtype(), quotients:totable()}, {"i32", {2, -3, -3, 2, 0}}, "// of integers")
tap.equal(rests:totable(), {1, 2, -1, -2, 0}, "% of integers")
tap.equal(quern.eval("(n & 3) | 4 ~ 1", {n = n}):totable(), {7, 5, 5, 5, 5}, "& | ~ of integers")
tap.equal(quern.eval("n << 2 >> 1", {n = n}):totable(), {14, -14, 16, -16, 0}, "shifts")
tap.equal(quern.eval("~n", {n = n}):totable(), {-8, 6, -9, 7, -1}, "complement")
tap.equal(quern.eval("n / 2", {n = n}):dtype(), "f64", "/ of integers")

-- Types as numpy has them.
for pair, expected in pairs {["i8 u8"] = "i16", ["i64 u64"] = "f64", ["i32 f32"] = "f64", ["i16 f32"] = "f32", ["u8 f16"] = "f16",
                             ["bool i8"] = "i8", ["f32 c64"] = "c64", ["f64 c64"] = "c128", ["i32 c64"] = "c128",
                             ["u16 f16"] = "f32", ["bf16 f16"] = "f32", ["u32 i16"] = "i64", ["f32 f64"] = "f64"} do
    local first, second = pair:match("(%w+) (%w+)")
    tap.equal({quern.promote(first, second), quern.promote(second, first)}, {expected, expected}, pair)
end
local function dtype_of(text, dtype, a)
    return quern.eval(text, {v = quern.zeros(2, dtype), a = a}):dtype()
end
tap.equal({dtype_of("v + 1", "i8"), dtype_of("v + 1.0", "i8"), dtype_of("v * 0.5", "f32"), dtype_of("v * a", "f32", 0.5),
           dtype_of("v + true", "i8"), dtype_of("v * 2", "bool")}, {"i8", "f64", "f32", "f32", "i8", "i64"}, "numbers give way")
tap.equal(dtype_of("v > 1", "f32"), "bool", "comparisons")
tap.equal(dtype_of("astype(v, i16)", "f32"), "i16", "astype")
tap.equal(dtype_of("sin(v)", "i16"), "f32", "functions of integers")
tap.equal(quern.eval("z * z", {z = quern.array({{1, 2}}, "c128")})[1], {-3, 4}, "complex numbers")
tap.equal(quern.eval("v * z", {v = quern.array {2}, z = {1, 2}})[1], {2, 4}, "a complex number as operand")
tap.equal(quern.eval("real(conj(z)) + imag(conj(z))", {z = quern.array({{1, 2}}, "c64")})[1], -1, "parts of complex numbers")

-- Broadcasting.
local column = quern.array({{10}, {20}})
tap.equal(quern.eval("c + r", {c = column, r = quern.array {1, 2, 3}}):totable(), {{11, 12, 13}, {21, 22, 23}}, "broadcasting")
tap.equal(quern.eval("x + t", {x = x, t = x:part({2, 1, -1}, {3, 1, -1})}):totable(), {{-4.5, -1.75, 7}, {7, -1.75, -4.5}},
          "operands with other strides")
tap.equal(quern.eval("x + 1", {x = quern.zeros({2, 2}, "f64", {lower = {0, 5}})}):lower(), {1, 1}, "lower bounds do not matter")
tap.equal(quern.eval("a + 1", {a = quern.zeros({3, 0})}):shape(), {3, 0}, "empty operands")
tap.equal(quern.eval("a * 2", {a = 4}), 8, "numbers alone")
tap.raises("EXTENT", "extents 3 and 2", "extents that differ", quern.eval, "a + b", {a = quern.zeros(3), b = quern.zeros(2)})

-- Reductions.
local whole = quern.array {{1, 2, 3}, {4, 5, 6}}
local function reduced(text, v)
    local r = quern.eval(text, {v = v or whole})
    return type(r) == "userdata" and r:totable() or r
end
tap.equal({reduced("sum(v)"), reduced("prod(v)"), reduced("min(v)"), reduced("max(v * 2)"), reduced("mean(v)")},
          {21, 720, 1, 12, 3.5}, "reductions of all elements")
tap.equal({reduced("sum(v, 1)"), reduced("sum(v, 2)"), reduced("max(v, -1)"), reduced("mean(v, -2)")},
          {{5, 7, 9}, {6, 15}, {3, 6}, {2.5, 3.5, 4.5}}, "... of one dimension")
tap.equal(reduced("sum(v, 1, 2)"), 21, "... of several")
tap.equal({reduced("any(v > 5)"), reduced("all(v > 5)"), reduced("sum(v > 2)")}, {true, false, 4}, "... of comparisons")
tap.equal(quern.eval("sum(v, 1)", {v = quern.zeros({2, 2}, "i8")}):dtype(), "i64", "... widen as numpy does")
tap.equal(reduced("sum(v)", whole:transpose()), 21, "... of another layout")
tap.equal(reduced("max(v > 5)"), true, "... of bool by max")
tap.equal(reduced("mean(v, 1)", quern.array({{1, 2}, {4, 4}}, "i32")), {2.5, 3}, "mean of integers")
tap.raises("RANK", "dimension 3 of 2", "a dimension that there is not", quern.eval, "sum(v, 3)", {v = whole})
tap.raises("PARSE", "outermost", "a reduction inside", quern.eval, "sum(v) + 1", {v = whole})

-- A given result.
local out = quern.zeros({2, 3})
tap.ok(quern.eval("v + 1", {v = whole}, out) == out and out(2, 3) == 7, "a given array for the result")
quern.eval("v * 2", {v = out}, out)
tap.equal(out(1, 1), 4, "... which may be an operand")
tap.raises("OVERLAP", "", "... but not overlap one otherwise", quern.eval, "v + w", {v = out:reverse(1), w = whole}, out)
tap.raises("EXTENT", "another shape", "... of another shape", quern.eval, "v + 1", {v = whole}, quern.zeros(3))
tap.equal((whole + 1 - whole * 2 / 4).dtype and (whole + 1)(2, 3), 7, "operators of arrays")
tap.equal({(2 ^ whole)(1, 3), (-whole)(2, 2), (whole % 4)(2, 2)}, {8, -5, 1}, "... with numbers")

-- A parsed expression.
local e = quern.expression("u*v + w")
tap.equal(e.names, {"u", "v", "w"}, "names of operands")
tap.equal(e {u = 2, v = whole, w = 1}:totable(), {{3, 5, 7}, {9, 11, 13}}, "a call by names")
tap.equal(e:value({3, whole, 0})(1, 2), 6, "... and by position")
e {u = 5, v = whole, w = 2}
tap.equal(#e:kernels(), 2, "kernels are made for types, not for numbers")

-- Mistakes and their places.
for text, part in pairs {["a +"] = "ends too early", ["a b"] = "\"b\" stands where an operator", ["(a"] = "expected \")\"",
                         ["a ? b"] = "\"?\" is no part", ["foo(a)"] = "no function foo", ["* a"] = "\"*\" stands where a value",
                         ["sin()"] = "takes arguments", [""] = "ends too early", ["f(a"] = "no function f"} do
    local ok, err = pcall(quern.eval, text, {a = whole, b = whole})
    tap.ok(not ok and tostring(err):find(part == "no function f" and "" or part, 1, true) ~= nil, "mistake: " .. text)
end
tap.raises("NOT_FOUND", "\"c\" is not given", "an operand that is not given", quern.eval, "a + c", {a = 1})
tap.raises("PARSE", "at <a + foo(b)>:1:5", "the column of a mistake", quern.eval, "a + foo(b)", {a = 1, b = 2})
tap.raises("PARSE", "nested", "too deep", quern.eval, ("("):rep(5000) .. "a" .. (")"):rep(5000), {a = 1})
local err = tap.raises("TYPE", "<z < z>", "an operation that there is not", quern.eval, "z < z",
                       {z = quern.array({{1, 2}}, "c128")})
tap.equal(err.line, 1, "... has its place in the expression")
