-- SPDX-License-Identifier: Apache-2.0
-- expression.lua: quern.eval: an expression over arrays in the syntax of Lua. The text is parsed once; for each combination of
-- element types and number of dimensions a kernel is built, which Quern compiles for the extents and strides that it meets.

local core = require "quern.core"
local V = require "quern.values"
require "quern.functions"
local Builder = require "quern.builder"
core.ours(debug.getinfo(1, "S").source)

local N, F, fail = V.N, V.functions, V.fail
local unpack = table.unpack or unpack

local M = {}

-- ------------------------------------------------------------------------------------------------ parser

-- Binary operators: how strongly they hold on the left and on the right, as in the manual of Lua, and their functions.
local BINARY = {
    ["or"] = {1, 1, "lor"}, ["and"] = {2, 2, "land"},
    ["<"] = {3, 3, "lt"}, [">"] = {3, 3, "gt"}, ["<="] = {3, 3, "le"}, [">="] = {3, 3, "ge"},
    ["=="] = {3, 3, "eq"}, ["~="] = {3, 3, "ne"},
    ["|"] = {4, 4, "bor"}, ["~"] = {5, 5, "bxor"}, ["&"] = {6, 6, "band"}, ["<<"] = {7, 7, "shl"}, [">>"] = {7, 7, "shr"},
    ["+"] = {10, 10, "add"}, ["-"] = {10, 10, "sub"},
    ["*"] = {11, 11, "mul"}, ["/"] = {11, 11, "div"}, ["//"] = {11, 11, "idiv"}, ["%"] = {11, 11, "mod"},
    ["^"] = {14, 13, "pow"},
}
local UNARY = {["-"] = "neg", ["not"] = "lnot", ["~"] = "bnot"}
local UNARY_POWER = 12
local REDUCTIONS = {sum = "SUM", prod = "PROD", min = "MIN", max = "MAX", any = "OR", all = "AND", mean = "SUM"}
local CONSTANTS = {pi = math.pi, inf = math.huge, nan = 0 / 0, ["true"] = true, ["false"] = false}
-- Functions that expressions know: those of values that take values only.
local KNOWN = {astype = true, select = true, where = true}
for name in pairs(core.math_functions()) do
    KNOWN[name] = true
end
for _, name in ipairs {"arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh", "sqrt", "abs", "absolute",
                       "floor", "ceil", "trunc", "rint", "round", "minimum", "maximum", "fma", "copysign", "real", "imag",
                       "conj", "complex"} do
    KNOWN[name] = true
end

local Parser = {}
Parser.__index = Parser

function Parser:error(column, what)
    fail("PARSE", ("quern.eval: %s; at <%s>:1:%d"):format(what, self.text, column))
end

-- Reads the next token: self.kind is "name", "number", "operator" or "end".
function Parser:advance()
    local text, at = self.text, self.text:find("%S", self.next) or #self.text + 1
    self.column = at
    local name = text:match("^[%a_][%w_]*", at)
    local number = text:match("^0[xX]%x+", at) or text:match("^%d+%.?%d*[eE][+-]?%d+", at) or
        text:match("^%.%d+[eE][+-]?%d+", at) or text:match("^%d+%.?%d*", at) or text:match("^%.%d+", at)
    local operator = text:match("^[<>=~]=", at) or text:match("^//", at) or text:match("^<<", at) or text:match("^>>", at) or
        text:match("^[-+*/%%^<>&|~(),]", at)
    self.token = name or number or operator or ""
    self.kind = name and "name" or number and "number" or operator and "operator" or "end"
    if self.kind == "end" and at <= #text then
        self:error(at, ("\"%s\" is no part of an expression"):format(text:sub(at, at)))
    end
    self.next = at + #self.token
end

function Parser:expect(token)
    if self.token ~= token then
        self:error(self.column, ("expected \"%s\"%s"):format(token, self.kind == "end" and "" or ", not \"" .. self.token .. "\""))
    end
    self:advance()
end

function Parser:arguments()
    local list = {}
    self:expect("(")
    while self.token ~= ")" do
        list[#list + 1] = self:expression(0)
        if self.token ~= ")" then
            self:expect(",")
        end
    end
    self:advance()
    return list
end

function Parser:primary()
    local node = {column = self.column, token = self.token}
    if self.kind == "number" then
        node.kind, node.number = "number", tonumber(self.token)
        node.is_float = not self.token:find("^0[xX]") and self.token:find("[.eE]") ~= nil
        self:advance()
    elseif self.kind == "name" and not BINARY[self.token] then
        node.kind = "name"
        self:advance()
        if self.token == "(" then
            node.kind, node.args = "call", self:arguments()
        end
    elseif self.token == "(" then
        self:advance()
        node = self:expression(0)
        self:expect(")")
    else
        self:error(self.column, self.kind == "end" and "the expression ends too early" or
                   "\"" .. self.token .. "\" stands where a value is expected")
    end
    return node
end

-- An expression whose operators hold more strongly than `power`.
function Parser:expression(power)
    local left
    self.depth = self.depth + 1
    if self.depth > 100 then
        self:error(self.column, "nested more than 100 deep")
    end
    if UNARY[self.token] then
        left = {kind = "unary", column = self.column, name = UNARY[self.token]}
        self:advance()
        left.operand = self:expression(UNARY_POWER)
    else
        left = self:primary()
    end
    while BINARY[self.token] and BINARY[self.token][1] > power do
        local row = BINARY[self.token]
        local node = {kind = "binary", column = self.column, name = row[3], left = left}
        self:advance()
        node.right = self:expression(row[2])
        left = node
    end
    self.depth = self.depth - 1
    return left
end

-- ------------------------------------------------------------------------------------------------ values

local Expression = {}
Expression.__index = Expression

function Expression:error(node, what)
    Parser.error(self, node.column, what)
end

-- Names of operands, in the order of the text; checks those of functions.
function Expression:find_names(node)
    if node.kind == "call" then
        if REDUCTIONS[node.token] then
            self:error(node, "a reduction stands outermost")
        elseif not KNOWN[node.token] then
            self:error(node, "no function " .. node.token)
        end
    end
    if node.kind == "name" and CONSTANTS[node.token] == nil and not self.is_named[node.token] then
        self.is_named[node.token] = true
        self.names[#self.names + 1] = node.token
    end
    for _, field in ipairs {"left", "right", "operand"} do
        if node[field] then
            self:find_names(node[field])
        end
    end
    for i, part in ipairs(node.args or {}) do
        if not (node.token == "astype" and i == 2) then
            self:find_names(part)
        end
    end
end

-- The value of a node; numbers stay Lua's until they meet a value.
function Expression:walk(b, node, env)
    if node.kind == "number" then
        return node.is_float and V.new(b, b.core:constant("f64", node.number), "f64", true) or node.number
    elseif node.kind == "name" then
        local x = CONSTANTS[node.token]
        if x == nil then
            x = env[node.token]
        end
        return x
    end
    if node.kind == "call" then
        return self:call(b, node, env)
    end
    local x = self:walk(b, node.operand or node.left, env)
    if node.kind == "unary" then
        b.core:at_column(b.text, node.column)
        return F[node.name](V.value(b, x))
    end
    local y = self:walk(b, node.right, env)
    b.core:at_column(b.text, node.column)
    if not V.is_value(x) then
        x = V.value(b, x)
    end
    return F[node.name](x, y)
end

function Expression:call(b, node, env)
    local args = {}
    for i, part in ipairs(node.args) do
        if node.token == "astype" and i == 2 then
            args[i] = part.token
        else
            args[i] = V.value(b, self:walk(b, part, env))
        end
    end
    if #args == 0 then
        self:error(node, node.token .. " takes arguments")
    end
    b.core:at_column(b.text, node.column)
    return F[node.token](unpack(args))
end

-- The type in which numpy reduces.
local function widen(b, x, reduction)
    if reduction == "any" or reduction == "all" then
        return V.truth_in(b, x)
    end
    local is_integer = x.dtype == "bool" or V.SIGNED[x.dtype] or V.UNSIGNED[x.dtype]
    local dtype = x.dtype
    if reduction == "mean" then
        dtype = is_integer and "f64" or dtype
    elseif reduction == "sum" or reduction == "prod" then
        dtype = V.UNSIGNED[dtype] and "u64" or is_integer and "i64" or dtype
    end
    return V.cast_in(b, x, dtype)
end

-- ------------------------------------------------------------------------------------------------ kernels

local function bit(bits, i)
    return math.floor(bits / 2 ^ i) % 2 == 1
end

-- Parameters of a key, by the names of the expression, and the views among them.
function Expression:parameters(b, key)
    local env, views = {}, {}
    for i, name in ipairs(self.names) do
        local code = key:byte(2 + i)
        local dtype = V.NAMES[code % 64]
        if code >= 64 then
            env[name] = b:scalar(name, dtype, code >= 128)
        else
            env[name] = b:view(name, dtype, key:byte(1), "read_only")
            views[#views + 1] = env[name]
        end
    end
    return env, views
end

-- Dimensions of the domain: parallel ones over the result, then those of a reduction.
function Expression:dimensions(b, result, views, rank, reduced)
    local index, kept, gone = {}, {}, {}
    for kind = 0, 1 do
        for d = 1, rank do
            local is_reduced = bit(reduced, rank - d)
            if is_reduced == (kind == 1) then
                local list = is_reduced and gone or kept
                local over = is_reduced and views[1]:extent(d) or result:extent(#list + 1)
                index[d] = V.new(b, b.core:dimension(kind, b:number(0, "i64").id, over.id), "i64")
                list[#list + 1] = index[d]
            end
        end
    end
    return index, kept, gone
end

-- What the expression gives at an index, reduced over some dimensions.
function Expression:value_at(b, env, views, index, gone)
    local function body()
        local values = {}
        for name, p in pairs(env) do
            values[name] = V.is_value(p) and p or p[index]
        end
        return V.value(b, self:walk(b, self.tree, values))
    end
    if not self.reduction then
        return body()
    end
    local is_bool = false
    local function widened()
        local x = body()
        is_bool = (self.reduction == "min" or self.reduction == "max") and x.dtype == "bool"
        return is_bool and V.cast_in(b, x, "i8") or widen(b, x, self.reduction)
    end
    local x = #gone > 0 and b:reduce(REDUCTIONS[self.reduction], gone, widened) or widened()
    if is_bool then
        x = V.cast_in(b, x, "bool")
    elseif self.reduction == "mean" then
        local count = b:number(1, "i64")
        for d = 1, #index do
            if index[d] == nil or self.is_gone[d] then
                count = count * views[1]:extent(d)
            end
        end
        x = x / V.cast_in(b, count, (x.dtype == "f32" or x.dtype == "c64") and "f32" or "f64")
    end
    return x
end

-- Builds the kernel of a key, with a result of this type (nil: not known yet). Gives kernel and type.
function Expression:build(key, reduced, dtype)
    local b, rank = Builder.new("expression"), key:byte(1)
    b.text = "<" .. self.text .. ">"
    if reduced == -1 then
        reduced = 2 ^ rank - 1
    end
    self.is_gone = {}
    local n_kept = 0
    for d = 1, rank do
        self.is_gone[d] = bit(reduced, rank - d)
        n_kept = n_kept + (self.is_gone[d] and 0 or 1)
    end
    local result = b:view("result", dtype or "f64", n_kept)
    local env, views = self:parameters(b, key)
    if self.reduction and #views == 0 then
        fail("ARGUMENT", "quern.eval: a reduction of no array")
    end
    local index, kept, gone = self:dimensions(b, result, views, rank, reduced)
    local x = self:value_at(b, env, views, index, gone)
    if not dtype then
        b.core:check()
        return nil, x.dtype
    end
    result[kept] = x
    return b:finish("strict=1"), dtype -- an overlap would make results depend on the order
end

function Expression:make(reduced)
    return function(key)
        local _, dtype = self:build(key, reduced)
        return {(self:build(key, reduced, dtype)), dtype}
    end
end

-- ------------------------------------------------------------------------------------------------ calls

-- A reduction around the whole expression, with dimensions behind it: sum(x, 1), counted from 1, or from the last one as -1.
function Expression:take_reduction()
    local tree = self.tree
    if tree.kind ~= "call" or not REDUCTIONS[tree.token] then
        return
    end
    self.reduction, self.axes, self.tree = tree.token, {}, tree.args[1]
    if not self.tree then
        self:error(tree, tree.token .. "(expression, dimension ...)")
    end
    for i = 2, #tree.args do
        local part, sign = tree.args[i], 1
        if part.kind == "unary" and part.name == "neg" then
            part, sign = part.operand, -1
        end
        if part.kind ~= "number" or part.is_float then
            self:error(tree.args[i], "a dimension of a reduction is an integer")
        end
        self.axes[#self.axes + 1] = sign * part.number
    end
end

function Expression:reduced_bits(values)
    if not self.reduction then
        return 0
    elseif #self.axes == 0 then
        return -1
    end
    local rank, bits = 0, 0
    for _, v in ipairs(values) do
        if type(v) == "userdata" then
            rank = math.max(rank, v:rank())
        end
    end
    for _, axis in ipairs(self.axes) do
        local d = axis < 0 and rank + 1 + axis or axis
        if d < 1 or d > rank then
            fail("RANK", ("quern.eval: dimension %d of %d"):format(axis, rank))
        end
        if not bit(bits, rank - d) then
            bits = bits + 2 ^ (rank - d)
        end
    end
    return math.floor(bits)
end

-- The value for some operands, in the order of `names`; out is an array for the result or nil.
function Expression:value(values, out)
    local reduced = self:reduced_bits(values)
    local entry = self.tables[reduced]
    if not entry then
        entry = {{}, self:make(reduced)}
        self.tables[reduced] = entry
    end
    return core.evaluate(entry[1], entry[2], values, out, reduced)
end

-- e{a = 2, x = x, out = y}: the value for operands by their names.
function Expression:__call(operands, out)
    local values = {}
    for i, name in ipairs(self.names) do
        local x = operands[name]
        if x == nil then
            fail("NOT_FOUND", ("quern.eval: \"%s\" is not given"):format(name))
        end
        values[i] = x
    end
    return self:value(values, out)
end

-- The kernels that were made so far.
function Expression:kernels()
    local list = {}
    for _, entry in pairs(self.tables) do
        for _, made in pairs(entry[1]) do
            list[#list + 1] = made[1]
        end
    end
    return list
end

local cache = {}

-- The parsed form of an expression, which is kept: e.names are its operands.
function M.expression(text)
    local e = cache[text]
    if e then
        return e
    end
    local p = setmetatable({text = text, next = 1, depth = 0}, Parser)
    p:advance()
    local tree = p:expression(0)
    if p.kind ~= "end" then
        p:error(p.column, ("\"%s\" stands where an operator is expected"):format(p.token))
    end
    e = setmetatable({text = text, tree = tree, names = {}, is_named = {}, tables = {}}, Expression)
    e:take_reduction()
    e:find_names(e.tree)
    cache[text] = e
    return e
end

-- The value of an expression such as "a*x + sin(b)" or "sum(x*y, 1)" over arrays and numbers, which are entries of a table.
-- Shapes are broadcast and types promoted as numpy has it. The result is a new array, `out`, or a number without dimensions.
function M.eval(text, operands, out)
    return (cache[text] or M.expression(text))(operands, out)
end

return M
