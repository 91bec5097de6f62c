#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: arrays to numpy and back through DLPack, where Python has numpy. PYTHON names another interpreter.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
build="${QN_BUILD_DIR:-$root/build/release}"
python="${PYTHON:-python3}"
# numpy may be that of the system's Python only, which need not be the first one.
if [ -z "${PYTHON:-}" ] && ! python3 -c 'import numpy' 2> /dev/null && /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
    python=/usr/bin/python3
fi
if ! "$python" -c 'import ctypes, numpy; numpy.from_dlpack' 2> /dev/null; then
    echo "1..0 # SKIP $python has no numpy with DLPack"
    exit 0
fi
exec "$python" "$root/tests/interop/numpy_dlpack.py" "$build/libquern.so"
