#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the Lua module with Lua 5.4 and with LuaJIT, where their headers were there when it was built and the interpreters are
# there now; then the code of docs/lua.md. Without QUERN_CUDA_DRIVER the driver is the one of tests/stub/, which runs PTX itself.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
export QUERN_NUM_THREADS="${QUERN_NUM_THREADS:-2}"
build="${QN_BUILD_DIR:-$root/build/release}"
if [ ! -f "$build/lua/5.4/quern/core.so" ] && [ ! -f "$build/lua/5.1/quern/core.so" ]; then
    echo "1..0 # SKIP the Lua module was not built: the headers of Lua 5.4 and of LuaJIT are missing"
    exit 0
fi

# runs VERSION INTERPRETER SCRIPT: prints "ok" or "not ok" and what, a line a test.
runs() {
    local version="$1" lua="$2"
    shift 2
    if [ ! -f "$build/lua/$version/quern/core.so" ]; then
        echo "ok - # SKIP the module was not built for $lua"
    elif ! command -v "$lua" > /dev/null; then
        echo "ok - # SKIP no $lua"
    elif ! QUERN_CUDA_DRIVER="${QUERN_CUDA_DRIVER:-$build/tests/stub/runs/libcuda.so.1}" LUA_INIT='' LUA_PATH="$build/lua/$version/?.lua;$root/tests/interop/lua/?.lua;;" \
        LUA_CPATH="$build/lua/$version/?.so;;" "$lua" "$@" 2>&1; then
        echo "not ok - $lua $(basename "$1") ends well"
    fi
}

echo "TAP version 13"
{
    for script in arrays kernels eval memory cuda; do
        runs 5.4 lua5.4 "$root/tests/interop/lua/test_$script.lua" | sed -E 's/^((not )?ok) - /&5.4: /'
        runs 5.1 luajit "$root/tests/interop/lua/test_$script.lua" | sed -E 's/^((not )?ok) - /&JIT: /'
    done
    runs 5.4 lua5.4 "$root/tests/interop/lua/page.lua" "$root/docs/lua.md"
    runs 5.1 luajit "$root/tests/interop/lua/page.lua" "$root/docs/lua.md"
} | awk '
    /^(not )?ok - / { n++; sub(/ok -/, "ok " n " -"); failed += /^not/; sub(/- [^ ]*: # SKIP/, "# SKIP"); sub(/- # SKIP/, "# SKIP") }
    { print (/^((not )?ok|#)/ ? "" : "# ") $0 }
    END { print "1.." n; exit failed > 0 }'
