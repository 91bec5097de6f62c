-- SPDX-License-Identifier: Apache-2.0
-- page.lua PAGE: runs the code of a page in Markdown, block by block in one environment, as TAP. What a line prints must be what
-- stands behind --> on it; numbers without a fraction may be written with ".0". Local variables of a block outlive it.

local env = setmetatable({}, {__index = _G})
local n = 0

-- "6.0 -1" as "6 -1", with one space between words.
local function plain(text)
    return (text:gsub("%s+", " "):gsub("(%d)%.0%f[^%d%a]", "%1"):gsub("^ ", ""):gsub(" $", ""))
end

local function run(block, line)
    local printed, expected = {}, {}
    function env.print(...)
        local parts = {...}
        for i = 1, select("#", ...) do
            parts[i] = tostring(parts[i])
        end
        printed[#printed + 1] = plain(table.concat(parts, " "))
    end
    for text in block:gmatch("%-%->([^\n]*)") do
        expected[#expected + 1] = plain(text)
    end
    block = ("\n" .. block):gsub("\nlocal (%a[%w_, ]* =)", "\n%1"):sub(2)
    local chunk, err
    if setfenv then
        chunk, err = loadstring(block, "@page.lua")
        if chunk then
            setfenv(chunk, env)
        end
    else
        chunk, err = load(block, "@page.lua", "t", env)
    end
    local good = chunk ~= nil
    if good then
        good, err = pcall(chunk)
    end
    n = n + 1
    good = good and table.concat(printed, "\n") == table.concat(expected, "\n")
    print(("%s - page: the block at line %d"):format(good and "ok" or "not ok", line))
    if not good then
        print("# " .. tostring(err))
        print("# printed " .. table.concat(printed, " | "))
        print("# expected " .. table.concat(expected, " | "))
    end
end

local block, first, line = nil, 0, 0
for text in io.lines(arg[1]) do
    line = line + 1
    if text == "```lua" then
        block, first = {}, line
    elseif text == "```" and block then
        run(table.concat(block, "\n"), first)
        block = nil
    elseif block then
        block[#block + 1] = text
    end
end
print((n >= 5 and "ok" or "not ok") .. " - page: it has blocks of code")
