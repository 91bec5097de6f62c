# SPDX-License-Identifier: Apache-2.0
"""run.py PACKAGE_FOLDER: all tests of the Python package, as TAP. See check/python.sh."""

import os
import sys

if sys.argv[1] != "installed":
    sys.path.insert(0, sys.argv[1])
sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))

import tap

print("TAP version 13")
print("# Python %s, numpy %s" % (sys.version.split()[0], tap.numpy and tap.numpy.__version__))
import test_arrays
import test_eval
import test_trace
import test_process

tap.done()
