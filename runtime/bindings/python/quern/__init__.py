# SPDX-License-Identifier: Apache-2.0
"""Quern, a JIT for array kernels, in Python. Three levels:

    quern.eval("a*x + sin(b)")       an expression over arrays
    @quern.kernel                    a function over indices
    quern.parse(text), Builder       kernel text and the builder

Arrays are whatever has the buffer protocol, DLPack, __array_interface__ or __cuda_array_interface__; nothing is copied.
"""

import builtins as _builtins
import os as _os
import threading as _threading

from . import _errors, _quern
from ._errors import (ArgumentError, AssertionFailed, BoundsError, Cancelled, DtypeError, Error, OutOfMemory,
                      ParseError)
from ._expression import eval, expression
from ._quern import Array, Builder, Kernel, counters, empty, number, numbers, parse, view
from ._trace import (all, any, atomic, check, if_, kernel, loop, max, min, parallel, print, prod, reduction, sequential, sum, while_)
from ._values import FUNCTIONS as _FUNCTIONS, cast, promote

__version__ = _quern.version
_here = _os.path.dirname(_os.path.abspath(__file__))
_provider = _os.path.join(_here, "libquern-llvm.so")
_quern._set_errors(_errors.by_status(), Error, _provider if _os.path.exists(_provider) else "", _threading.main_thread().ident)
_os.register_at_fork(after_in_child=_quern._after_fork)
globals().update({_name: _f for _name, _f in _FUNCTIONS.items() if _name not in ("round", "astype")})

__all__ = [n for n in globals() if not n.startswith("_") and not hasattr(_builtins, n)]


def zeros(shape, dtype="f64"):
    """A new quern.Array of zeros."""
    return empty(shape, dtype, 0, False)
