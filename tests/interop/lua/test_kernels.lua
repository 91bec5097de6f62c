-- SPDX-License-Identifier: Apache-2.0
-- Kernels: from text, through the builder, from functions; launches, options, errors and their places.

local quern, tap = require "quern", require "tap"

local text = [[
kernel "axpy" {
  view x: f64[1] read_only;
  view y: f64[1];
  scalar a: f64;
  %0: f64 = param a;
  %1: i64 = lower y, 0;
  %2: i64 = extent y, 0;
  %3: i64 = add %1, %2;
  %4: i64 = parallel %1, %3;
  %5: f64 = load x[%4];
  %6: f64 = load y[%4];
  %7: f64 = mul %0, %5;
  %8: f64 = add %7, %6;
  store y[%4], %8;
}
]]
local axpy = quern.parse(text)
tap.equal(axpy:text(), text, "kernel text and back")
tap.equal({axpy:name(), #axpy:params(), axpy:params()[2].is_written}, {"axpy", 3, true}, "name and parameters")
local x, y = quern.array {1, 2, 3}, quern.array {10, 20, 30}
axpy(x, y, 2)
tap.equal(y:totable(), {12, 24, 36}, "a launch by position")
axpy {a = -1, x = x, y = y}
tap.equal(y:totable(), {11, 22, 33}, "... and by name")
axpy(x:part {3, 1, -1}, y, 1)
tap.equal(y:totable(), {14, 24, 34}, "... with a stride below 0")
tap.raises("ARGUMENT", "takes 3 arguments, not 2", "a missing argument", axpy, x, y)
tap.raises("ARGUMENT", "\"a\"", "... by name", axpy, {x = x, y = y})
tap.raises("ARGUMENT", "\"b\"", "an unknown name", axpy, {x = x, y = y, a = 1, b = 2})
tap.raises("ARGUMENT", "x: expected an array", "no array", axpy, 1, y, 2)
tap.raises("TYPE", "a: expected a number", "no number", axpy, x, y, "two")
tap.raises("DTYPE", "(x): view", "an array of another type", axpy, quern.zeros(3, "f32"), y, 1)
tap.raises("BOUNDS", "argument 0, dimension 0: index 3", "an array that is too short", axpy, quern.zeros(2), y, 1)
local bad = tap.raises("PARSE", "line 2", "a text with a mistake", quern.parse, "kernel \"k\" {\n  what;\n}\n")
tap.equal(bad.line, 2, "... has its line")

local options = axpy:options("engine=interp checks=none")
options(x, y, 0)
tap.ok(options:explain(x, y, 0):find("runs: *[^\n]*interpreter") ~= nil, "options as text")
tap.raises("ARGUMENT", "engine", "options that there are not", axpy.options, axpy, "engine=fast")
tap.ok(axpy:stage("kernel", x, y, 1):find("kernel \"axpy\"", 1, true) ~= nil, "a stage of the code")
tap.equal(axpy:statements()[8].word, "mul", "statements")

-- The builder.
local b = quern.builder("scale", {contract = true})
local px, py, pa = b:view("x", "f32", 2, "read_only"), b:view("y", "f32", 2), b:scalar("a", "f32")
local i, j = b:parallel(py)
py[{i, j}] = pa * px(j, i) + 0.5
local scale = b:finish()
local s, r = quern.array({{1, 2, 3}, {4, 5, 6}}, "f32"), quern.zeros({3, 2}, "f32")
scale(s, r, 2)
tap.equal(r:totable(), {{2.5, 8.5}, {4.5, 10.5}, {6.5, 12.5}}, "a kernel of the builder")
tap.ok(scale:text():find("contract") ~= nil and scale:text():find("fma") ~= nil, "... with contraction")

-- Functions as kernels.
local matmul = quern.kernel(function(b, c, a, d)
    local i, j = b:parallel(c)
    local k = b:reduction(a, 2)
    c[{i, j}] = b:sum(k, function() return a(i, k) * d(k, j) end)
end, {name = "matmul"})
local p, q, prod = quern.array {{1, 2}, {3, 4}}, quern.array {{5, 6}, {7, 8}}, quern.zeros({2, 2})
matmul(prod, p, q)
tap.equal(prod:totable(), {{19, 22}, {43, 50}}, "a function as a kernel")
matmul(prod, p:transpose(), q)
tap.equal(prod:totable(), {{26, 30}, {38, 44}}, "... with another layout")
tap.equal(#matmul:kernels(), 1, "... is one kernel")
matmul(quern.zeros({2, 2}, "f32"), p:copy("f32"), q:copy("f32"))
tap.equal({#matmul:kernels(), matmul:kernels()[1]:name()}, {2, "matmul"}, "... and another for other types")

-- Control flow, compared with loops of Lua.
local control = quern.kernel(function(b, y, x, n)
    local i = b:parallel(y, 1)
    local v = x[i]
    local power = b:loop(1, n, function(_, acc) return acc * v end, b:number(1, "f64"))
    local a, c = b:while_(100, function(a, c) return c:ne(0) end, function(a, c) return c, a % c end, b:number(84, "i64"), i)
    local big = b:if_(v:gt(2), function() return power, a end, function() return -power, c end)
    local first = b:if_rare(v:lt(0), function() return b:number(100, "f64") end, function() return big end)
    y[i] = first + quern.cast(a, "f64") / 1024
end)
local function gcd(m, n)
    while n ~= 0 do
        m, n = n, m % n
    end
    return m
end
local cy, cx, expected = quern.zeros(8), quern.array {-1, 0.5, 2, 3, 1, 4, 2.5, -3}, {}
control(cy, cx, 3)
for k, v in cx:each() do
    local big = v > 2 and v ^ 3 or -v ^ 3
    expected[k] = (v < 0 and 100 or big) + gcd(84, k) / 1024
end
tap.equal(cy:totable(), expected, "loop, while, if with several values")

local stepped = quern.kernel(function(b, y)
    local i = b:parallel(y)
    y[i] = b:loop(i, 10, 3, function(k, acc) return acc + k end, b:number(0, "i64"))
end)
local steps = quern.zeros(4, "i64")
stepped(steps)
tap.equal(steps:totable(), {1 + 4 + 7 + 10, 2 + 5 + 8, 3 + 6 + 9, 4 + 7 + 10}, "a loop with a step includes its last index")

local scan = quern.kernel(function(b, y)
    local i = b:sequential(y:first(1) + 1, y:last(1))
    local j = b:parallel(1, 1)
    y[i] = y[i] + y[i - 1] * j
end)
local sums = quern.array {1, 2, 3, 4}
scan(sums)
tap.equal(sums:totable(), {1, 3, 6, 10}, "a sequential dimension")

local counted = quern.kernel(function(b, count, x)
    local i = b:parallel(x)
    b:atomic("sum", count, x[i], 1)
end, {options = "executor=threads"})
local counts = quern.zeros(3, "i32")
counted(counts, quern.array({1, 3, 3, 2, 3}, "i64"))
tap.equal(counts:totable(), {1, 1, 3}, "atomic updates")

local looked = quern.kernel(function(b, y)
    local i = b:parallel(y)
    local t = b:table("f64", {10, 20, 30})
    y[i] = t[i]
end)
local found = quern.zeros(5)
looked(found)
tap.equal(found:totable(), {10, 20, 30, 30, 30}, "a table of constants counts from 1")

local random = quern.kernel(function(b, y)
    local i = b:parallel(y)
    y[i] = quern.uniform_f64(7, i)
end)
local u, again = quern.zeros(1000), quern.zeros(1000)
random(u)
random(again)
local mean = quern.eval("mean(u)", {u = u})
tap.ok(mean > 0.45 and mean < 0.55 and quern.eval("all(u == v)", {u = u, v = again}), "random numbers of a seed and an index")

local several = quern.kernel(function(b, y, x)
    local i = b:parallel(x)
    local sine, cosine = quern.sincos(x[i])
    local f, e = quern.frexp(x[i])
    y[{i, 1}] = sine * sine + cosine * cosine
    y[{i, 2}] = quern.ldexp(f, e)
    y[{i, 3}] = x[i]:floor():max(1):where(7, 8)
end)
local sy = quern.zeros({2, 3})
several(sy, quern.array {0.3, 12.5})
tap.ok(math.abs(sy(1, 1) - 1) < 1e-15 and sy(2, 2) == 12.5 and sy(1, 3) == 7, "functions with several results, and as methods")

-- Printing and assertions.
local lines, old_print = {}, print
local printing = quern.kernel(function(b, y)
    local i = b:parallel(y)
    b:print("at", i, y[i])
    y[i] = 0
end)
print = function(line) lines[#lines + 1] = line end
printing(quern.array {1.5, 2.5})
print = old_print
tap.equal(lines, {"at: 1, 1.5; iteration (1)", "at: 2, 2.5; iteration (2)"}, "what a kernel prints goes to print")
print = function() error("no printer") end
local still = pcall(printing, quern.array {1.5})
print = old_print
tap.ok(still, "... whose errors do not leave a launch")

local function line_of_call()
    return debug.getinfo(2, "l").currentline
end
local line
local asserting = quern.kernel(function(b, y)
    local i = b:parallel(y)
    line = line_of_call() + 1
    b:check(y[i]:ge(0), "not negative", y[i])
    y[i] = 1
end)
asserting(quern.array {1, 2})
local failed = tap.raises("ASSERT", "\"not negative\" failed: -2", "an assertion", asserting, quern.array {1, -2})
tap.equal({failed.line, failed.file and failed.file:match("[^/]*$")}, {line, "test_kernels.lua"}, "... has its place in Lua")
local here = debug.getinfo(1, "l").currentline + 1
local _, outside = pcall(function() asserting(quern.array {-1}) end)
tap.equal(outside.where:match(":(%d+): $"), tostring(here), "... and the place of the call")
tap.ok(("" .. outside):find("not negative") ~= nil, "errors are joined to texts")

local beyond = quern.kernel(function(b, y, x)
    local i = b:parallel(y)
    line = line_of_call() + 1
    y[i] = x[i + 1]
end)
local err = tap.raises("BOUNDS", "index 3 not in [1,3)", "an access out of bounds", beyond, quern.zeros(2), quern.zeros(2))
tap.equal(err.line, line, "... has its place in Lua")

-- Mistakes while a kernel is built.
local function build(f)
    return function()
        local b = quern.builder("wrong")
        f(b, b:view("x", "f64", 1), b:scalar("n", "i64"))
        return b:finish()
    end
end
tap.raises("TYPE", "compared by functions", "a comparison by an operator", build(function(b, x, n) return n < n end))
tap.raises("TYPE", "expected a value", "a text in arithmetic", build(function(b, x, n) return n + {} end))
tap.raises("TYPE", "no integer", "a fraction for an integer", build(function(b, x, n) return b:number(1.5, "i32") end))
tap.raises("BUILD", "another kernel", "values of two kernels", build(function(b, x, n)
    return n + quern.builder("other"):scalar("m", "i64")
end))
tap.raises("RANK", "", "too many indices", build(function(b, x, n) x[{b:parallel(x), 1}] = 0 end))
tap.raises("BUILD", "gives 1 values, not 2", "a branch that gives too little", build(function(b, x, n)
    b:if_(n:gt(0), function() return 1, 2 end, function() return 1 end)
end))
tap.raises("TYPE", "gives f64 for value 1, which is i64", "a loop that would cut its value", build(function(b, x, n)
    b:loop(1, n, function(i, s) return s + 0.5 end, 1)
end))
tap.raises("ARGUMENT", "trait", "an unknown trait", build(function(b) b:view("z", "f64", 1, "fast") end))
tap.raises("NOT_FOUND", "no op", "an unknown op", build(function(b, x, n) return n:op("frobnicate") end))
tap.raises("BUILD", "not finished", "a builder that is finished", function()
    local b = quern.builder("twice")
    local y = b:view("y", "f64", 1)
    y[b:parallel(y)] = 1
    b:finish()
    b:finish()
end)
tap.raises("ARGUMENT", "no option", "an unknown option of kernel", quern.kernel, function() end, {speed = 1})
local plain_error = {pcall(quern.kernel(function() error("mine", 0) end), quern.zeros(1))}
tap.equal(plain_error[2], "mine", "an error of the function itself passes through")
