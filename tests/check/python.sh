#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the Python package, where CPython 3.11 or later was there with its headers when it was built. PYTHON names another
# interpreter. numpy is the reference of some tests, which are skipped without it.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
export QUERN_NUM_THREADS="${QUERN_NUM_THREADS:-2}"
build="${QN_BUILD_DIR:-$root/build/release}"
python="${PYTHON:-python3}"
# numpy may be that of the system's Python only, which need not be the first one.
if [ -z "${PYTHON:-}" ] && ! python3 -c 'import numpy' 2> /dev/null && /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
    python=/usr/bin/python3
fi
if [ ! -f "$build/python/quern/_quern.abi3.so" ]; then
    echo "1..0 # SKIP the Python package was not built: CPython 3.11 or its headers are missing"
    exit 0
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
    echo "1..0 # SKIP $python is older than 3.11"
    exit 0
fi
exec "$python" -B "$root/tests/interop/python/run.py" "$build/python"
