# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models, batch 1: ours, one inference a CUDA graph, and the same with no
launch begun before the last one has ended, against PyTorch's eager in the same
precision as a CUDA graph, and what Inductor makes of it as one. Errors are the
largest against PyTorch in f32 over the largest value, ours and PyTorch's.

usage: models.py --tools=FOLDER [--json=FILE] [--precision=f16|tf32|f32]
           [--inductor] FOLDER NAME...
  FOLDER: what scripts/export_models.py has written
  NAME: a model, or a list of bench/shapes/models.json
"""
import argparse
import json
import pathlib
import subprocess
import sys

import measure
import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import export_models  # noqa: E402


def ours(tools, folder, name, precision, *more):
    name = name.replace("/", "-")  # as export_models.py names files
    report = folder / (name + ".report.json")
    output = folder / (name + ".ours.npy")
    command = [str(pathlib.Path(tools) / "hidet-run"),
               str(folder / (name + ".onnx")), "--device=cuda",
               "--precision=" + precision, "--bench", "--json=%s" % report,
               "--input=@%s" % (folder / (name + ".in0.npy")),
               "--output=@%s" % output, "--no-cache", "-q", *more]
    done = subprocess.run(command, text=True, capture_output=True, timeout=300)
    if done.returncode:
        raise RuntimeError("exit %d\n%s" % (done.returncode, done.stderr))
    return json.loads(report.read_text()), numpy.load(output)


def peers(folder, name, precision, inductor):
    import torch
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    model = export_models.find_model(name)
    network = export_models.settle(model.make(), model)
    network = network.cuda()
    if precision == "f16":
        network = network.half()
    x = torch.from_numpy(numpy.load(folder / (name.replace("/", "-") + ".in0.npy"))).cuda()
    x = x.to(next(network.parameters()).dtype) if x.is_floating_point() else x
    with torch.no_grad():
        y = network(x)
        times = {"eager_graph_ms": measure.replayed([lambda: network(x)], skipped=10)}
        if inductor:
            torch._dynamo.reset()
            compiled = torch.compile(network)
            times["inductor_graph_ms"] = measure.replayed(
                [lambda: compiled(x)], skipped=10)
    return times, y.float().cpu().numpy()


def error(y, expected):
    return float(numpy.abs(y.astype(numpy.float64) - expected).max()
                 / numpy.abs(expected).max())


def measured(options, name):
    expected = numpy.load(
        options.folder / (name.replace("/", "-") + ".out0.npy"))
    report, y = ours(options.tools, options.folder, name, options.precision)
    in_turn, _ = ours(options.tools, options.folder, name, options.precision,
                      "--no-early-launches")
    times, theirs = peers(options.folder, name, options.precision,
                          options.inductor)
    return {"model": name, "precision": options.precision,
            "ms": report["median_ms"], "in_turn_ms": in_turn["median_ms"],
            "launches": report["launches"],
            "compile_ms": report["compile_ms"], "load_ms": report["load_ms"],
            "error": error(y.reshape(expected.shape), expected),
            "torch_error": error(theirs.reshape(expected.shape), expected),
            **times}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("--json")
    parser.add_argument("--precision", default="f16", choices=["f16", "tf32", "f32"])
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    lists = json.loads((measure.SHAPES / "models.json").read_text())
    cases, failed = [], False
    for name in sum((lists.get(name, [name]) for name in options.names), []):
        try:
            case = measured(options, name)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
            print("%s: %s" % (name, e), flush=True)
            failed = True
            continue
        cases.append(case)
        print("%-28s %7.3f ms (%.3f in turn) in %d launches, compiled in %.0f "
              "ms; PyTorch %s; error %.2e, PyTorch's %.2e"
              % (name, case["ms"], case["in_turn_ms"], case["launches"],
                 case["compile_ms"],
                 ", ".join("%s %.3f" % (k[:-3], v) for k, v in case.items()
                           if k.endswith("graph_ms")),
                 case["error"], case["torch_error"]), flush=True)
        measure.write(options.json, cases)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
