# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs plans of random kernels in several ways and compares every element.

usage: devices.py [--tools=DIR] [--way=OPTIONS]... [--json=FILE]
                  [--seconds=N] [--compile-only] FOLDER|ARCHIVE|FILE...

unittests/Tools/KernelFilesTest.c writes the files (HIDET_KERNEL_FILES=FOLDER);
an ARCHIVE is a tar of them. A way is what hidet-run is given for it, such as
`--device=cuda --specialize=0`; without any: the simulator, the GPU, the GPU
with kernels for all sizes. All ways get the same inputs, and each has to give
the bits of the first. Two things the language leaves open: which NaN it is,
and of which sign the zero that min or max returns of two different ones. The
former is no difference; the latter is counted by itself.

One line a file; then each output that differs, by its kernel's number and
seed. A file that a way cannot run is run kernel by kernel, to name those that
fail. Exits 1 if anything differs or fails; files for which --seconds were not
enough are counted as not run, and fail, too. --compile-only compares nothing:
with a driver that runs nothing it shows that each kernel is compiled.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy

WAYS = ["--device=sim", "--device=cuda", "--device=cuda --specialize=0"]
TYPES = {"i32": numpy.int32, "f32": numpy.float32}
PLAN = re.compile(r"^plan all\((.*?)\)", re.S | re.M)
PARAMETER = re.compile(r"(in|inout) (\w+): (\w+)\[([0-9, ]+)\]")
LAUNCH = re.compile(r"^\s*launch (k_\d+)\((\d+), (\d+),", re.M)
# What a kernel calls the plan's tensors.
OWN = "xfygzh"


class File:
    """A plan, and inputs for it that depend on its name alone."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder
        text = path.read_text()
        self.parameters = [
            (name, kind, tuple(int(n) for n in shape.split(",")),
             mode == "inout")
            for mode, name, kind, shape in PARAMETER.findall(
                PLAN.search(text)[1])]
        self.launches = [(name, int(n), int(m))
                         for name, n, m in LAUNCH.findall(text)]
        if not self.launches:
            raise SystemExit("%s: launches nothing" % path)
        random = numpy.random.RandomState(int(path.stem) % 2**32)
        for name, kind, shape, _ in self.parameters:
            least, most = (-20, 90) if kind == "i32" else (-320, 320)
            value = random.randint(least, most, shape).astype(TYPES[kind])
            numpy.save(folder / (name + ".npy"),
                       value if kind == "i32" else value / TYPES[kind](8))

    def seed(self, number):
        return int(self.path.stem) + int(number)

    def inputs(self, kernel=None):
        """hidet-run's inputs of the plan, or of one kernel of it."""
        if not kernel:
            return ["--input=%s=@%s" % (p[0], self.folder / (p[0] + ".npy"))
                    for p in self.parameters]
        number = kernel[0].split("_")[1]
        return ["--entry=" + kernel[0], "--input=n=%d" % kernel[1],
                "--input=m=%d" % kernel[2]] + [
            "--input=%s=@%s" % (own, self.folder / (
                own + ("" if own == "f" else "_" + number) + ".npy"))
            for own in OWN]

    def outputs(self):
        return [p[0] for p in self.parameters if p[3]]


def hidet_run(options, way, arguments, seconds):
    command = [os.path.join(options.tools, "hidet-run"), *shlex.split(way),
               "-q", *arguments]
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds)
    except subprocess.TimeoutExpired:
        return -1, "", "took longer than %d s" % seconds
    return done.returncode, done.stdout


def device_name(options, way, file, folder):
    """Of a GPU; the kind of device of another."""
    report = folder / "report.json"
    hidet_run(options, way, [str(file.path), "--json=%s" % report] +
              file.inputs(file.launches[0]), 60)
    if not report.exists():
        return None
    data = json.loads(report.read_text())
    return data.get("device_name", data.get("device"))


def run_way(options, file, way, number, left):
    """None and what it wrote, or what it said where it failed."""
    folder = file.folder / str(number)
    folder.mkdir()
    code, said = hidet_run(options, way, [str(file.path)] + file.inputs() + [
        "--output=%s=@%s" % (name, folder / (name + ".npy"))
        for name in file.outputs()], max(left, 1))[:2]
    if code != 0:
        return "exit %d: %s" % (code, said.strip()[-600:]), None
    return None, {name: numpy.load(folder / (name + ".npy"))
                  for name in file.outputs()}


def compare(want, got):
    """How many elements differ, and how many of them are two zeros."""
    if want.dtype != got.dtype or want.shape != got.shape:
        return want.size, 0
    if want.dtype != numpy.float32:
        return int((want != got).sum()), 0
    bits = want.view(numpy.uint32) != got.view(numpy.uint32)
    bits &= ~(numpy.isnan(want) & numpy.isnan(got))
    zeros = bits & (want == 0) & (got == 0)
    return int(bits.sum()), int(zeros.sum())


def culprits(options, file, way, end):
    """Which kernels a way cannot run, one by one."""
    found = []
    for kernel in file.launches:
        if time.monotonic() > end:
            found.append({"kernel": "(no time for the rest)"})
            break
        code, said = hidet_run(options, way,
                               [str(file.path)] + file.inputs(kernel), 60)[:2]
        if code != 0:
            found.append({"kernel": kernel[0],
                          "seed": file.seed(kernel[0].split("_")[1]),
                          "said": said.strip()[-600:]})
    return found


def check_file(options, path, end):
    start = time.monotonic()
    row = {"file": path.name, "values": 0, "zeros": 0, "differ": [],
           "failed": []}
    with tempfile.TemporaryDirectory() as folder:
        file = File(path, pathlib.Path(folder))
        row["kernels"] = len(file.launches)
        first = None
        for number, way in enumerate(options.way):
            error, results = run_way(options, file, way, number,
                                     end - time.monotonic())
            if error:
                row["failed"].append({
                    "way": way, "said": error,
                    "kernels": culprits(options, file, way, end)})
                continue
            if first is None:
                first = results
            if options.compile_only or results is first:
                continue
            for name, want in first.items():
                differ, zeros = compare(want, results[name])
                row["values"] += want.size
                row["zeros"] += zeros
                if differ > zeros:
                    at = numpy.argwhere(want != results[name])
                    row["differ"].append({
                        "way": way, "output": name, "elements": differ - zeros,
                        "seed": file.seed(name.split("_")[1]),
                        "first": at[0].tolist() if len(at) else None})
    row["seconds"] = round(time.monotonic() - start, 2)
    return row


def report(row):
    print("%-14s %3d kernels  %8d values  %5d differ  %3d signs of zeros  "
          "%5.1f s  %s" % (
              row["file"], row["kernels"], row["values"],
              sum(d["elements"] for d in row["differ"]), row["zeros"],
              row["seconds"],
              "ok" if not row["differ"] and not row["failed"] else "FAILED"),
          flush=True)
    for d in row["differ"]:
        print("  %s: %s of the kernel of seed %d: %d elements, first %s" % (
            d["way"], d["output"], d["seed"], d["elements"], d["first"]))
    for f in row["failed"]:
        print("  %s: %s" % (f["way"], f["said"]))
        for k in f["kernels"]:
            print("    %s" % " ".join(str(v) for v in k.values()))


def files(paths, folder):
    """The .hir files of all paths; archives are unpacked into the folder."""
    found = []
    for path in map(pathlib.Path, paths):
        if not path.exists():
            sys.exit("%s: no such file or folder" % path)
        if path.is_file() and path.suffix != ".hir":
            with tarfile.open(path) as archive:
                for member in archive.getmembers():
                    name = pathlib.PurePath(member.name).name
                    if member.isfile() and name.endswith(".hir"):
                        target = folder / name
                        target.write_bytes(archive.extractfile(member).read())
            path = folder
        found += sorted(path.glob("*.hir")) if path.is_dir() else [path]
    return found


def check_all(options, paths, folder):
    end = time.monotonic() + options.seconds
    names = {way: device_name(options, way, File(paths[0], folder), folder)
             for way in options.way}
    for way, name in names.items():
        print("%s: %s" % (way, name))
    rows = []
    for path in paths:
        if time.monotonic() > end:
            break
        rows.append(check_file(options, path, end))
        report(rows[-1])
    bad = [r for r in rows if r["differ"] or r["failed"]]
    total = {"ways": names, "files": len(paths), "not_run":
             len(paths) - len(rows), "bad": len(bad),
             "kernels": sum(r["kernels"] for r in rows),
             "values": sum(r["values"] for r in rows),
             "zeros": sum(r["zeros"] for r in rows), "rows": rows}
    print("%d files, %d kernels, %d values compared: %d files FAILED, %d not "
          "run, %d signs of zeros" % (
              len(rows), total["kernels"], total["values"], len(bad),
              total["not_run"], total["zeros"]))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(total, indent=1))
    compared = options.compile_only or total["values"] > 0
    return 1 if bad or total["not_run"] or not compared else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--way", action="append")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args()
    options.way = options.way or WAYS
    with tempfile.TemporaryDirectory() as folder:
        paths = files(options.paths, pathlib.Path(folder))
        if not paths:
            sys.exit("no .hir files")
        return check_all(options, paths, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
