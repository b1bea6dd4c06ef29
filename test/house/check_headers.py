# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each header compiles by itself, and the public ones as C++ too.

usage: check_headers.py ROOT COMPILER FLAG...
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys


def compile_header(command, header):
    source = '#include "%s"\n' % header
    result = subprocess.run(command + ["-fsyntax-only", "-"], input=source,
                            capture_output=True, text=True)
    return None if result.returncode == 0 else "%s:\n%s" % (header,
                                                            result.stderr)


def main():
    root = pathlib.Path(sys.argv[1])
    compiler, flags = sys.argv[2], sys.argv[3:]
    headers = sorted((root / "lib").rglob("*.h"))
    public = sorted((root / "include").rglob("*.h"))
    strict = ["-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror"]
    as_c = [compiler, "-std=c17", "-x", "c"] + strict + flags
    as_cxx = [compiler, "-std=c++17", "-x", "c++", "-Wall", "-Werror"] + flags

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(
            lambda job: compile_header(*job),
            [(as_c, h) for h in headers + public] +
            [(as_cxx, h) for h in public if not missing_cxx(compiler)]))
    failed = [result for result in results if result]
    print("\n".join(failed) or "%d headers compile alone" % len(results))
    sys.exit(bool(failed))


def missing_cxx(compiler):
    probe = subprocess.run([compiler, "-x", "c++", "-fsyntax-only", "-"],
                           input="", capture_output=True, text=True)
    return probe.returncode != 0


if __name__ == "__main__":
    main()
