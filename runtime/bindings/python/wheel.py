# SPDX-License-Identifier: Apache-2.0
"""wheel.py BUILD OUTPUT: a wheel of the package quern with the libraries of a build folder inside. It serves CPython 3.11
and later; its tag names the glibc that its libraries need. Needs readelf, nothing else but Python."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
METADATA = """Metadata-Version: 2.1
Name: quern
Version: %s
Summary: A JIT for array kernels: expressions and functions over indices, compiled for the arrays they meet
License: Apache-2.0
Requires-Python: >=3.11
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

"""


def files_of(build):
    """(name in the wheel, path) of all files."""
    package = os.path.join(build, "python", "quern")
    for name in sorted(os.listdir(package)):
        if name.endswith((".py", ".so")):
            yield "quern/" + name, os.path.join(package, name)
    for name in ("libquern.so.1", "libquern-llvm.so"):
        yield "quern/" + name, os.path.realpath(os.path.join(build, name))


def glibc_of(paths):
    """The minor version of the newest glibc symbol that a library needs."""
    text = "".join(subprocess.run(["readelf", "-VW", p], capture_output=True, text=True, check=True).stdout for p in paths)
    return max(int(n) for n in re.findall(r"GLIBC_2\.(\d+)", text))


def main(build, output):
    header = open(os.path.join(ROOT, "include", "quern.h"), encoding="utf-8").read()
    version = ".".join(re.findall(r"#define QN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    files = list(files_of(build))
    glibc = glibc_of([path for _, path in files if ".so" in path])
    tag = "cp311-abi3-manylinux_2_%d_x86_64" % max(glibc, 17)
    info = "quern-%s.dist-info/" % version
    contents = [(name, open(path, "rb").read(), 0o755 if ".so" in name else 0o644) for name, path in files]
    readme = open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8").read()
    contents.append((info + "METADATA", (METADATA % version + readme).encode(), 0o644))
    contents.append((info + "WHEEL", ("Wheel-Version: 1.0\nGenerator: quern\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode(), 0o644))
    for name in ("LICENSE", "NOTICE"):
        contents.append((info + name, open(os.path.join(ROOT, name), "rb").read(), 0o644))
    # Licences and versions of what is linked statically, which builds with LLVM's shared library do not have.
    for name, source in (("copyright", "copyright-libquern-llvm"), ("quern.spdx.json", "quern.spdx.json")):
        path = os.path.join(build, "generated", source)
        if os.path.exists(path):
            contents.append((info + name, open(path, "rb").read(), 0o644))
    record = ""
    for name, data, _ in contents:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    record += info + "RECORD,,\n"
    contents.append((info + "RECORD", record.encode(), 0o644))
    path = os.path.join(output, "quern-%s-%s.whl" % (version, tag))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data, mode in contents:
            entry = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


main(*sys.argv[1:])
