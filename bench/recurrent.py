# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers, as ONNX has them: one inference a CUDA graph, beside PyTorch's
own layer (cuDNN) in one, of the same type.

usage: recurrent.py [--tools=DIR] [--json=FILE] [CASE...]

Two layers, both directions, 64 features to 128, batches of 1 and 16. Errors are
the largest against PyTorch in f64 on the CPU, over the largest value, ours and
cuDNN's. One line a case; CASE: a part of a case's name.
"""
import pathlib
import tempfile
import warnings

import measure

FEATURES, HIDDEN, LAYERS = 64, 128, 2
CASES = [(layer, steps, batch, kind) for layer in ("LSTM", "GRU")
         for kind in ("f16", "f32") for batch in (1, 16) for steps in (20, 200)]


def export(network, x, path):
    import torch
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of exporters to come.
        torch.onnx.export(network, (x,), str(path), dynamo=False,
                          input_names=["x"], output_names=["y"])


def peer(network, x, kind):
    """Milliseconds of cuDNN's, and its result."""
    import torch
    dtype = torch.float16 if kind == "f16" else torch.float32
    network, x = network.to("cuda", dtype), x.to("cuda", dtype)
    with torch.no_grad():
        ms = measure.replayed([lambda: network(x)])
        return ms, network(x)[0].float().cpu()


def run(options, folder, case):
    import numpy
    import torch
    layer, steps, batch, kind = case
    torch.manual_seed(1)
    network = getattr(torch.nn, layer)(FEATURES, HIDDEN, LAYERS, bidirectional=True)
    x = torch.randn(steps, batch, FEATURES)
    with torch.no_grad():
        exact = network.double()(x.double())[0]
    network = network.float().eval()
    export(network, x, folder / "model.onnx")
    numpy.save(folder / "x.npy", x.numpy())
    arguments = ["--precision=" + kind, "--input=x=@%s" % (folder / "x.npy"),
                 "--output=y=@%s" % (folder / "y.npy")]
    report, theirs = {}, {}

    def ours():
        ms, said = measure.run(options.tools, folder / "model.onnx", arguments)
        report.update(said if ms else {})
        return ms, said

    def cudnn():
        ms, theirs["y"] = peer(network, x, kind)
        return ms, None

    found, said = measure.in_turns({"ours": ours, "cuDNN": cudnn})
    if not found:
        return None, said
    y = torch.from_numpy(numpy.load(folder / "y.npy"))
    scale = exact.abs().max().item()
    return {"ours_ms": found["ours"], "cudnn_ms": found["cuDNN"],
            "error": (y.double() - exact).abs().max().item() / scale,
            "cudnn_error": (theirs["y"].double() - exact).abs().max().item() / scale,
            "launches": report.get("launches")}, None


def main():
    options = measure.arguments(__doc__.splitlines()[0])
    cases = []
    for case in CASES:
        name = "%-4s %3d steps, batch %2d, %s" % (case[0], case[1], case[2], case[3])
        if options.names and not any(part in name for part in options.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            result, said = run(options, pathlib.Path(folder), case)
        if not result:
            print("%s  FAILED: %s" % (name, str(said).strip()), flush=True)
            return 1
        cases.append({"name": name, **result})
        print("%s  %8.4f ms  cuDNN %8.4f  %.2f of its speed, error %.1e, its %.1e" % (
            name, result["ours_ms"], result["cudnn_ms"],
            result["cudnn_ms"] / result["ours_ms"], result["error"],
            result["cudnn_error"]), flush=True)
        measure.write(options.json, cases)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
