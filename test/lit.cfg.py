# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How lit runs test/.

A test is a .hir or .test file with RUN lines. `hidet-opt`, `hidet-run`,
`FileCheck` and `not` are on the path. Beside lit's own %s, %S, %t:

  %python         the Python with numpy
  %examples       the folder examples/
  %exit           %exit N COMMAND... succeeds where COMMAND exits with N
  %sanitize       %sanitize FILE runs its kernels under --sanitize
  %unittests      the folder of the unit tests' executables
  %fakecuda       %fakecuda COMMAND... with a CUDA driver that runs nothing
  %ptxas-check    %ptxas-check FILE.ptx ARCH assembles, where ptxas is present

Features (REQUIRES: ...): numpy, ptxas, cuda, asan, tsan.
"""

import ctypes
import os
import shutil
import subprocess

import lit.formats
import lit.util

config.name = "hidet"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".hir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.hidet_binary_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [config.hidet_tools_dir, config.llvm_tools_dir, os.environ["PATH"]]
)
# Tests neither use nor fill the cache of whoever runs them.
config.environment["HIDET_CACHE_DIR"] = os.path.join(
    config.test_exec_root, "cache"
)
for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS",
             "HIDET_TEST_DEVICE", "LD_LIBRARY_PATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# LLVM is not built for ThreadSanitizer, which misses what orders its threads.
if "thread" in config.hidet_sanitize:
    config.environment["TSAN_OPTIONS"] = ":".join(filter(None, [
        config.environment.get("TSAN_OPTIONS"),
        "suppressions=" + os.path.join(config.test_source_root,
                                       "tools", "tsan.txt"),
    ]))

config.substitutions += [
    ("%python", config.hidet_python),
    (
        "%sanitize",
        "%s %s" % (
            config.hidet_python,
            os.path.join(config.test_source_root, "tools", "sanitize.py"),
        ),
    ),
    ("%examples", os.path.join(config.hidet_source_dir, "examples")),
    ("%intrinsics", os.path.join(config.hidet_source_dir, "lib/IR/Intrinsics.def")),
    ("%scalars", os.path.join(config.hidet_source_dir, "lib/IR/Scalars.def")),
    ("%tools", config.hidet_tools_dir),
    ("%unittests", os.path.join(config.hidet_binary_dir, "unittests")),
    (
        "%fakecuda",
        "env LD_LIBRARY_PATH=%s" % os.path.join(
            config.hidet_binary_dir, "unittests", "fakecuda"
        ),
    ),
    (
        "%exit",
        "%s %s" % (
            config.hidet_python,
            os.path.join(config.test_source_root, "tools", "exit_code.py"),
        ),
    ),
    (
        "%ptxas-check",
        "%s %s %s" % (
            config.hidet_python,
            os.path.join(config.test_source_root, "tools", "ptxas_check.py"),
            os.path.join(config.test_exec_root, "ptxas.count"),
        ),
    ),
]


def has_numpy():
    probe = [config.hidet_python, "-c", "import numpy"]
    return subprocess.run(probe, capture_output=True).returncode == 0


def has_cuda():
    """A device is said to be there, or the driver can be opened."""
    if "HIDET_TEST_DEVICE" in os.environ:
        return os.environ["HIDET_TEST_DEVICE"].startswith("cuda")
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


# A test that hangs is stopped, where lit can (it wants psutil).
if lit.util.killProcessAndChildrenIsSupported()[0]:
    lit_config.maxIndividualTestTime = 300

features = {
    "numpy": has_numpy(),
    "ptxas": shutil.which("ptxas") is not None,
    "cuda": has_cuda(),
    "asan": "address" in config.hidet_sanitize,
    "tsan": "thread" in config.hidet_sanitize,
    "valgrind": (shutil.which("valgrind") is not None
                 and not config.hidet_sanitize),
}
config.available_features.update(n for n, present in features.items() if present)
