#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: a wheel in a new virtual environment, without numpy, the build folder and the environment of this shell: the tests of
# the Python package. QUERN_WHEEL names the wheel; else one is made of the libraries of this build.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
python="${PYTHON:-python3}"
skip() {
    echo "1..0 # SKIP $1"
    exit 0
}
[ -f "$build/python/quern/_quern.abi3.so" ] || skip "the Python package was not built: CPython 3.11 or its headers are missing"
"$python" -c 'import venv, ensurepip' 2> /dev/null || skip "$python has no venv"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheel="${QUERN_WHEEL:-$("$python" "$root/runtime/bindings/python/wheel.py" "$build" "$work")}"
if ! { "$python" -m venv "$work/venv" && "$work/venv/bin/pip" install -q --no-index --no-deps "$wheel"; } > "$work/log" 2>&1; then
    sed 's/^/# /' "$work/log"
    echo "1..1"
    echo "not ok 1 - $wheel is installed"
    exit 1
fi
cp -r "$root/tests/interop/python" "$work/tests"
cd "$work" || exit 1
env -i HOME="$work" QUERN_CACHE=off QUERN_NUM_THREADS=2 "$work/venv/bin/python" -B "$work/tests/run.py" installed
