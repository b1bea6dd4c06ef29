# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/package.sh packs is small, needs glibc and libgcc_s alone, and runs where it
is unpacked: the examples against numpy, a model, PTX.

usage: check_package.py SOURCE
"""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

MIB = 64
GLIBC = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-x86-64)\.so\.\d")
OURS = "libhidet.so.0"


def faults(dynamic, sections):
    """What is wrong with an executable or a library, by readelf's words."""
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not GLIBC.fullmatch(name) and name != OURS:
            yield "needs " + name
    for paths in re.findall(r"\(RU?N?PATH\).*\[(.*)\]", dynamic):
        for path in paths.split(":"):
            if not path.startswith("$ORIGIN"):
                yield "looks for libraries in " + path
    for name in re.findall(r" (\.symtab|\.debug_\w+) ", sections):
        yield "is not stripped of " + name


def output(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def check(source, folder):
    archive = folder / "hidet.tar.gz"
    subprocess.run([source / "scripts/package.sh", archive], check=True)
    if archive.stat().st_size > MIB << 20:
        yield "the archive is larger than %d MiB" % MIB
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    binaries = [path for path in sorted((folder / "hidet").rglob("*"))
                if path.is_file() and not path.is_symlink() and is_elf(path)]
    if len(binaries) != 3:
        yield "two tools and a library are expected: %s" % binaries
    for path in binaries:
        for fault in faults(output("readelf", "-dW", path),
                            output("readelf", "-SW", path)):
            yield "%s %s" % (path.name, fault)
    tools = folder / "hidet" / "bin"
    ptx = output(tools / "hidet-opt", "--emit=ptx", "--target=sm_90a",
                 source / "examples/matmul_wgmma.hir")
    if "wgmma.mma_async" not in ptx:
        yield "no PTX"
    for script, option in (("run.py", "--device=sim"), ("digits/run.py", "")):
        command = [sys.executable, source / "examples" / script,
                   "--tools=%s" % tools] + [option] * bool(option)
        if subprocess.run(command).returncode != 0:
            yield "examples/%s fails" % script


def main():
    os.environ.pop("LD_LIBRARY_PATH", None)
    with tempfile.TemporaryDirectory() as folder:
        found = list(check(pathlib.Path(sys.argv[1]), pathlib.Path(folder)))
    print("\n".join(found) or "a package that runs")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
