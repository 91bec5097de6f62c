-- SPDX-License-Identifier: Apache-2.0
-- builder.lua: quern.builder, a kernel under construction, and quern.kernel, a function that becomes a kernel for the types of
-- its arguments. Ranges include their last index, as those of Lua do, and dimensions are counted from 1.

local core = require "quern.core"
local V = require "quern.values"
core.ours(debug.getinfo(1, "S").source)

local N, value, cast_in, new, note, ids, fail = V.N, V.value, V.cast_in, V.new, V.note, V.ids, V.fail
local unpack = table.unpack or unpack

local Builder, View, Table = {}, {}, {}
Builder.__index = Builder

-- ------------------------------------------------------------------------------------------------ views

local function is_view(x)
    return getmetatable(x) == View
end

-- An index as a value: integers, and numbers of LuaJIT that are parameters.
local function index_value(b, x)
    local v = value(b, x)
    return v.weak and V.FLOATS[v.dtype] and cast_in(b, v, "i64") or v
end

local function index_ids(b, list)
    local found = {}
    for i, x in ipairs(list) do
        found[i] = index_value(b, x).id
    end
    return unpack(found)
end

-- An index or a table of them as a list.
local function listed(key)
    if type(key) == "table" and not V.is_value(key) then
        return key
    end
    return {key}
end

local function load(v, list)
    local b = rawget(v, "builder")
    local index = {index_ids(b, list)}
    note(b)
    return new(b, b.core:load(rawget(v, "id"), unpack(index)), rawget(v, "dtype"))
end

local methods = {}

-- v(i, j), v:get(i, j)
function methods.get(v, ...)
    return load(v, {...})
end

-- v:set(i, j, x)
function methods.set(v, ...)
    local list = {...}
    local x = table.remove(list)
    v[list] = x
end

-- Number of indices of a dimension, its first and its last one.
function methods.extent(v, d)
    return new(v.builder, v.builder.core:extent(v.id, d), "i64")
end

function methods.first(v, d)
    return new(v.builder, v.builder.core:lower(v.id, d), "i64")
end

function methods.last(v, d)
    return v:first(d) + v:extent(d) - 1
end

-- v:pin("extent", d, "dynamic"): "extent", "stride" or "first"; "dynamic", "constant" or a number that divides it.
function methods.pin(v, of, d, as)
    local kinds = {extent = "QN_PIN_EXTENT", stride = "QN_PIN_STRIDE", first = "QN_PIN_LOWER"}
    local ways = {dynamic = "QN_PIN_DYNAMIC", constant = "QN_PIN_CONSTANT"}
    local multiple = type(as) == "number" and as or 0
    local way = multiple ~= 0 and "QN_PIN_MULTIPLE" or ways[as]
    if not kinds[of] or not way then
        fail("ARGUMENT", "pin: of is extent, stride or first; as is dynamic, constant or a number")
    end
    v.builder.core:pin(v.number, N[kinds[of]], d - 1, N[way], multiple)
    return v
end

View.__index = function(v, key)
    if type(key) == "string" then
        return methods[key]
    end
    return load(v, listed(key))
end
View.__call = methods.get
View.__newindex = function(v, key, x)
    if type(key) == "string" then
        fail("ARGUMENT", "a view has no field \"" .. key .. "\" to assign to")
    end
    local b = v.builder
    local index = {index_ids(b, listed(key))}
    local stored = cast_in(b, x, v.dtype)
    note(b)
    b.core:store(v.id, stored.id, unpack(index))
    b.core:check()
end

-- ------------------------------------------------------------------------------------------------ parameters and dimensions

-- A view parameter; traits are words as "read_only", "atomic".
function Builder:view(name, dtype, rank, ...)
    local traits = 0
    for _, word in ipairs {...} do
        traits = traits + (N["QN_" .. word:upper()] or fail("ARGUMENT", "view: no trait \"" .. word .. "\""))
    end
    self.n_params = self.n_params + 1
    note(self)
    local id = self.core:view_param(name, dtype, rank, traits)
    self.core:check()
    return setmetatable({id = id, builder = self, name = name, dtype = dtype, rank = rank, number = self.n_params - 1}, View)
end

-- A scalar parameter; a weak one gives way as a number does.
function Builder:scalar(name, dtype, weak)
    self.n_params = self.n_params + 1
    note(self)
    return new(self, self.core:scalar_param(name, dtype), dtype, weak)
end

local function dimensions(b, kind, first, second)
    local bounds, found = {}, {}
    note(b)
    if is_view(first) then
        for d = second or 1, second or first.rank do
            local low = first:first(d)
            bounds[#bounds + 1] = {low, low + first:extent(d)}
        end
    else
        bounds[1] = {index_value(b, first), index_value(b, second) + 1}
    end
    for i, bound in ipairs(bounds) do
        found[i] = new(b, b.core:dimension(kind, bound[1].id, bound[2].id), "i64")
    end
    b.core:check()
    return unpack(found)
end

-- Indices of independent iterations: parallel(view) of all its dimensions, parallel(view, d) of one of them,
-- parallel(first, last) of a range. Dimensions come before all loads and stores.
function Builder:parallel(first, last)
    return dimensions(self, 0, first, last)
end

-- Indices for sum and the like.
function Builder:reduction(first, last)
    return dimensions(self, 1, first, last)
end

-- Indices that are walked in order, outside all parallel ones.
function Builder:sequential(first, last)
    return dimensions(self, 2, first, last)
end

-- ------------------------------------------------------------------------------------------------ regions

-- reduce("sum", k, body, order): combines what body() gives over reduction indices, one or a table of them.
function Builder:reduce(combine, over, body, order)
    local dims = {}
    for i, k in ipairs(listed(over)) do
        dims[i] = value(self, k).id
    end
    local orders = {indexed = 1, striped = 2, ordered = 3}
    note(self)
    self.core:begin_reduce(N["QN_COMBINE_" .. combine:upper()] or fail("ARGUMENT", "reduce: no combination " .. combine),
                           orders[order] or 0, unpack(dims))
    local x = value(self, body())
    return new(self, self.core:end_reduce(x.id), x.dtype)
end

for name, combine in pairs {sum = "sum", prod = "prod", min = "min", max = "max", any = "or", all = "and"} do
    Builder[name] = function(b, over, body, order)
        return b:reduce(combine, over, body, order)
    end
end

-- Numbers and values as values, and their types.
local function values_of(b, ...)
    local values, dtypes = {}, {}
    for i = 1, select("#", ...) do
        values[i] = value(b, (select(i, ...)))
        dtypes[i] = values[i].dtype
    end
    return values, dtypes
end

-- Ids of values in the types that a region has for them. A float does not become an integer unnoticed: 1.0 is one in LuaJIT.
local function like(b, dtypes, ...)
    local found = {}
    if select("#", ...) ~= #dtypes then
        fail("BUILD", ("a region gives %d values, not %d"):format(select("#", ...), #dtypes))
    end
    for i, dtype in ipairs(dtypes) do
        local x = value(b, (select(i, ...)))
        if not x.weak and V.kind_of(x.dtype) > V.kind_of(dtype) then
            fail("TYPE", ("a region gives %s for value %d, which is %s: use b:number(x, \"%s\") or cast"):format(
                x.dtype, i, dtype, x.dtype))
        end
        found[i] = cast_in(b, x, dtype).id
    end
    return unpack(found)
end

local function given(b, dtypes, ...)
    local found = {}
    for i, dtype in ipairs(dtypes) do
        found[i] = new(b, select(i, ...), dtype)
    end
    return unpack(found)
end

-- loop(first, last, [step,] body, s...): calls body(i, s...) for a counted loop, which gives the next values of s, in the types
-- that they begin with. Gives the last ones.
function Builder:loop(first, last, ...)
    local args = {...}
    local step = type(args[1]) == "number" and table.remove(args, 1) or 1
    local body = table.remove(args, 1)
    local init, dtypes = values_of(self, unpack(args))
    local begin, past = index_value(self, first), index_value(self, last) + 1
    note(self)
    local carried = {self.core:begin_for(begin.id, past.id, step, ids(init))}
    self.core:check()
    local index = new(self, table.remove(carried, 1), "i64")
    local next_ids = {like(self, dtypes, body(index, given(self, dtypes, unpack(carried))))}
    return given(self, dtypes, self.core:end_for(unpack(next_ids)))
end

-- while_(most, condition, body, s...): repeats s = body(s...) while condition(s...) holds, at most so often.
function Builder:while_(most, condition, body, ...)
    local init, dtypes = values_of(self, ...)
    local limit = index_value(self, most)
    note(self)
    local carried = {given(self, dtypes, self.core:begin_while(limit.id, ids(init)))}
    self.core:begin_do(V.truth_in(self, condition(unpack(carried))).id)
    local next_ids = {like(self, dtypes, body(unpack(carried)))}
    return given(self, dtypes, self.core:end_while(unpack(next_ids)))
end

local function branch(b, condition, is_rare, yes, no)
    local holds = V.truth_in(b, condition)
    note(b)
    b.core:begin_if(holds.id, is_rare)
    local values, dtypes = values_of(b, yes())
    if not no then
        b.core:end_if()
        return
    end
    b.core:begin_else(ids(values))
    local others = {like(b, dtypes, no())}
    return given(b, dtypes, b.core:end_if(unpack(others)))
end

-- if_(condition, yes, no): calls yes() for where the condition holds, no() for elsewhere; gives what they give.
function Builder:if_(condition, yes, no)
    return branch(self, condition, false, yes, no)
end

-- if_ whose condition rarely holds.
function Builder:if_rare(condition, yes, no)
    return branch(self, condition, true, yes, no)
end

-- check(condition, message, x...): a launch where the condition does not hold fails with the message and the values.
function Builder:check(condition, message, ...)
    local holds, shown = V.truth_in(self, condition), values_of(self, ...)
    note(self)
    self.core:assert_that(holds.id, message, ids(shown))
    self.core:check()
end

-- print(message, x...): a line for each iteration, in their order, by the global function print.
function Builder:print(message, ...)
    local shown = values_of(self, ...)
    note(self)
    self.core:print_line(message, ids(shown))
    self.core:check()
end

-- atomic("sum", view, i, x, compare): combines an element with x in one step and gives the old value. i is an index or a table.
function Builder:atomic(combine, view, index, x, compare)
    local at = {index_ids(self, listed(index))}
    local with = cast_in(self, x, view.dtype)
    local expected = compare ~= nil and cast_in(self, compare, view.dtype).id or 0
    local number = N["QN_COMBINE_" .. combine:upper()] or fail("ARGUMENT", "atomic: no combination " .. combine)
    note(self)
    return new(self, self.core:atomic(number, view.id, with.id, expected, unpack(at)), view.dtype)
end

-- table("f64", {...}): numbers that are part of the code; t[i] is the i-th, the first or last one for an i beyond.
function Builder:table(dtype, numbers)
    local id = self.core:const_array(dtype, numbers)
    self.core:check()
    return setmetatable({id = id, builder = self, dtype = dtype}, Table)
end

Table.__index = function(t, i)
    local b = t.builder
    local index = index_value(b, i) - 1
    note(b)
    return new(b, b.core:lookup(t.id, index.id), t.dtype)
end

-- A number as a value, of a type or as numbers are.
function Builder:number(x, dtype)
    return dtype and V.constant(self, x, dtype) or value(self, x)
end

-- The kernel; options is text as "executor=threads".
function Builder:finish(options)
    local kernel = self.core:finish()
    return options and options ~= "" and kernel:options(options) or kernel
end

-- ------------------------------------------------------------------------------------------------ functions as kernels

local M = {Builder = Builder}

-- A builder of a kernel of this name; options may be {contract = true}.
function M.new(name, options)
    local flags = options and options.contract and N.QN_CONTRACT or 0
    return setmetatable({core = core.new_builder(name, flags), n_params = 0}, Builder)
end

local Traced = {}
Traced.__index = Traced

local function make_kernel(traced, key)
    local n, args = #key / 2, {}
    local b = M.new(traced.name, traced)
    for i = 1, n do
        local code, name = key:byte(i), debug.getlocal(traced.body, i + 1) or "argument" .. i
        local dtype = V.NAMES[code % 64]
        if code >= 64 then
            args[i] = b:scalar(name, dtype, code >= 128)
        else
            args[i] = b:view(name, dtype, key:byte(n + i))
        end
    end
    traced.body(b, unpack(args))
    return {b:finish(traced.options)}
end

Traced.__call = function(traced, ...)
    return core.dispatch(traced.table, traced.make, ...)
end

-- The kernels that were made so far.
function Traced:kernels()
    local list = {}
    for _, entry in pairs(self.table) do
        list[#list + 1] = entry[1]
    end
    return list
end

-- kernel(body, {name =, options =, contract =}): body(b, ...) gets a builder and a view or value for each argument of a call,
-- and is run once for each combination of their types. What it notes is the kernel that the call launches.
function M.kernel(body, options)
    local traced = {body = body, table = {}, name = "kernel", options = "", contract = false}
    for key, x in pairs(options or {}) do
        if traced[key] == nil or key == "body" or key == "table" then
            fail("ARGUMENT", "kernel: no option \"" .. tostring(key) .. "\"")
        end
        traced[key] = x
    end
    traced.make = function(key)
        return make_kernel(traced, key)
    end
    return setmetatable(traced, Traced)
end

return M
