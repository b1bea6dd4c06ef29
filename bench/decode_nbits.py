# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token's step of a Llama of 1 B whose weights have 4 bits (MatMulNBits, scales of
f16) and whose embedding, which is its head, too, is f16: an ONNX graph of opset 24
with a static cache of 2,048 rows in place of which 1,000 are in use, the number an
input. Milliseconds, launches, and the share of the device copy's bandwidth that
the weights come to. Weights are drawn.

usage: decode_nbits.py [--tools=DIR] [--json=FILE] [--folder=DIR] [--make]
           [--block=32] [--layers=16] [--rows=2048] [--used=1000] [--device=cuda|sim]
  --folder: where the model is made and kept; --make: that alone
  --device=sim: a tiny Llama on the simulator: answers alone, against NumPy
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

LARGE = dict(hidden=2048, inner=8192, heads=32, kept=8, words=128256)
SMALL = dict(hidden=64, inner=128, heads=4, kept=2, words=128)
TINY = 1e-5  # Of the norms.


class Model:
    """Nodes and weights, and what NumPy makes of them."""

    def __init__(self, options):
        self.options = options
        for name, value in (LARGE if options.device == "cuda" else SMALL).items():
            setattr(self, name, value)
        self.width = self.hidden // self.heads
        self.rng = numpy.random.default_rng(0)
        self.nodes, self.weights = [], {}

    def add(self, operator, inputs, outputs, domain="", **attributes):
        from onnx import helper
        outputs = outputs if isinstance(outputs, list) else [outputs]
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain,
                                           **attributes))
        return outputs[0]

    def weight(self, name, value):
        self.weights[name] = value
        return name

    def product(self, x, name, n, k):
        block = self.options.block
        drawn = numpy.frombuffer(self.rng.bytes(n * k // 2), "u1")
        bits = self.weight(name + ".b", drawn.reshape(n, k // block, block // 2))
        scale = self.weight(name + ".s", self.rng.uniform(
            0.5, 1.5, (n, k // block)).astype("f2") * numpy.float16(0.2 / k ** 0.5))
        return self.add("MatMulNBits", [x, bits, scale], name, "com.microsoft", K=k, N=n,
                        bits=4, block_size=block)

    def norm(self, x, name):
        one = self.weight(name + ".w", self.rng.uniform(0.5, 1.5, self.hidden).astype("f2"))
        return self.add("RMSNormalization", [x, one], name, epsilon=TINY)

    def in_heads(self, x, name, heads):
        shape = self.weight(name + ".shape", numpy.array([0, 0, heads, self.width]))
        apart = self.add("Reshape", [x, shape], name + ".apart")
        return self.add("Transpose", [apart], name + ".heads", perm=[0, 2, 1, 3])

    def attention(self, x, name):
        kept = self.kept * self.width
        turned = {}
        for part, heads in (("q", self.heads), ("k", self.kept)):
            y = self.in_heads(self.product(x, "%s.%s" % (name, part), heads * self.width,
                                           self.hidden), "%s.%s" % (name, part), heads)
            turned[part] = self.add("RotaryEmbedding", [y, "cosines", "sines", "position"],
                                    y + ".turned")
        turned["v"] = self.in_heads(self.product(x, name + ".v", kept, self.hidden),
                                    name + ".v", self.kept)
        for part in "kv":
            past = "past.%s.%s" % (name, part)
            turned[part] = self.add("TensorScatter", [past, turned[part], "used"],
                                    past.replace("past", "present"), axis=2)
        y = self.add("Attention", [turned["q"], turned["k"], turned["v"], "", "", "", "length"],
                     name + ".o")
        y = self.add("Transpose", [y], name + ".turned", perm=[0, 2, 1, 3])
        y = self.add("Reshape", [y, self.weight(name + ".o.shape", numpy.array(
            [0, 0, self.hidden]))], name + ".flat")
        return self.product(y, name + ".out", self.hidden, self.hidden)

    def make(self, path):
        from onnx import TensorProto, helper, numpy_helper, save
        words = self.rng.standard_normal((self.words, self.hidden), dtype="f4")
        self.weight("words", words.astype("f2"))
        turns = numpy.outer(numpy.arange(self.options.rows),
                            1e4 ** -(numpy.arange(self.width // 2) * 2 / self.width))
        self.weight("cosines", numpy.cos(turns).astype("f2"))
        self.weight("sines", numpy.sin(turns).astype("f2"))
        self.weight("one", numpy.array([1]))
        self.weight("column", numpy.array([1, 1]))
        self.add("Add", ["used", "one"], "length")
        self.add("Reshape", ["used", "column"], "position")
        x = self.add("Gather", ["words", "token"], "x")
        for i in range(self.options.layers):
            y = self.attention(self.norm(x, "n%d" % i), "%d" % i)
            x = self.add("Add", [x, y], "x%d" % i)
            y = self.norm(x, "m%d" % i)
            gate = self.product(y, "gate%d" % i, self.inner, self.hidden)
            up = self.product(y, "up%d" % i, self.inner, self.hidden)
            part = self.add("Sigmoid", [gate], "part%d" % i)
            gate = self.add("Mul", [gate, part], "open%d" % i)
            y = self.add("Mul", [gate, up], "inner%d" % i)
            x = self.add("Add", [x, self.product(y, "down%d" % i, self.hidden, self.inner)],
                         "y%d" % i)
        head = self.add("Transpose", ["words"], "head", perm=[1, 0])
        self.add("MatMul", [self.norm(x, "last"), head], "logits")
        f16, i64 = TensorProto.FLOAT16, TensorProto.INT64
        cache = [1, self.kept, self.options.rows, self.width]
        values = [(helper.make_tensor_value_info("%s.%d.%s" % (name, i, part), f16, cache))
                  for name in ("past", "present") for i in range(self.options.layers)
                  for part in "kv"]
        graph = helper.make_graph(
            self.nodes, "decode",
            [helper.make_tensor_value_info("token", i64, [1, 1]),
             helper.make_tensor_value_info("used", i64, [1])] + values[:len(values) // 2],
            [helper.make_tensor_value_info("logits", f16, [1, 1, self.words])]
            + values[len(values) // 2:],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()])
        save(helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]), path,
             save_as_external_data=True, location=path.name + ".data", size_threshold=1024)

    def run(self, token, used, caches):
        """The logits, in f64, but for caches, which are put on in f16."""
        wide = {name: value.astype("f8") for name, value in self.weights.items()}

        def norm(x, name):
            return x / numpy.sqrt((x * x).mean() + TINY) * wide[name + ".w"]

        def product(x, name):
            low = self.weights[name + ".b"]
            q = numpy.stack([low & 15, low >> 4], -1).reshape(*low.shape[:2], -1) - 8.0
            return (q * wide[name + ".s"][..., None]).reshape(len(low), -1) @ x

        def turned(x, heads):
            x = x.reshape(heads, 2, -1)
            c, s = wide["cosines"][used], wide["sines"][used]
            return numpy.concatenate([x[:, 0] * c - x[:, 1] * s, x[:, 1] * c + x[:, 0] * s], 1)

        x = wide["words"][token]
        for i in range(self.options.layers):
            y = norm(x, "n%d" % i)
            q = turned(product(y, "%d.q" % i), self.heads)
            k, v = (caches["past.%d.%s" % (i, part)][0].astype("f8") for part in "kv")
            k[:, used] = turned(product(y, "%d.k" % i), self.kept)
            v[:, used] = product(y, "%d.v" % i).reshape(self.kept, -1)
            q = q.reshape(self.kept, -1, self.width)
            w = numpy.exp(q @ k[:, :used + 1].transpose(0, 2, 1) * self.width ** -0.5)
            w /= w.sum(-1, keepdims=True)
            x = x + product((w @ v[:, :used + 1]).reshape(-1), "%d.out" % i)
            y = norm(x, "m%d" % i)
            gate = product(y, "gate%d" % i)
            x = x + product(gate / (1 + numpy.exp(-gate)) * product(y, "up%d" % i), "down%d" % i)
        return wide["words"] @ norm(x, "last")


def inouts(options):
    return ["--inout=past.%d.%s=present.%d.%s" % (i, part, i, part)
            for i in range(options.layers) for part in "kv"]


def checked(options, model, path):
    """On the simulator; the largest error, as part of the largest logit."""
    caches = {"past.%d.%s" % (i, part): model.rng.standard_normal(
        (1, model.kept, options.rows, model.width), dtype="f4").astype("f2")
        for i in range(options.layers) for part in "kv"}
    command = [str(pathlib.Path(options.tools) / "hidet-run"), str(path), "--device=sim", "-q",
               "--input=token=17", "--input=used=%d" % options.used, *inouts(options),
               "--output=logits=@%s" % (path.parent / "logits.npy")]
    for name, value in caches.items():
        numpy.save(path.parent / (name + ".npy"), value)
        command.append("--input=%s=@%s" % (name, path.parent / (name + ".npy")))
    subprocess.run(command, check=True)
    expected = model.run(17, options.used, caches)
    y = numpy.load(path.parent / "logits.npy").reshape(-1).astype("f8")
    return numpy.abs(y - expected).max() / numpy.abs(expected).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--used", type=int, default=1000)
    parser.add_argument("--device", default="cuda", choices=["cuda", "sim"])
    options = parser.parse_args()
    folder = options.folder or pathlib.Path(tempfile.mkdtemp())
    path = folder / ("decode.%d.onnx" % options.block)
    model = Model(options)
    if options.device == "sim" or not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        model.make(path)
    if options.make:
        return 0
    if options.device == "sim":
        error = checked(options, model, path)
        print("error %.4f" % error)
        return int(error > 0.01)
    import bandwidth
    import measure
    ms, report = measure.run(options.tools, path, [
        "--input=token=17", "--input=used=%d" % options.used, *inouts(options)])
    if ms is None:
        print(report)
        return 1
    size = path.with_name(path.name + ".data").stat().st_size  # Each weight once.
    found = {"block": options.block, "ms": ms, "launches": report["launches"],
             "weights_bytes": size, "share_of_copy": bandwidth.copy(size) / ms}
    print("  ".join("%s %s" % (key, "%.4g" % value if isinstance(value, float) else value)
                    for key, value in found.items()), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"machine": measure.machine(), "cases": [found]}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
