# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far narrow arithmetic is off, against PyTorch's own.

usage: precision.py [--tools=DIR] [--device=sim|ref|cuda] [--peers=FILE]
                    [--precision=f16|bf16|tf32]... [--option=OPTION]...
                    FOLDER [NAME...]

FOLDER is what scripts/export_models.py wrote. An error is the largest absolute
one over the largest value, against what PyTorch computed in f32. Ours is
hidet-run --precision; the peer's is that of model.half() or model.bfloat16()
on the CPU. One line a case, with the quotient; the bound that the project set
itself is 1.5 for f16, 0.8 is what it reaches for.

The peers need PyTorch (scripts/export_models.py says which) and are kept in
the file of --peers, so that measuring again does without.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT = ("resnet50", "bert_base", "gpt2")
PEERS = {"f16": "float16", "bf16": "bfloat16"}


def error(result, truth):
    return float(numpy.abs(result.astype(numpy.float64) - truth).max() /
                 numpy.abs(truth).max())


def peers(folder, name, precisions):
    """PyTorch's errors; its f32 has to be what the folder holds."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import export_models
    import torch
    model = export_models.find_model(name)
    torch.manual_seed(0)
    network = export_models.settle(model.make(), model)
    x = torch.from_numpy(numpy.load(folder / (name + ".in0.npy")))
    truth = numpy.load(folder / (name + ".out0.npy"))
    errors = {}
    with torch.inference_mode():
        again = error(network(x).numpy(), truth)
        if again > 1e-4:
            raise SystemExit("%s: PyTorch's f32 differs by %g from %s" %
                             (name, again, folder))
        for precision in precisions:
            narrow = getattr(torch, PEERS[precision])
            there = network.to(narrow)
            y = there(x.to(narrow) if x.is_floating_point() else x)
            errors[precision] = error(y.float().numpy(), truth)
            torch.manual_seed(0)  # weights that were rounded are lost
            network = export_models.settle(model.make(), model)
    return errors


def ours(options, name, precision):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "y.npy")
        subprocess.run(
            [os.path.join(options.tools, "hidet-run"), "-q",
             "--device=" + options.device, "--precision=" + precision,
             "--input=@%s" % (options.folder / (name + ".in0.npy")),
             "--output=@" + path, *options.option,
             str(options.folder / (name + ".onnx"))], check=True)
        return error(numpy.load(path),
                     numpy.load(options.folder / (name + ".out0.npy")))


def known_peers(options, names, precisions):
    known = {}
    if options.peers and options.peers.exists():
        known = json.loads(options.peers.read_text())
    for name in names:
        missing = [p for p in precisions
                   if p in PEERS and p not in known.get(name, {})]
        if missing:
            known.setdefault(name, {}).update(
                peers(options.folder, name, missing))
            if options.peers:
                options.peers.write_text(json.dumps(known, indent=2) + "\n")
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default=str(ROOT / "build" / "bin"))
    parser.add_argument("--device", default="sim")
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--precision", action="append")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or list(DEFAULT)
    precisions = options.precision or ["f16"]
    known = known_peers(options, names, precisions)
    print("%-16s %-6s %10s %10s %9s" %
          ("model", "", "ours", "PyTorch", "quotient"))
    for name in names:
        for precision in precisions:
            mine = ours(options, name, precision)
            peer = known[name].get(precision)
            print("%-16s %-6s %10.2e %10s %9s" % (
                name, precision, mine, "%.2e" % peer if peer else "",
                "%.2f" % (mine / peer) if peer else ""), flush=True)


if __name__ == "__main__":
    main()
