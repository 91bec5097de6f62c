-- SPDX-License-Identifier: Apache-2.0
-- lua.lua: what a call from Lua takes, as a table of docs/lua.md. Run with LUA_PATH and LUA_CPATH of a build.

local quern = require "quern"

-- Least microseconds of a call over 15 runs of n.
local function time(what, n, f)
    local least = math.huge
    for _ = 1, 1000 do
        f()
    end
    for _ = 1, 15 do
        local begin = os.clock()
        for _ = 1, n do
            f()
        end
        least = math.min(least, (os.clock() - begin) / n)
    end
    print(("| %s | %.2f us |"):format(what, least * 1e6))
end

local x, y, z, m = quern.zeros(5), quern.zeros(5), quern.zeros(5), quern.zeros {5, 5}
local add = quern.kernel(function(b, z, x, y)
    local i = b:parallel(z)
    z[i] = x[i] + y[i]
end)
add(z, x, y)
local kernel = add:kernels()[1]
local e, operands = quern.expression "x + y", {x = x, y = y}

print("| what | time |\n|---|---|")
time("a kernel, three arrays of 5", 100000, function() kernel(z, x, y) end)
time("a function as kernel", 100000, function() add(z, x, y) end)
time("an expression, into a given array", 100000, function() e(operands, z) end)
time("eval of a text", 100000, function() quern.eval("x + y", operands, z) end)
time("`x + y`, a new array", 20000, function() return x + y end)
time("`x[3]`", 200000, function() return x[3] end)
time("`x[3] = 1`", 200000, function() x[3] = 1 end)
time("`m(2, 3)`", 200000, function() return m(2, 3) end)
time("`m:part(nil, 2)`", 100000, function() return m:part(nil, 2) end)

local a, big = 2, quern.range(1, 1000000)
local out = quern.zeros(1000000)
local sine = quern.expression "a*x + sin(x/10)"
local large = {a = a, x = big}
time("`2*x + sin(x/10)`, 10^6 f64", 20, function() sine(large, out) end)
