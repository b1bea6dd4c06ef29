# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A wheel with the library inside is for any Python 3 of this platform; one
without (from a checkout, which has it in build/) is for all."""

import pathlib
import platform

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

LIBRARY = pathlib.Path(__file__).parent / "hidet" / "lib" / "libhidet.so.0"


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = not LIBRARY.exists()

    def get_tag(self):
        if self.root_is_pure:
            return "py3", "none", "any"
        version = platform.libc_ver()[1].replace(".", "_")
        machine = platform.machine()
        return "py3", "none", f"manylinux_{version}_{machine}"


setup(cmdclass={"bdist_wheel": Wheel})
