# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a process's start to its first answer: from the model alone, from the
model and a cache that is filled, and from a compiled model's file.

Milliseconds, the least of --turns runs of each, one after the other: of the
process until its answer is there, without what the driver takes to start
(`driver` of --time-passes) and, on the simulator, without running the kernels
(`run`, which is all but everything there); and of the steps that take the most.
Beside them the size of the file over that of the weights.

usage: start.py [--tools=FOLDER] [--device=sim] [--precision=P] [--json=FILE]
                [--input=VALUE] MODEL.onnx...
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

ROW = re.compile(r"^ *([0-9.]+) +[0-9.]+%  (.+)$", re.MULTILINE)
MOST = 6  # Steps that are shown.


def measure(name, command, device):
    """Milliseconds until the process says its answer, and those of each step.
    From nothing means that the driver keeps nothing, either."""
    kept = {"CUDA_CACHE_DISABLE": "1"} if name == "nothing" else {}
    start = time.monotonic()
    process = subprocess.Popen(command + ["--time-passes"], text=True,
                               env={**os.environ, **kept},
                               stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    said = []
    for line in process.stdout:
        said.append((1e3 * (time.monotonic() - start), line))
    if process.wait():
        raise RuntimeError("".join(line for _, line in said))
    rows = {step: float(ms) for ms, step in
            ROW.findall("".join(line for _, line in said))}
    answered = next(ms for ms, line in said if " mean " in line)
    other = "driver" if device.startswith("cuda") else "run"
    return answered - rows.get(other, 0), rows


def weights_bytes(tool, model):
    text = subprocess.run([tool, model, "--check"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    return 1e6 * float(re.search(r"([0-9.]+) MB of weights", text)[1])


def measure_model(tool, model, args, folder):
    options = ["--device=" + args.device, "--precision=" + args.precision]
    options += ["--input=" + args.input] if args.input else []
    file, cache = folder / "m.hidet", "--cache-dir=%s" % (folder / "cache")
    subprocess.run([tool, model, *options, cache, "-q", "--save=%s" % file],
                   check=True, stderr=subprocess.DEVNULL)
    given = [option for option in options if "precision" not in option]
    commands = {"nothing": [tool, model, *options, "--no-cache"],
                "cache": [tool, model, *options, cache],
                "file": [tool, str(file), *given, "--no-cache"]}
    row = {"model": pathlib.Path(model).stem, "device": args.device,
           "precision": args.precision,
           "file_over_weights": file.stat().st_size /
           weights_bytes(tool, model)}
    found = {name: [] for name in commands}
    for _ in range(args.turns):
        for name, command in commands.items():
            found[name].append(measure(name, command, args.device))
    for name, times in found.items():
        row[name + "_ms"], steps = min(times, key=lambda both: both[0])
        row[name + "_steps_ms"] = {
            step: steps[step] for step in sorted(steps, key=steps.get)[::-1]
            if step not in ("total", "driver", "run")}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--precision", default="model")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--input", help="for all inputs of the model")
    parser.add_argument("--json")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    tool = str(pathlib.Path(args.tools) / "hidet-run")
    rows = []
    print("%-16s%10s%10s%10s%16s" % ("", "nothing", "cache", "file",
                                     "file/weights"))
    for model in args.models:
        with tempfile.TemporaryDirectory() as folder:
            row = measure_model(tool, model, args, pathlib.Path(folder))
        rows.append(row)
        print("%-16s%10.1f%10.1f%10.1f%16.2f" % (
            row["model"], row["nothing_ms"], row["cache_ms"], row["file_ms"],
            row["file_over_weights"]))
        for name in ("cache", "file"):
            steps = list(row[name + "_steps_ms"].items())[:MOST]
            print("    %s: " % name + ", ".join("%s %.1f" % step
                                                for step in steps))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
