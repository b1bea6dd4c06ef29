# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models: ours, one inference a CUDA graph, and the same with no
launch begun before the last one has ended, against PyTorch's eager in the same
precision as a CUDA graph, and what Inductor makes of it as one. Errors are the
largest against PyTorch in f32 over the largest value, ours and PyTorch's; with
--inputs=N of N drawn inputs, their geometric mean and the worst of ours over
PyTorch's of the same input: one session of ours runs them all, from test data
as ONNX writes it. Of a model that PyTorch runs in several ways, the fastest
that a graph can hold counts, and the report has all.

usage: models.py --tools=FOLDER [--json=FILE] [--precision=f16|tf32|f32]
           [--inductor] [--inputs=1] FOLDER NAME...
  FOLDER: what scripts/export_models.py has written, of any batch and length
  NAME: a model, or a list of bench/shapes/models.json
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

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


def allow_tf32(allowed):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def peer_times(network, x, inductor, ways):
    """By the fastest of its ways, and by each."""
    import torch
    found = {}
    for way, choose in ways or [("", lambda network: None)]:
        choose(network)
        torch._dynamo.reset()
        calls = {"eager_graph_ms": lambda: network(x)}
        if inductor:
            compiled = torch.compile(network)
            calls["inductor_graph_ms"] = lambda: compiled(x)
        for name, call in calls.items():
            try:
                ms = measure.replayed([call], skipped=10)
            except RuntimeError as e:
                if not ways:
                    raise
                ms = None  # What asks the host cannot be captured.
                print("%s, %s: %s" % (name, way, str(e).split("\n")[0]), flush=True)
            found.setdefault(name, {})[way] = ms
    times = {name: min((ms for ms in of.values() if ms), default=None)
             for name, of in found.items()}
    return {**times, "ways": found} if ways else times


def peers(folder, name, precision, inductor, inputs):
    """Times, the output for the input that was exported, and of others that
    are drawn: inputs, outputs in f32, outputs."""
    import torch
    torch.manual_seed(0)
    allow_tf32(False)
    model = export_models.find_model(name)
    network = export_models.settle(model.make(), model)
    network = network.cuda()
    x = torch.from_numpy(numpy.load(folder / (name.replace("/", "-") + ".in0.npy"))).cuda()
    drawn = [export_models.draw_input(model, len(x), x.shape[-1]).cuda()
             for _ in range(inputs)]
    with torch.no_grad():
        expected = [network(x) for x in drawn]
    allow_tf32(precision == "tf32")
    if precision == "f16":
        network = network.half()
    kind = next(network.parameters()).dtype
    to_kind = lambda x: x.to(kind) if x.is_floating_point() else x
    x = to_kind(x)
    with torch.no_grad():
        found = [network(to_kind(x)) for x in drawn]
        y = network(x)
        times = peer_times(network, x, inductor, model.peers)
    return times, y.float().cpu().numpy(), [
        [y.float().cpu().numpy() if y.is_floating_point() else y.cpu().numpy()
         for y in case] for case in zip(drawn, expected, found)]


# --- Several inputs ---

def field(number, data):
    """A field of a protocol buffer: a number or bytes."""
    def varint(value):
        low = value & 127
        return bytes([low | 128]) + varint(value >> 7) if value > 127 else bytes([low])
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor_proto(value):
    """ONNX's TensorProto: dims, data_type, raw_data."""
    kind = {"float32": 1, "int64": 7}[value.dtype.name]
    return (b"".join(field(1, size) for size in value.shape) + field(2, kind)
            + field(9, numpy.ascontiguousarray(value).tobytes()))


def our_errors(tools, folder, name, precision, cases):
    """The largest differences from what is expected, case by case, by one
    session."""
    with tempfile.TemporaryDirectory() as data:
        for i, (x, expected, _) in enumerate(cases):
            at = pathlib.Path(data) / ("test_data_set_%03d" % i)
            at.mkdir()
            (at / "input_0.pb").write_bytes(tensor_proto(x))
            (at / "output_0.pb").write_bytes(tensor_proto(expected))
        done = subprocess.run(
            [str(pathlib.Path(tools) / "hidet-run"),
             str(folder / (name.replace("/", "-") + ".onnx")), "--device=cuda",
             "--precision=" + precision, "--test-data=" + data,
             "--atol=1e30"], text=True, capture_output=True, timeout=300)
    found = re.findall(r"largest error (\S+) \(absolute\)", done.stdout)
    if done.returncode or len(found) != len(cases):
        raise RuntimeError("exit %d\n%s" % (done.returncode, done.stderr))
    return [float(each) for each in found]


def compare_inputs(options, name, cases):
    ours = our_errors(options.tools, options.folder, name, options.precision, cases)
    tops = [float(numpy.abs(expected).max()) for _, expected, _ in cases]
    ours = [each / top for each, top in zip(ours, tops)]
    theirs = [error(found, expected) for _, expected, found in cases]
    over = numpy.array(ours) / numpy.array(theirs)
    return {"inputs": len(cases), "errors": ours, "torch_errors": theirs,
            "error_over_torch": float(numpy.exp(numpy.log(over).mean())),
            "worst_over_torch": float(over.max())}


def error(y, expected):
    return float(numpy.abs(y.astype(numpy.float64) - expected).max()
                 / numpy.abs(expected).max())


def measured(options, name):
    expected = numpy.load(
        options.folder / (name.replace("/", "-") + ".out0.npy"))
    report, y = ours(options.tools, options.folder, name, options.precision)
    in_turn, _ = ours(options.tools, options.folder, name, options.precision,
                      "--no-early-launches")
    times, theirs, cases = peers(options.folder, name, options.precision,
                                 options.inductor,
                                 options.inputs if options.inputs > 1 else 0)
    if cases:
        times.update(compare_inputs(options, name, cases))
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
    parser.add_argument("--inputs", type=int, default=1)
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
                           if k.endswith("graph_ms") and v),
                 case["error"], case["torch_error"]), flush=True)
        if "inputs" in case:
            print("%28s error over PyTorch's, %d inputs: %.3f (geometric mean), "
                  "%.3f (worst)" % ("", case["inputs"], case["error_over_torch"],
                                    case["worst_over_torch"]), flush=True)
        measure.write(options.json, cases)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
