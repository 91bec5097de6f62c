#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the Python package with arrays in the memory of a GPU. Without QUERN_CUDA_DRIVER the driver is the one of tests/stub, which
# runs PTX itself, so that no GPU is needed.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
build="${QN_BUILD_DIR:-$root/build/release}"
export QUERN_CUDA_DRIVER="${QUERN_CUDA_DRIVER:-$build/tests/stub/runs/libcuda.so.1}"
python="${PYTHON:-python3}"
if [ ! -f "$build/python/quern/_quern.abi3.so" ]; then
    echo "1..0 # SKIP the Python package was not built: CPython 3.11 or its headers are missing"
    exit 0
fi
exec "$python" -B "$root/tests/interop/python/test_cuda.py" "$build/python"
