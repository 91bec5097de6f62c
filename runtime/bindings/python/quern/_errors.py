# SPDX-License-Identifier: Apache-2.0
"""Errors of Quern as exceptions. Each has the text of the library as its message, its status as a number, and the place in the
source of the caller where one was noted: line, and file as `path`."""

import re

from . import _quern


class Error(Exception):
    """An error of Quern: str(e) is one line, e.status the number of its status, e.line its line or 0."""

    def __init__(self, message, status=0, line=0):
        super().__init__(message)
        self.status = status
        self.line = line
        found = re.search(r"; at (.*?):(\d+)(?::(\d+))?$", message)
        self.path = found.group(1) if found else None


class BoundsError(Error, IndexError):
    """A kernel left a view; the access was not performed."""


class ArgumentError(Error, ValueError):
    """An argument does not fit: its value, shape, layout or overlap."""


class DtypeError(Error, TypeError):
    """Element types do not fit."""


class ParseError(Error, ValueError):
    """A text is not well formed."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory."""


class AssertionFailed(Error, AssertionError):
    """An assertion of a kernel does not hold."""


class Cancelled(Error):
    """A launch was cancelled, or its time was over."""


CLASSES = {
    "QN_ERR_BOUNDS": BoundsError,
    "QN_ERR_ASSERT": AssertionFailed,
    "QN_ERR_MEMORY": OutOfMemory,
    "QN_ERR_PARSE": ParseError,
    "QN_ERR_CANCELLED": Cancelled,
    **dict.fromkeys(["QN_ERR_DTYPE", "QN_ERR_TYPE"], DtypeError),
    **dict.fromkeys(["QN_ERR_ARGUMENT", "QN_ERR_RANK", "QN_ERR_EXTENT", "QN_ERR_READ_ONLY", "QN_ERR_OVERLAP",
                     "QN_ERR_NOT_INJECTIVE", "QN_ERR_ALIGNMENT", "QN_ERR_RANGE", "QN_ERR_COLLISION"], ArgumentError),
}


def by_status():
    """Classes by the numbers of their statuses."""
    return {_quern.number(name): c for name, c in CLASSES.items()}
