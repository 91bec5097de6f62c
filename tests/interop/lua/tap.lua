-- SPDX-License-Identifier: Apache-2.0
-- tap.lua: lines of TAP, which check/lua.sh numbers.

local tap = {}

local function show(x)
    if type(x) ~= "table" then
        return tostring(x)
    end
    local parts = {}
    for i, y in ipairs(x) do
        parts[i] = show(y)
    end
    return "{" .. table.concat(parts, ", ") .. "}"
end

local function same(x, y)
    if type(x) ~= "table" or type(y) ~= "table" then
        return x == y or (x ~= x and y ~= y)
    end
    if #x ~= #y then
        return false
    end
    for i = 1, #x do
        if not same(x[i], y[i]) then
            return false
        end
    end
    return true
end

function tap.ok(passed, what)
    print((passed and "ok - " or "not ok - ") .. what)
    return passed
end

-- Numbers, texts, or nested tables of them.
function tap.equal(found, expected, what)
    if not tap.ok(same(found, expected), what) then
        print("# found " .. show(found) .. ", expected " .. show(expected))
    end
end

-- f(...) raises an error of the package with this status, whose text has the part. Gives the error.
function tap.raises(status, part, what, f, ...)
    local passed, err = pcall(f, ...)
    if passed then
        tap.ok(false, what .. ": nothing was raised")
        return {}
    end
    local text = tostring(err)
    local good = type(err) == "table" and err.status == "QN_ERR_" .. status and text:find(part, 1, true) ~= nil
    if not tap.ok(good, what) then
        print("# " .. tostring(type(err) == "table" and err.status or type(err)) .. ": " .. text)
    end
    return type(err) == "table" and err or {}
end

return tap
