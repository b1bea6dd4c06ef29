# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An encoder of the BERT family served at lengths in random order by threads
with a session each: executables, answers against PyTorch, memory that the
process grows by over the last half of the requests, and, with --tools, each
length's time over that of a plan for it alone.

usage: buckets.py [--device=sim] [--layers=2] [--hidden=32] [--longest=64]
           [--requests=200] [--threads=4] [--bounds=16,64] [--tools=FOLDER]
           [--lengths=5,33,64] [--precision=f32] [--json=FILE]
  --bounds: of buckets; default: powers of two
  --lengths: those that --tools measures; default: some of each bucket
  BERT itself: --layers=12 --hidden=768 --longest=512 --requests=2000

Exits 1 where an answer is off by more than 1e-3 of the largest (1e-2 in less
than f32).
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "python"), str(ROOT / "scripts")]
import export_models  # noqa: E402

import hidet  # noqa: E402
from hidet.model import as_array, as_buffer  # noqa: E402
from hidet.runtime import Device, Frozen, Module, Session  # noqa: E402


def make(layers, hidden, longest):
    export_models.torchvision_models()  # transformers imports it, too.
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        num_hidden_layers=layers, hidden_size=hidden,
        num_attention_heads=max(1, hidden // 64) if hidden >= 64 else 4,
        intermediate_size=4 * hidden, max_position_embeddings=longest,
        vocab_size=1000)
    return export_models.last_hidden(
        transformers.BertModel(config, add_pooling_layer=False)).eval()


def export(model, path, longest):
    length = torch.export.Dim("length", min=2, max=longest)
    torch.onnx.export(model, (torch.zeros(1, 8, dtype=torch.int64),), str(path),
                      dynamo=True, verbose=False, input_names=["ids"],
                      output_names=["y"], dynamic_shapes=({1: length},))


def ids_of(length):
    return numpy.random.default_rng(length).integers(0, 1000, (1, length))


def resident():
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4


class Served:
    """Requests, taken by threads one after the other."""

    def __init__(self, path, options):
        module = Module.load_onnx(str(path))
        self.device = Device(module.context, options.device)
        self.frozen = Frozen(module)
        self.frozen.set_precision(options.precision)
        self.frozen.set_buckets("length", options.bounds)
        draw = random.Random(1)
        self.lengths = [draw.randint(1, options.longest)
                        for _ in range(options.requests)]
        self.answers = path.parent  # In files: they are not what grows.
        self.next, self.lock = 0, threading.Lock()
        self.memory = []

    def take(self):
        with self.lock:
            self.memory.append(resident())
            self.next += 1
            at = self.next - 1
            return self.lengths[at] if at < len(self.lengths) else None

    def work(self):
        session = Session(self.frozen, self.device)
        while (length := self.take()) is not None:
            found = session.run([as_buffer(ids_of(length))], [None])
            numpy.save(answer_file(self.answers, length), as_array(found[0]))

    def run(self, threads):
        workers = [threading.Thread(target=self.work) for _ in range(threads)]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - begin


def answer_file(folder, length):
    """Of a thread's own: two may answer the same length at once."""
    return folder / ("%d.%d.npy" % (length, threading.get_ident()))


def worst_error(model, folder):
    worst = 0
    with torch.no_grad():
        for path in folder.glob("*.npy"):
            length, found = int(path.name.split(".")[0]), numpy.load(path)
            own = model(torch.from_numpy(ids_of(length))).numpy()
            worst = max(worst, float(numpy.abs(found - own).max()
                                     / numpy.abs(own).max()))
    return worst


def median_ms(options, path, length, *more):
    report = path.with_suffix(".json")
    subprocess.run(
        [str(pathlib.Path(options.tools) / "hidet-run"), str(path),
         "--device=" + options.device, "--shape=length=%d" % length, "--bench",
         "--precision=" + options.precision, "--json=%s" % report,
         "--no-cache", "-q", *more],
        check=True, timeout=600)
    return json.loads(report.read_text())["median_ms"]


def measure(options, path):
    """{length: (in a bucket, alone)}, in milliseconds."""
    bound = "--buckets=length" + (
        ":" + ",".join(map(str, options.bounds)) if options.bounds else "")
    lengths = options.lengths
    if not lengths:
        last = [n for n in (8, 16, 32, 64, 128, 256, 512, 1024)
                if n <= options.longest]
        lengths = sorted({m for n in last for m in (n // 2 + 1, n)})
    return {n: (median_ms(options, path, n, bound), median_ms(options, path, n))
            for n in lengths}


def numbers(text):
    return [int(n) for n in text.split(",")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="sim")
    for name, default in (("layers", 2), ("hidden", 32), ("longest", 64),
                          ("requests", 200), ("threads", 4)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--bounds", type=numbers, default=[])
    parser.add_argument("--lengths", type=numbers, default=[])
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--tools")
    parser.add_argument("--json")
    options = parser.parse_args()
    model = make(options.layers, options.hidden, options.longest)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        export(model, path, options.longest)
        served = Served(path, options)
        seconds = served.run(options.threads)
        half = len(served.memory) // 2
        report = {
            "seconds": seconds,
            "executables": served.frozen.num_compiled(served.device),
            "lengths": len(set(served.lengths)),
            "error": worst_error(model, served.answers),
            "grown_kb": served.memory[-1] - served.memory[half],
            "times": measure(options, path) if options.tools else {},
        }
    print("%d requests of %d lengths in %.1f s by %d executables, error %.1e; "
          "over the last half memory grew by %d KB"
          % (options.requests, report["lengths"], seconds,
             report["executables"], report["error"], report["grown_kb"]))
    for length, (bounded, alone) in report["times"].items():
        print("%5d: %.4f ms in a bucket, %.4f alone: %.2f"
              % (length, bounded, alone, bounded / alone))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1))
    return report["error"] > (1e-3 if options.precision == "f32" else 1e-2)


if __name__ == "__main__":
    sys.exit(main())
