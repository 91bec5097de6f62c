#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs as root in a new Debian, with the packages in /in: installs them, runs a first kernel, then compiles programs of a
# user's. Prints "ok WHAT" or "not ok WHAT", and "done" at the end. See check_debian.sh.
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 QUERN_CACHE=off
cd /in || exit 1

passes() {
    local what="$1"
    shift
    if "$@" > step 2>&1; then
        echo "ok $what"
    else
        echo "not ok $what"
        tail -20 step | sed 's/^/  /'
    fi
}

# says TEXT COMMAND...: the command succeeds, and its output contains the text.
says() {
    local text="$1" output
    shift
    output=$("$@" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    [[ "$output" == *"$text"* ]]
}

compiles=0
grep -q avx2 /proc/cpuinfo && compiles=1
run=(quern run saxpy.qn "x=iota:f32[8]" "y=ones:f32[8]" a=2.5)
no_network=(-o Acquire::http::Proxy=http://127.0.0.1:9 -o Acquire::https::Proxy=http://127.0.0.1:9)

passes "there is no compiler" bash -c "! command -v cc && ! command -v gcc && ! command -v clang && ! command -v ld"
start=$(date +%s%N)
passes "library, code generator and tool are installed without the network" \
    apt-get install -y -q "${no_network[@]}" ./libquern1_*.deb ./libquern-llvm_*.deb ./quern_*.deb
passes "a first kernel gives its first result" says "1 3.5 6" "${run[@]}"
ms=$((($(date +%s%N) - start) / 1000000))
echo "  $ms ms from the packages to the result"
passes "... within a minute" test $ms -lt 60000
[ $compiles = 0 ] || passes "... in generated code" says "1 3.5 6" "${run[@]}" --engine native
passes "the tool writes a picture as PNG" bash -c 'quern bench saxpy.qn "x=iota:f32[1024]" "y=ones:f32[1024]" a=2.5 --plot p.png &&
    [ "$(head -c 8 p.png | od -An -tx1)" = " 89 50 4e 47 0d 0a 1a 0a" ]'
passes "the tool uses the installed library" bash -c "ldd /usr/bin/quern | grep -q '=> /.*lib/x86_64-linux-gnu/libquern.so.1 '"

start=$(date +%s%N)
passes "Python and the package for it are installed" apt-get install -y -q --no-install-recommends ./python3-quern_*.deb
passes "an expression of Python gives its first result" says "[1.0, 3.5, 6.0]" /usr/bin/python3 -c '
import quern
x, y = quern.zeros(3), quern.zeros(3)
memoryview(x)[1], memoryview(x)[2] = 1.0, 2.0
print(quern.eval("2.5*x + exp(y)").tolist())'
echo "  $((($(date +%s%N) - start) / 1000000)) ms from the package to the result, with the download of Python"
passes "... in generated code" test "$(/usr/bin/python3 -c '
import quern
quern.eval("x + 1", {"x": quern.zeros(3)})
print(quern.counters()["compiles"])' 2>&1)" = $compiles
passes "the tests of the package pass there" bash -c '/usr/bin/python3 -B python/run.py installed > python.tap; ! grep "^not ok" python.tap && tail -1 python.tap | grep -qE "^1\.\.[0-9]{2,}$"'
passes "numpy is installed" apt-get install -y -q --no-install-recommends python3-numpy
passes "... and its ufuncs give what the package gives" bash -c '/usr/bin/python3 -B python/run.py installed > python.tap; ! grep "^not ok" python.tap && tail -1 python.tap | grep -qE "^1\.\.[0-9]{3,}$"'

passes "the tool has its manual page" bash -c "dpkg -L quern | grep -q man1/quern.1.gz"
passes "... and its completion" bash -c \
    "source /usr/share/bash-completion/completions/quern; COMP_WORDS=(quern ru) COMP_CWORD=1; _quern; [ \${COMPREPLY[0]} = run ]"

passes "a compiler, CMake and pkg-config are installed" \
    apt-get install -y -q --no-install-recommends g++ libc6-dev make cmake pkg-config
start=$(date +%s%N)
passes "the headers are installed" apt-get install -y -q "${no_network[@]}" ./libquern-dev_*.deb ./quern-doc_*.deb
passes "a C program compiles with pkg-config" bash -c 'cc hello.c -o hello $(pkg-config --cflags --libs quern)'
passes "... and prints what README.md says" says "12 24 36 48" ./hello
passes "find_package finds the library" cmake -S install -B cmake
passes "... programs in C and C++ are built" cmake --build cmake
for program in use_c use_cpp; do
    passes "... $program runs" says "y[10] = 21, compiles $compiles" cmake/$program
done
passes "... with the static library too" says "y[10] = 21, compiles $compiles" \
    env QUERN_PROVIDER=/usr/lib/x86_64-linux-gnu/libquern-llvm.so cmake/use_archive
echo "  $((($(date +%s%N) - start) / 1000000)) ms from the headers to these results"
passes "the interpreters of Lua are installed" apt-get install -y -q --no-install-recommends lua5.4 luajit
passes "the module for Lua is installed" apt-get install -y -q "${no_network[@]}" ./lua-quern_*.deb
for lua in lua5.4 luajit; do
    passes "... $lua finds it" says "14 $compiles" "$lua" -e \
        'local q = require "quern"; io.write(string.format("%d ", q.eval("sum(x*x)", {x = q.array {1, 2, 3}})), math.min(q.counters().compiles, 1))'
done
passes "the packages are removed" apt-get purge -y -q libquern1 libquern-llvm libquern-dev quern quern-doc lua-quern python3-quern
passes "... and leave nothing" bash -c "! find /usr /etc -name '*quern*' | grep ."
echo "done"
