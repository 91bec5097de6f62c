-- SPDX-License-Identifier: Apache-2.0
-- Arrays in the memory of a GPU: copies, launches, expressions.

local quern, tap = require "quern", require "tap"

local there, x = pcall(quern.zeros, 4, "f64", {space = "cuda"})
if not there then
    print("ok - # SKIP no GPU: " .. tostring(x))
    return
end
tap.equal({x:space(), x:size()}, {"cuda", 4}, "an array on a GPU")
x = quern.array({1, 2, 3, 4}):to("cuda")
tap.equal(x:to("host"):totable(), {1, 2, 3, 4}, "there and back")
tap.raises("SPACE", "host does not reach", "an element is not read from the host", x.get, x, 1)
local y = quern.zeros(4, "f64", {space = "cuda"})
quern.kernel(function(b, y, x)
    local i = b:parallel(y)
    y[i] = x[i] * 2
end)(y, x)
tap.equal(y:copy():totable(), {2, 4, 6, 8}, "a launch")
local z = quern.eval("x + y*a", {x = x, y = y, a = 0.5})
tap.equal({z:space(), z:copy():totable()}, {"cuda", {2, 4, 6, 8}}, "an expression gives its result there")
tap.equal(quern.eval("sum(x)", {x = x}), 10, "a reduction of everything gives a number")
tap.raises("SPACE", "", "operands here and there", quern.eval, "x + y", {x = x, y = quern.zeros(4)})
