-- SPDX-License-Identifier: Apache-2.0
-- Arrays: elements, element types, parts and other layouts of the same memory, copies, memory of others.

local quern, tap = require "quern", require "tap"

local x = quern.array {{1, 2, 3}, {4, 5, 6}}
tap.equal(x:shape(), {2, 3}, "extents of nested tables")
tap.equal({x:dtype(), x:space(), x:rank(), x:size(), #x}, {"f64", "host", 2, 6, 2}, "fields")
tap.equal({x(2, 3), x[{1, 2}], x[2][1], x:get(1, 1)}, {6, 2, 4, 1}, "elements by each way of indexing")
tap.equal(x:totable(), {{1, 2, 3}, {4, 5, 6}}, "... and as tables")
x[{1, 1}] = 10
x[2][2] = 50
x:set(1, 3, 30)
tap.equal(x:totable(), {{10, 2, 30}, {4, 50, 6}}, "elements are set by each of them")
x[1] = 7
x[2] = quern.array {1, 2, 3}
tap.equal(x:totable(), {{7, 7, 7}, {1, 2, 3}}, "rows are filled with a number and from an array")
tap.equal(quern.zeros({2, 0}):shape(), {2, 0}, "an empty array")
tap.equal(quern.array({}):totable(), {}, "... of an empty table")
tap.equal(quern.zeros({}):get(), 0, "an array without dimensions")

-- Bounds and forms.
tap.raises("BOUNDS", "index 4", "an index beyond", x.get, x, 1, 4)
tap.raises("BOUNDS", "index 0", "an index below", x.get, x, 0, 1)
tap.raises("RANK", "", "too few indices", x.get, x, 1)
tap.raises("ARGUMENT", "no integer", "a fraction as index", x.get, x, 1.5, 1)
tap.raises("ARGUMENT", "expected an integer", "no number as index", x.get, x, {}, 1)
tap.raises("EXTENT", "dimension 2", "rows of different lengths", quern.array, {{1, 2}, {3}})
tap.raises("TYPE", "expected a number", "a text as element", quern.array, {"1"})
tap.raises("EXTENT", "extent", "a negative extent", quern.zeros, {2, -1})
tap.raises("DTYPE", "\"f65\"", "an unknown element type", quern.zeros, 3, "f65")
tap.raises("ARGUMENT", "no field \"shape\"", "a field cannot be assigned to", function() x.shape = 1 end)
tap.raises("ARGUMENT", "expected an array", "a method of something else", x.get, io.stdout)

-- Element types.
local values = {bool = {true, false}, f16 = {1.5, -2}, bf16 = {1.5, -2}, f32 = {0.5, -1e30}, c64 = {{1, 2}, {0, -0.5}},
                c128 = {{0.1, 2}, {-3, 0}}, i8 = {127, -128}, u8 = {255, 0}, i16 = {32767, -32768}, u16 = {65535, 1},
                i32 = {2 ^ 31 - 1, -2 ^ 31}, u32 = {2 ^ 32 - 1, 0}, i64 = {2 ^ 53, -2 ^ 53}, u64 = {2 ^ 53, 1}, f64 = {0.1, -1e300}}
for dtype, list in pairs(values) do
    local a = quern.array(list, dtype)
    local expected = dtype == "f32" and {0.5, a[2]} or list
    tap.equal(a:totable(), expected, "elements of " .. dtype)
end
tap.ok(math.abs(quern.array({-1e30}, "f32")[1] / -1e30 - 1) < 1e-7, "an f32 is rounded")
tap.equal(quern.array({true, false}):dtype(), "bool", "booleans become bool without a type")
for dtype, bad in pairs {i8 = 128, u8 = -1, i16 = 40000, u16 = 65536, i32 = 2 ^ 31, u32 = -1, i64 = 0.5} do
    tap.raises("ARGUMENT", "", "what does not fit " .. dtype, quern.array, {bad}, dtype)
end
tap.raises("TYPE", "boolean", "a number as bool", quern.array, {1}, "bool")
if math.type then
    local big = quern.array({math.maxinteger, math.mininteger}, "i64")
    tap.equal(big:totable(), {math.maxinteger, math.mininteger}, "i64 up to its ends")
    tap.equal(quern.array({-1}, "u64")[1], -1, "u64 has the bits of integers")
    tap.equal({math.type(quern.zeros(1, "i32")[1]), math.type(quern.zeros(1)[1])}, {"integer", "float"}, "kinds of numbers")
else
    local big = quern.wrap(("\255"):rep(8), 1, "u64")
    tap.raises("OVERFLOW", "2^53", "an integer that is no number of LuaJIT", big.get, big, 1)
end

-- Parts, which share their memory.
local m = quern.array {{11, 12, 13, 14}, {21, 22, 23, 24}, {31, 32, 33, 34}}
tap.equal(m:part(2):totable(), {21, 22, 23, 24}, "a row")
tap.equal(m:part(nil, 3):totable(), {13, 23, 33}, "a column")
tap.equal(m:part({2, 3}, {1, 3, 2}):totable(), {{21, 23}, {31, 33}}, "ranges include their ends")
tap.equal(m:part({nil, 2}, {3}):totable(), {{13, 14}, {23, 24}}, "ranges without an end")
tap.equal(m:part({3, 1, -2}, {nil, nil, -1}):totable(), {{34, 33, 32, 31}, {14, 13, 12, 11}}, "ranges backwards")
tap.equal(m:part({3, 2}):shape(), {0, 4}, "an empty range")
tap.equal(m:part({2, 3})(1, 1), 21, "the indices of a range begin at the lower bound")
tap.equal(m:part(2, 3):get(), 23, "a part without dimensions")
tap.raises("RANGE", "", "a range that leaves the array", m.part, m, {1, 4})
tap.raises("BOUNDS", "", "an index that leaves the array", m.part, m, 4)
tap.raises("RANK", "3 indices", "more indices than dimensions", m.part, m, 1, 1, 1)
tap.raises("ARGUMENT", "step", "a step of 0", m.part, m, {1, 2, 0})
m:part(nil, {4, 1, -3})[{2, 1}] = -24
tap.equal(m(2, 4), -24, "a part shares its memory")
m[{2, 4}] = 24

-- Other layouts.
tap.equal(m:transpose():totable(), {{11, 21, 31}, {12, 22, 32}, {13, 23, 33}, {14, 24, 34}}, "a transpose")
tap.equal(m:transpose():strides(), {1, 4}, "... is no copy")
local t3 = quern.range(1, 24):reshape({2, 3, 4})
tap.equal(t3:transpose(3, 1, 2):shape(), {4, 2, 3}, "a transpose of three dimensions")
tap.equal(t3:transpose(3, 1, 2)(4, 2, 1), t3(2, 1, 4), "... has the elements of these")
tap.raises("ARGUMENT", "", "a transpose that names a dimension twice", t3.transpose, t3, 1, 1, 2)
tap.raises("RANK", "", "... too few", t3.transpose, t3, 1, 2)
tap.equal(t3(2, 3, 4), 24, "a reshape")
tap.raises("EXTENT", "", "... to another size", t3.reshape, t3, {5, 5})
tap.equal(m:reverse(1)(1, 1), 31, "a dimension reversed")
tap.raises("RANK", "", "... that there is not", m.reverse, m, 3)
tap.equal(quern.array({1, 2}):broadcast(1, 3):totable(), {{1, 2}, {1, 2}, {1, 2}}, "a broadcast")
tap.equal(quern.zeros({1, 3, 1}):squeeze():shape(), {3}, "a squeeze")
tap.equal(quern.array({{1, 2}, {3, -4}}, "c128"):parts(2):totable(), {2, -4}, "imaginary parts")

-- Lower bounds.
local z = quern.zeros({2, 3}, "i32", {lower = {0, -1}})
z[{1, -1}] = 5
tap.equal({z(1, -1), z:lower()}, {5, {0, -1}}, "lower bounds of an array")
tap.raises("BOUNDS", "dimension 1", "... and its bounds", z.get, z, 0, 2)
tap.equal(quern.array({1, 2}, nil, 0)[0], 1, "an array that counts from 0")
tap.equal(m:with_lower(0)(0, 0), 11, "other lower bounds")
tap.equal(m:part({2, 3}):with_lower({5, 6})(6, 9), 34, "... one for each dimension")
local seen = {}
for i, v in quern.array({5, 6, 7}, nil, -1):each() do
    seen[#seen + 1] = {i, v}
end
tap.equal(seen, {{-1, 5}, {0, 6}, {1, 7}}, "each")

-- Copies.
local c = m:copy("i32")
tap.equal({c:dtype(), c(3, 4), c:strides()}, {"i32", 34, {4, 1}}, "a copy of another type")
c[{1, 1}] = 0
tap.equal(m(1, 1), 11, "... has memory of its own")
tap.equal(quern.zeros({4, 3}):copy_from(m:transpose()):totable(), m:transpose():totable(), "copy_from")
tap.raises("EXTENT", "", "... of another shape", m.copy_from, m, quern.zeros({3, 3}))
tap.equal(quern.zeros(3):fill(2.5):totable(), {2.5, 2.5, 2.5}, "fill")
local fixed = quern.array({1, 2}):read_only()
tap.raises("READ_ONLY", "read-only", "a read-only array", function() fixed[1] = 2 end)
tap.raises("READ_ONLY", "", "... is not filled", fixed.fill, fixed, 1)

-- Memory of others.
local text = quern.wrap("abcdef", {2, 3}, "u8")
tap.equal(text:totable(), {{97, 98, 99}, {100, 101, 102}}, "a string as an array")
tap.raises("READ_ONLY", "read-only", "... is read-only", function() text[{1, 1}] = 1 end)
tap.raises("BOUNDS", "6 bytes", "... and has an end", quern.wrap, "abcdef", {2, 4}, "u8")
tap.raises("BOUNDS", "", "... also with strides", quern.wrap, "abcdef", {2, 3}, "u8", {strides = {4, 1}})
tap.equal(quern.wrap(m:pointer(), {2, 2}, "f64", {strides = {4, 2}, base = m}):totable(), {{11, 13}, {21, 23}}, "a pointer")
if not math.type then
    local ffi = require "ffi"
    local p = ffi.new("float[6]", {1, 2, 3, 4, 5, 6})
    local w = quern.wrap(p, {2, 3}, "f32")
    w[{2, 3}] = 60
    tap.equal({p[5], w(1, 2)}, {60, 2}, "memory of LuaJIT's ffi")
    tap.equal(ffi.cast("double *", m:pointer())[5], 22, "... which reads that of arrays")
end
tap.equal(tostring(quern.zeros({2, 3}, "f32", 0)), "quern.Array(f32, (2,3):(3,1), host)", "tostring")
