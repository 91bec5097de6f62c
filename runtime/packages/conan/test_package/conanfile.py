# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of tests/interop/install with the package, and runs them: each compiles and launches a kernel.

A program interprets its kernel where the code generator is not found, so the test reads how often code was generated. The
cache on disk is off, as the second program would find there what the first has compiled."""

import os
from io import StringIO

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TestQuern(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self, src_folder=os.path.join("..", "..", "..", "..", "tests", "interop", "install"))

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
            compiles = "compiles %d" % ("avx2" in cpuinfo.read())
        for program in ("use_c", "use_cpp"):
            printed = StringIO()
            self.run("QUERN_CACHE=off " + os.path.join(self.cpp.build.bindir, program), stdout=printed, env="conanrun")
            self.output.info(printed.getvalue().strip())
            if compiles not in printed.getvalue():
                raise ConanException("%s was to say: %s" % (program, compiles))
