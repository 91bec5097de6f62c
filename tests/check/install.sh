#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the installed library is found by CMake and pkg-config, from C and C++, and runs with its code generator.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
build="${QN_BUILD_DIR:-$root/build/release}"
use="$root/tests/interop/install"
n=0
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix="$folder/prefix"
unset QUERN_PROVIDER LD_LIBRARY_PATH
# A machine with Ninja need not have make.
if [ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja > /dev/null; then
    export CMAKE_GENERATOR=Ninja
fi

# passes WHAT COMMAND...: one test point; shows the output of a failure.
passes() {
    local what="$1"
    shift
    n=$((n + 1))
    if "$@" > "$folder/log" 2>&1; then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        tail -20 "$folder/log" | sed 's/^/# /'
        failed=1
    fi
}

skip() {
    n=$((n + 1))
    echo "ok $n # SKIP $1"
}

# prints PROGRAM: it runs and prints the right line; code is generated where the processor allows it.
prints() {
    local line
    line=$("$@") && echo "$line" && [[ "$line" == "version $version 1, y[10] = 21, compiles $compiles" ]]
}

if ! command -v cmake > /dev/null || [ ! -f "$build/cmake_install.cmake" ]; then
    echo "1..0 # SKIP no cmake, or nothing configured in $build"
    exit 0
fi
version=$(sed -nE 's/^#define QN_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' "$root/include/quern.h" |
    paste -sd.)
compiles=0
grep -q avx2 /proc/cpuinfo && compiles=1

echo "TAP version 13"
passes "all components are installed" cmake --install "$build" --prefix "$prefix"
for file in quern.h quern.hpp quern_f.f90 quern_values.f90 quern_kernels.f90 quern_f.c quern_version.h quern/record.h quern/layout.h quern/view.h quern/ops.def quern/reducers.def quern/dtypes.def quern/math.def quern/builder.h quern/function.h quern/observe.h quern/bytes.h quern/dlpack.h quern/cuda.h quern/cache.h quern/embed.h quern/object.h quern/tune.h quern/fortran.h quern/view.hpp quern/function.hpp quern/value.hpp quern/builder.hpp quern/mdspan.hpp; do
    passes "$file is there" test -f "$prefix/include/$file"
done
pc=$(find "$prefix" -name quern.pc)
libdir=$(dirname "$(dirname "${pc:-$prefix/lib/pkgconfig/quern.pc}")")
passes "the soname link is there" test -L "$libdir/libquern.so.${version%%.*}"

# Components by themselves.
for component in runtime codegen tool dev doc; do
    passes "component $component" cmake --install "$build" --prefix "$folder/$component" --component $component
done
if [ -d "$build/lua" ]; then
    passes "component lua" cmake --install "$build" --prefix "$folder/lua" --component lua
    passes "... has the modules and its copyright" test "$(find "$folder/lua" -name quern.lua | wc -l)" = \
        "$(find "$folder/lua" -name core.so | wc -l)" -a -n "$(find "$folder/lua" -name copyright)"
else
    skip "no module for Lua"
    skip "no module for Lua"
fi
passes "runtime has no headers" test ! -e "$folder/runtime/include"
passes "runtime has the library" test -n "$(find "$folder/runtime" -name "libquern.so.$version")"
passes "runtime has no name for the linker" test -z "$(find "$folder/runtime" -name libquern.so)"
passes "runtime has no code generator" test -z "$(find "$folder/runtime" -name 'libquern-llvm*')"
passes "codegen has it" test -n "$(find "$folder/codegen" -name libquern-llvm.so)"
passes "tool has the tool" test -x "$folder/tool/bin/quern"
passes "... its manual page" test -n "$(find "$folder/tool" -name quern.1.gz)"
passes "... its completion for bash" test -f "$folder/tool/share/bash-completion/completions/quern"
passes "... and for zsh" test -f "$folder/tool/share/zsh/vendor-completions/_quern"
passes "every component has its copyright" test "$(find "$folder"/{runtime,codegen,tool,dev,doc} -name copyright | wc -l)" = 5
passes "dev has the static library" test -n "$(find "$folder/dev" -name libquern.a)"
passes "dev has it, and no library" test -n "$(find "$folder/dev" -name libquern.so)" -a \
    -z "$(find "$folder/dev" -name 'libquern.so.*')"
passes "doc has the pages" test -n "$(find "$folder/doc" -name tutorial.md)"

# CMake. The prefix is moved first: nothing may remember it.
mv "$prefix" "$folder/moved"
prefix="$folder/moved"
libdir="$prefix/${libdir#"$folder"/prefix/}"
passes "find_package" cmake -S "$use" -B "$folder/cmake" "-DCMAKE_PREFIX_PATH=$prefix"
passes "... builds" cmake --build "$folder/cmake"
passes "... C runs" prints "$folder/cmake/use_c"
passes "... C with the static library runs" \
    prints env QUERN_PROVIDER="$libdir/libquern-llvm.so" "$folder/cmake/use_archive"
passes "... and contains the library" bash -c "! ldd '$folder/cmake/use_archive' | grep libquern"
if command -v c++ > /dev/null; then
    passes "... C++ runs" prints "$folder/cmake/use_cpp"
else
    skip "no C++ compiler"
fi
# A project that the tool makes.
passes "quern new makes a project" bash -c "cd '$folder' && '$prefix/bin/quern' new first-try"
passes "... which finds the library" cmake -S "$folder/first-try" -B "$folder/first-try/build" \
    "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
passes "... builds" cmake --build "$folder/first-try/build"
said=$(sed -n 's/^It prints `\([^`]*\)`.*/\1/p' "$folder/first-try/README.md")
passes "... and prints what its README says" test -n "$said" -a "$("$folder/first-try/build/first-try" 2>&1)" = "$said"
sed 's/Quern 1\.0/Quern 99/' "$use/CMakeLists.txt" > "$folder/CMakeLists.txt"
cp "$use"/use.c* "$folder"
passes "... refuses another major version" bash -c \
    "! cmake -S '$folder' -B '$folder/other' '-DCMAKE_PREFIX_PATH=$prefix'"

# pkg-config.
export PKG_CONFIG_PATH="$libdir/pkgconfig"
# builds COMPILER STANDARD SOURCE OUTPUT
builds() {
    "$1" -std="$2" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "$3" -o "$4" \
        $(pkg-config --cflags --libs quern) -Wl,-rpath,"$libdir"
}
if command -v pkg-config > /dev/null; then
    passes "pkg-config knows the version" test "$(pkg-config --modversion quern)" = "$version"
    passes "... and the private libraries" bash -c "pkg-config --static --libs quern | grep -q -- -lpthread"
    if command -v gcc > /dev/null; then
        passes "... C builds as C99" builds gcc c99 "$use/use.c" "$folder/pc_c"
        passes "... C runs" prints "$folder/pc_c"
    else
        skip "no gcc"
    fi
    if command -v g++ > /dev/null; then
        passes "... C++ builds" builds g++ c++17 "$use/use.cpp" "$folder/pc_cpp"
        passes "... C++ runs" prints "$folder/pc_cpp"
    else
        skip "no g++"
    fi
else
    skip "no pkg-config"
fi
# The Lua module, with the interpreters that it was built for and that are here.
for lua in 5.4:lua5.4 5.1:luajit; do
    module=$(find "$prefix" -path "*/lua/${lua%%:*}/quern/core.so")
    if [ -n "$module" ] && command -v "${lua##*:}" > /dev/null; then
        passes "${lua##*:} finds the module, and that its library" env LUA_CPATH="$(dirname "$(dirname "$module")")/?.so" \
            LUA_PATH="$prefix/share/lua/${lua%%:*}/?.lua" "${lua##*:}" -e \
            'local q = require "quern"; assert(q.eval("sum(x*x)", {x = q.array {1, 2, 3}}) == 14)'
    else
        skip "no module for ${lua##*:}, or no interpreter"
    fi
done
passes "the installed tool runs" bash -c "[ ! -e '$prefix/bin/quern' ] || ldd '$prefix/bin/quern' | grep -q '$folder.*libquern'"
echo "1..$n"
exit $failed
