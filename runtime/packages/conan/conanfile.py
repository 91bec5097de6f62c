# SPDX-License-Identifier: Apache-2.0
"""A Conan 2 recipe, which builds the sources that it lies among:

    conan create runtime/packages/conan --build=missing

LLVM 19 is not a requirement of Conan's: it comes from the system, as llvm-19-dev on Debian, and with static_llvm=True, the
default, is linked into the code generator, so that who uses the package needs none. What is missing of the system is installed
with -c tools.system.package_manager:mode=install, and named otherwise. Programs find Quern by find_package(Quern), whose
files are the library's own, or by pkg-config.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout
from conan.tools.system.package_manager import Apt

ROOT = os.path.join("..", "..", "..")
SOURCES = ("CMakeLists.txt", "LICENSE", "NOTICE", "README.md", "docs/*", "examples/*", "include/*", "ir/*", "jit/*", "runtime/*")


class Quern(ConanFile):
    name = "quern"
    license = "Apache-2.0"
    description = "JIT compiler for array kernels"
    topics = ("jit", "llvm", "arrays", "kernels")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"static_llvm": [True, False]}
    default_options = {"static_llvm": True}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, ROOT, "include", "quern.h"))
        self.version = ".".join(re.findall(r"#define QN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, os.path.join(self.recipe_folder, ROOT), self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("quern is for Linux on x86-64")

    def system_requirements(self):
        static = ["zlib1g-dev", "libzstd-dev"] if self.options.static_llvm else []
        Apt(self).install(["llvm-19-dev"] + static, check=True)

    def layout(self):
        basic_layout(self, src_folder=".")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        for name, value in (("STATIC_LLVM", bool(self.options.static_llvm)), ("TESTS", False), ("EXAMPLES", False),
                            ("PYTHON", False), ("LUA", False), ("WERROR", False)):
            toolchain.cache_variables["QUERN_" + name] = value
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "NOTICE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "copyright-libquern-llvm", os.path.join(self.build_folder, "generated"),
             os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("pkg_config_name", "quern")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "Quern")]
        self.cpp_info.libs = ["quern"]
        self.cpp_info.system_libs = ["m", "dl", "pthread"]
