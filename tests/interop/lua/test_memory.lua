-- SPDX-License-Identifier: Apache-2.0
-- Memory: handles are collected, what they need is kept, and nothing is harmed by calls on what is gone; coroutines and fork.

local quern, tap = require "quern", require "tap"

local function live_bytes()
    collectgarbage()
    collectgarbage()
    return quern.counters().data_bytes
end

local before = live_bytes()
local a = quern.zeros({1000, 1000})
local function is_alive(what)
    local bytes = live_bytes() - before
    tap.ok(bytes >= 8000000 and bytes < 11000000, what)
end
is_alive("an array has its bytes")
local row = a:part(3)
a = nil
is_alive("... as long as a part of it lives")
tap.equal(row[1000], 0, "... which can be read")
row = nil
tap.equal(live_bytes() - before, 0, "... and not longer")

-- The collector of Lua sees some hundred bytes of each; without help 200 arrays of 8 MB would be 1.6 GB.
local most = 0
for i = 1, 200 do
    local garbage = quern.zeros(1000000)
    garbage[1] = i
    most = math.max(most, quern.counters().data_bytes)
end
tap.ok(most < 160e6, ("garbage is collected as arrays are made: at most %.0f MB"):format(most / 1e6))

-- What a string, a table or a view keeps.
local w = quern.wrap(("x"):rep(100000), 100000, "u8")
local part = w:part {50000, 50010}
w = nil
collectgarbage()
collectgarbage()
local junk = ("y"):rep(100000)
tap.equal(part[5], 120, "a part keeps the string of its array")
local kept = setmetatable({}, {__mode = "k"})
local base = {}
kept[base] = true
local v = quern.wrap(quern.zeros(4):pointer(), 4, "f64", {base = base}):transpose():reverse(1)
base = nil
collectgarbage()
collectgarbage()
tap.ok(next(kept) ~= nil, "a base lives as long as an array of it")
v = nil
collectgarbage()
collectgarbage()
tap.ok(next(kept) == nil, "... and not longer")

-- Kernels and builders.
local function make()
    local b = quern.builder("k")
    local y = b:view("y", "f64", 1)
    y[b:parallel(y)] = 1
    return b, b:finish()
end
for _ = 1, 300 do
    make()
    quern.builder("unfinished")
    pcall(quern.parse, "kernel \"k\" {")
end
collectgarbage()
local b, k = make()
local ready = quern.zeros(3)
k(ready)
tap.equal(ready:totable(), {1, 1, 1}, "kernels after many others are gone")
tap.raises("BUILD", "not finished", "a builder that is gone", function() b.core:op("add", 1, 1) end)

-- Finalizers that are called by hand.
local once = quern.zeros(3)
once:__gc()
once:__gc()
tap.raises("DTYPE", "", "an array that was released", once.get, once, 1)
tap.ok(#once == 1 and once:rank() == 0, "... is the default one")
k:__gc()
tap.raises("ARGUMENT", "expected a kernel", "a kernel that was released", k, ready)
for _, f in ipairs {k.text, k.explain, k.params, ready.part, ready.transpose, ready.set, ready.totable, ready.copy, quern.wrap} do
    pcall(f)
    pcall(f, 5)
    pcall(f, io.stdout)
    pcall(f, {})
    pcall(ready.__gc, io.stdout)
    pcall(k.__gc, {})
    pcall(f, ready, {}, {}, {})
end
tap.equal(ready:totable(), {1, 1, 1}, "methods of other things than theirs")

-- Coroutines share the module.
local co = coroutine.wrap(function(x)
    local y = quern.eval("x + 1", {x = x})
    coroutine.yield(y)
    error(select(2, pcall(quern.eval, "x +", {})))
end)
tap.equal(co(ready):totable(), {2, 2, 2}, "a launch in a coroutine")
local ok, err = pcall(co)
tap.ok(not ok and err.status == "QN_ERR_PARSE", "an error of a coroutine")

-- A child of fork, which LuaJIT's ffi can make.
if not math.type then
    local ffi = require "ffi"
    ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);"
    quern.eval("x * 3", {x = ready})
    io.stdout:flush()
    local child = ffi.C.fork()
    if child == 0 then
        local good, r = pcall(function()
            local t = quern.kernel(function(b, y) local i = b:parallel(y); y[i] = i * 7 end, {options = "executor=threads"})
            local y = quern.zeros(100)
            t(y)
            return quern.eval("sum(x * 5)", {x = ready}) == 15 and y[100] == 700
        end)
        ffi.C._exit(good and r and 0 or 1)
    end
    local status = ffi.new("int[1]")
    ffi.C.waitpid(child, status, 0)
    tap.equal(status[0], 0, "a child of fork launches")
end
