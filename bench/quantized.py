# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized models: what onnxruntime.quantization makes of an exported network
(QuantizeLinear and DequantizeLinear around its operators, weights per channel),
one inference a CUDA graph, against our own f16 of the same network, measured in
turns. Answers are held against onnxruntime's of the same model as it is written,
and so are those of its own optimizer, whose arithmetic is another: the largest
and the root mean square of the differences, over that of the output.

usage: quantized.py --tools=FOLDER [--json=FILE] [--batch=16] [--device=cuda]
           [--kinds=i8,u8] [--profiles=FOLDER] [--only=models|times] FOLDER [NAME...]
  FOLDER: where models are made and kept, by scripts/export_models.py first
  NAME: of that script's table; default: resnet50 bert_base
  --kinds: i8, u8: activations with zero points; i8s: i8 without
  --device=sim: answers alone
  --only: models are made, and no more; or times are taken, and no answers
"""
import argparse
import json
import pathlib
import subprocess
import sys
import types

import measure
import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import export_models  # noqa: E402

SAMPLES = 16  # Of inputs that ranges are found from, at least.
TURNS = 3
# Of quantize_static: the type of activations, whether their zero point is 0.
KINDS = {"i8": ("QInt8", False), "u8": ("QUInt8", False), "i8s": ("QInt8", True)}


def exported(options, name):
    path = options.folder / ("%s.b%d.onnx" % (name, options.batch))
    if not path.exists():
        made = options.folder / ("b%d" % options.batch)
        made.mkdir(parents=True, exist_ok=True)
        export_models.export(name, types.SimpleNamespace(
            folder=str(made), dynamic=False, batch=options.batch,
            tokens=export_models.LENGTH, opset=18))
        import onnx
        onnx.save(onnx.load(made / (name + ".onnx")), path,
                  save_as_external_data=False)
        (made / (name + ".in0.npy")).rename(path.with_suffix(".npy"))
    return path, path.with_suffix(".npy")


def drawn_inputs(name, batch, feed):
    """Inputs that ranges are found from, as onnxruntime asks for them."""
    import onnxruntime.quantization as quantization
    import torch

    class Drawn(quantization.CalibrationDataReader):
        def __init__(self):
            torch.manual_seed(1)
            model = export_models.find_model(name)
            self.feeds = iter([
                {feed: export_models.draw_input(model, batch).numpy()}
                for _ in range(-(-SAMPLES // batch))])

        def get_next(self):
            return next(self.feeds, None)

    return Drawn()


def quantized(options, name, kind):
    plain, _ = exported(options, name)
    path = plain.with_suffix(".%s.onnx" % kind)
    if path.exists():
        return path
    import onnxruntime
    import onnxruntime.quantization as quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    prepared = plain.with_suffix(".prepared.onnx")
    if not prepared.exists():
        quant_pre_process(str(plain), str(prepared))
    kept, symmetric = KINDS[kind]
    session = onnxruntime.InferenceSession(str(plain))
    quantization.quantize_static(
        str(prepared), str(path),
        drawn_inputs(name, options.batch, session.get_inputs()[0].name),
        quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        activation_type=getattr(quantization.QuantType, kept),
        weight_type=quantization.QuantType.QInt8,
        extra_options={"ActivationSymmetric": symmetric})
    return path


def theirs(path, x, optimized):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL)
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def ours(options, path, x, *more):
    report, output = path.with_suffix(".report.json"), path.with_suffix(".ours.npy")
    command = [str(pathlib.Path(options.tools) / "hidet-run"), str(path),
               "--device=" + options.device, "--input=@%s" % x,
               "--json=%s" % report, "--output=@%s" % output, "--no-cache", *more]
    done = subprocess.run(command, text=True, capture_output=True, timeout=600)
    if done.returncode:
        raise RuntimeError("exit %d\n%s" % (done.returncode, done.stderr[-2000:]))
    return json.loads(report.read_text()), numpy.load(output), done.stdout


def difference(y, expected):
    y, expected = y.astype("f8").reshape(expected.shape), expected.astype("f8")
    off = y - expected
    return {"largest": float(numpy.abs(off).max() / numpy.abs(expected).max()),
            "rms": float(numpy.sqrt((off ** 2).mean() / (expected ** 2).mean()))}


def measured(options, name, kind):
    plain, x = exported(options, name)
    path = quantized(options, name, kind)
    case = {"model": name, "kind": kind, "batch": options.batch}
    if options.only == "models":
        return case
    if options.device == "cuda":
        times, f16 = [], []
        for _ in range(TURNS):
            report, y, _ = ours(options, path, x, "--bench", "-q")
            times.append(report["median_ms"])
            peer, plain_y, _ = ours(options, plain, x, "--bench", "-q", "--precision=f16")
            f16.append(peer["median_ms"])
        case |= {"ms": sorted(times)[TURNS // 2], "f16_ms": sorted(f16)[TURNS // 2],
                 "launches": report["launches"], "f16_launches": peer["launches"],
                 "compile_ms": report["compile_ms"]}
        case["speed"] = case["f16_ms"] / case["ms"]
    else:
        _, y, _ = ours(options, path, x, "-q")
    if not options.only:
        values = numpy.load(x)
        expected = theirs(path, values, False)
        case["error"] = difference(y, expected)
        case["optimized_error"] = difference(theirs(path, values, True), expected)
    if options.profiles:
        options.profiles.mkdir(parents=True, exist_ok=True)
        for one, more in (path, []), (plain, ["--precision=f16"]):
            _, _, table = ours(options, one, x, "--profile", *more)
            (options.profiles / (one.stem + ".txt")).write_text(table)
    return case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("--json")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kinds", default="i8,u8")
    parser.add_argument("--profiles", type=pathlib.Path)
    parser.add_argument("--only", choices=["models", "times"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=["resnet50", "bert_base"])
    options = parser.parse_args()
    cases, failed = [], False
    for name in options.names:
        for kind in options.kinds.split(","):
            try:
                case = measured(options, name, kind)
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
                print("%s %s: %s" % (name, kind, e), flush=True)
                failed = True
                continue
            cases.append(case)
            line = "%-10s %-3s batch %-3d" % (name, kind, options.batch)
            if "ms" in case:
                line += " %7.3f ms in %d launches, f16 %.3f in %d: %.2f" % (
                    case["ms"], case["launches"], case["f16_ms"],
                    case["f16_launches"], case["speed"])
            if "error" in case:
                line += ("; from onnxruntime: %.1e (rms %.1e), its optimizer's "
                         "%.1e (rms %.1e)" % (
                             case["error"]["largest"], case["error"]["rms"],
                             case["optimized_error"]["largest"],
                             case["optimized_error"]["rms"]))
            print(line, flush=True)
            measure.write(options.json, cases)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
