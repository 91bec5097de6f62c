# SPDX-License-Identifier: Apache-2.0
"""TAP for the tests of the Python package. numpy is None where it is missing; tests of it are skipped then."""

import sys

try:
    import numpy
except ImportError:
    numpy = None

n_tests = n_failed = 0


def ok(passed, what):
    global n_tests, n_failed
    n_tests += 1
    n_failed += not passed
    print("%s %d - %s" % ("ok" if passed else "not ok", n_tests, what), flush=True)
    return passed


def equal(found, expected, what):
    if not ok(found == expected, what):
        print("# found %r, expected %r" % (found, expected), flush=True)


def skip(what, why):
    ok(True, "%s # SKIP %s" % (what, why))


def raises(exceptions, call, part, what):
    """The call raises one of the exceptions, whose text has the part."""
    try:
        call()
    except exceptions as e:
        if not ok(part in str(e), what):
            print("# %s: %s" % (type(e).__name__, e), flush=True)
        return e
    except Exception as e:
        ok(False, what)
        print("# %s: %s" % (type(e).__name__, e), flush=True)
        return None
    ok(False, what + ": nothing was raised")


def done():
    print("1..%d" % n_tests)
    sys.exit(n_failed != 0)
