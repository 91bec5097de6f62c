# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of tests/interop/install with the package, and runs them: each compiles and launches a kernel."""

import os

from conan import ConanFile
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
        for program in ("use_c", "use_cpp"):
            self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
