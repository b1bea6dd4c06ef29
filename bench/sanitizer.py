# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compute-sanitizer's four tools over every example, at small sizes with
partial tiles.

usage: sanitizer.py [--tools=DIR] [--tool=NAME]... [name...]

A line for each example and tool. Exits 1 where a tool found something, and
where compute-sanitizer is missing.

initcheck does not see what the TMA stores: it calls memory uninitialized that
was written in no other way. So the kernels of BULK are allowed findings, each
of which is looked at. They are believed false only if
1. all of them are printed, as many as the summary counts (the reads of a
   workspace are too many for the tool: those that it prints);
2. each is a read of the tensor that the kernel stores by the TMA: the copy of
   the output to the host (its size, and an address in it), or a read by the
   one kernel that reads the tensor, whose other reads are of nothing, at
   addresses no further apart than the tensor is long;
3. memcheck finds nothing, so no read of 2. is out of that tensor's bounds;
4. the same module with the tensor filled with NaN beforehand (which initcheck
   sees) is clean, and the result is numpy's: so the TMA has written every
   element, and nothing else, printed or not, was read that nobody wrote.
Everything else is a finding.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import run  # noqa: E402
from examples import EXAMPLES  # noqa: E402

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]


class Bulk:
    """A tensor that an example stores by the TMA alone: an output, or a
    workspace of `elements` by `reader`, which reads nothing else."""

    def __init__(self, tensor, kind, reader=None, elements=None):
        self.tensor, self.kind = tensor, numpy.dtype(kind)
        self.reader, self.elements = reader, elements

    def bytes(self, sizes, expected):
        count = (self.elements(*sizes) if self.reader
                 else expected[self.tensor].size)
        return count * self.kind.itemsize

    def preset(self, text):
        """The module with the tensor set before the kernel runs."""
        if self.reader:
            return replace(r"(workspace %s: [^\n]*)" % self.tensor,
                           r"\1 = nan", text)
        return replace(r"\bout (%s: )" % self.tensor, r"inout \1", text)


def replace(pattern, by, text):
    changed, count = re.subn(pattern, by, text)
    if count != 1:
        raise SystemExit("%s: found %d times" % (pattern, count))
    return changed


BULK = {
    "matmul_wgmma": Bulk("c", "f2"),
    "matmul_f8": Bulk("c", "f2"),
    "matmul_tf32": Bulk("c", "f4"),
    "matmul_split": Bulk("parts", "f4", reader="add_parts",
                         elements=lambda m, n, k: 4 * m * n),
    "conv_wgmma": Bulk("y", "f2"),
    "copy_tma": Bulk("y", "f2"),
}

HOST = re.compile(
    r"Host API memory access error at host access to 0x([0-9a-f]+) of size "
    r"([0-9,]+) bytes\n=+ +Uninitialized access to 0x([0-9a-f]+) on access by "
    r"cudaMemcpy source")
READ = re.compile(
    r"Uninitialized __global__ memory read of size (\d+) bytes\n"
    r"=+ +at (?:.* in )?(\w+)(?:\+0x[0-9a-f]+|\([^\n]*)\n"
    r"=+ +by thread [^\n]*\n=+ +Address 0x([0-9a-f]+)")
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) errors?$", re.M)
OVERFLOW = "Warning: Error buffer overflow has been detected"
UNPRINTED = re.compile(r"ERROR SUMMARY: (\d+) errors? w(?:as|ere) not printed")


def doubt(said, bulk, size):
    """Why the findings of a report are not all reads of that tensor, or None.
    size: its bytes."""
    host = [(int(base, 16), int(length.replace(",", "")), int(at, 16))
            for base, length, at in HOST.findall(said)]
    reads = [(int(length), kernel, int(at, 16))
             for length, kernel, at in READ.findall(said)]
    total, more = SUMMARY.search(said), UNPRINTED.search(said)
    unprinted = int(more[1]) if more and bulk.reader else 0
    if bulk.reader and OVERFLOW in said:  # Counted as one; the rest is not.
        unprinted += 1
    if not total or int(total[1]) != len(host) + len(reads) + unprinted:
        return "%s findings, %d of them understood" % (
            total[1] if total else "an unknown number of",
            len(host) + len(reads))
    if not host and not reads:
        return "it ended with an error"
    if bulk.reader:
        if host:
            return "the host reads memory that nobody wrote"
        others = {kernel for _, kernel, _ in reads} - {bulk.reader}
        if others:
            return "reads by %s" % ", ".join(sorted(others))
        first = min(at for _, _, at in reads)
        if max(at + length for length, _, at in reads) - first > size:
            return "reads further apart than %s is long" % bulk.tensor
        return None
    if reads:
        return "reads by %s" % reads[0][1]
    if len({base for base, _, _ in host}) > 1:
        return "copies of several tensors"
    for base, length, at in host:
        if length != size or not base <= at < base + length:
            return "%#x is not in %s" % (at, bulk.tensor)
    return None


def find():
    places = [os.environ.get("COMPUTE_SANITIZER"),
              shutil.which("compute-sanitizer"),
              "/usr/local/cuda/bin/compute-sanitizer"]
    for place in places:
        if place and os.path.exists(place):
            return place
    return None


def launch(sanitizer, tool, command, *more):
    return subprocess.run(
        [sanitizer, "--tool=" + tool, "--error-exitcode=99", *more] + command,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def command_of(hidet_run, name, folder):
    return run.command_line(hidet_run, name, EXAMPLES[name].sizes[1], "cuda",
                            folder)


def check(sanitizer, tool, hidet_run, name):
    more = []
    if tool == "initcheck" and name in BULK:
        more = ["--show-backtrace=no"]
        if not BULK[name].reader:
            more.append("--print-limit=1000000")
    with tempfile.TemporaryDirectory() as folder:
        return launch(sanitizer, tool, command_of(hidet_run, name, folder),
                      *more)


def check_preset(sanitizer, hidet_run, name):
    """initcheck's run with the tensor of BULK set to NaN beforehand."""
    bulk = BULK[name]
    with tempfile.TemporaryDirectory() as folder:
        command = command_of(hidet_run, name, folder)
        path = pathlib.Path(folder) / "preset.hir"
        path.write_text(bulk.preset(pathlib.Path(command[1]).read_text()))
        command[1] = str(path)
        if not bulk.reader:
            expected = EXAMPLES[name].make(EXAMPLES[name].sizes[1])[1]
            command.append("--input=" + run.save(
                folder, bulk.tensor, numpy.full(
                    expected[bulk.tensor].shape, numpy.nan, bulk.kind)))
        return launch(sanitizer, "initcheck", command)


def explain(sanitizer, hidet_run, name, result):
    """None where the findings of initcheck are proven false, else why not."""
    if result.returncode != 99:
        return "exit %d" % result.returncode
    sizes = EXAMPLES[name].sizes[1]
    bulk = BULK[name]
    why = doubt(result.stdout, bulk,
                bulk.bytes(sizes, EXAMPLES[name].make(sizes)[1]))
    if why:
        return why
    if check(sanitizer, "memcheck", hidet_run, name).returncode != 0:
        return "memcheck is not clean"
    preset = check_preset(sanitizer, hidet_run, name)
    if preset.returncode != 0:
        return "with %s set beforehand: exit %d\n%s" % (
            bulk.tensor, preset.returncode, preset.stdout[-2000:])
    return None


def verdict(sanitizer, tool, hidet_run, name):
    """What to say, and whether it is good."""
    result = check(sanitizer, tool, hidet_run, name)
    if result.returncode == 0:
        return "clean", True
    why = "exit %d" % result.returncode
    if tool == "initcheck" and name in BULK:
        why = explain(sanitizer, hidet_run, name, result)
        if not why:
            return ("clean but for %s findings, false: stores of %s by the "
                    "TMA" % (SUMMARY.search(result.stdout)[1],
                             BULK[name].tensor)), True
    rest = READ.sub("(a read)", HOST.sub("(a copy)", result.stdout))
    rest = re.sub(r"(=+ \((a \w+)\)\n=+ *\n)+", r"\1", rest)
    return "FINDINGS (%s)\n%s\n[...]\n%s" % (
        why, result.stdout[:4000], rest[-4000:]), False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--tool", action="append", choices=TOOLS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    sanitizer = find()
    if not sanitizer:
        print("compute-sanitizer: not found (COMPUTE_SANITIZER names it)")
        return 1
    hidet_run = os.path.join(options.tools, "hidet-run")
    findings = 0
    for name in options.names or list(EXAMPLES):
        for tool in options.tool or TOOLS:
            said, good = verdict(sanitizer, tool, hidet_run, name)
            findings += not good
            print("%-14s %-9s %s" % (name, tool, said), flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
