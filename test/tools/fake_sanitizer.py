#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stands for compute-sanitizer where there is no GPU: runs the command on the
simulator and reports, in compute-sanitizer's words, what $FAKE_FINDINGS asks.

usage: fake_sanitizer.py --tool=NAME --error-exitcode=N ... hidet-run FILE ...

FAKE_FINDINGS, for copy_tma (9360 bytes) and matmul_split (549120 bytes):
  output     initcheck: each 32 bytes of the output (or a part of the workspace)
  outside    the same, and one address past it
  unprinted  the same as output, and one that is counted and not accounted for
  kernel     reads by a kernel that has no business there
  overflow   the same as output, of which the tool has lost the most
  preset     output, and the run with the tensor set beforehand is not clean
  bounds     output, and memcheck is not clean
"""

import os
import pathlib
import subprocess
import sys

BASE = 0x7f0afca02600


def host(at):
    return ("========= Host API memory access error at host access to %#x of "
            "size 9,360 bytes\n"
            "=========     Uninitialized access to %#x on access by "
            "cudaMemcpy source\n========= " % (BASE, at))


def read(at, kernel="add_parts"):
    return ("========= Uninitialized __global__ memory read of size 4 bytes\n"
            "=========     at %s+0xd0\n"
            "=========     by thread (96,0,0) in block (8,0,0)\n"
            "=========     Address %#x\n========= " % (kernel, at))


def findings(mode, split):
    if split:
        found = [read(BASE + at) for at in range(0, 549120, 1024)]
        past = read(BASE + 549120)
    else:
        found = [host(BASE + at) for at in range(0, 9360, 32)]
        past = host(BASE + 9360)
    if mode == "outside":
        found.insert(1, past)
    if mode == "kernel":
        found.insert(1, read(BASE, "copy_tma"))
    return found


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    options = options[:next(i for i, a in enumerate(sys.argv[1:])
                            if not a.startswith("--"))]
    command = [a.replace("--device=cuda", "--device=sim")
               for a in sys.argv[1 + len(options):]]
    module, mode = pathlib.Path(command[1]).name, os.environ["FAKE_FINDINGS"]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    found = []
    if "--tool=initcheck" in options and (module != "preset.hir" or
                                          mode == "preset"):
        found = findings(mode, module == "matmul_split.hir")
    if "--tool=memcheck" in options and mode == "bounds":
        found = ["========= Invalid __global__ read of size 4 bytes"]
    if mode == "overflow" and found:
        found = ["========= Warning: Error buffer overflow has been detected. "
                 "Some records have been dropped"] + found[:90]
    limit = 1000000 if "--print-limit=1000000" in options else 100
    print("========= COMPUTE-SANITIZER", *found[:limit], done.stdout, sep="\n",
          end="")
    print("========= ERROR SUMMARY: %d errors" % (
        len(found) + (mode == "unprinted" and len(found) > 0)))
    if len(found) > limit:
        print("========= ERROR SUMMARY: %d errors were not printed. Use "
              "--print-limit option to adjust the number of printed errors" % (
                  len(found) - limit))
    sys.exit(99 if found else done.returncode)


if __name__ == "__main__":
    main()
