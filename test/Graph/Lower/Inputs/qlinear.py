# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""com.microsoft's operators of bytes, drawn, against NumPy in f64 by their
descriptions: a byte that lies more than a thousandth from the middle of two is
the same, and none is off by more than one. Where Python has onnxruntime, its
answers are held to the same, but for the softmax, which it computes coarsely.

usage: qlinear.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)


def some(*choices):
    return choices[int(rng.integers(len(choices)))]


class Node:
    """A node with what it reads: constants, but for what a run gives."""

    def __init__(self, kind):
        self.kind, self.limits = kind, numpy.iinfo(kind)
        self.names, self.constants, self.inputs, self.steps = [], [], {}, None
        self.also, self.coarse = None, 1e-4

    def add(self, value, given=False):
        name = "" if value is None else "v%d" % len(self.names)
        self.names.append(name)
        if given:
            self.inputs[name] = value
        elif value is not None:
            self.constants.append(numpy_helper.from_array(numpy.asarray(value), name))

    def zero(self):
        return self.kind(some(0, -128 if self.kind == numpy.int8 else 128,
                              rng.integers(self.limits.min, self.limits.max + 1)))

    def draw(self, *shape):
        return rng.integers(self.limits.min, self.limits.max + 1, shape).astype(self.kind)

    def numbers(self, *shape, given=True, spare=False):
        """Adds bytes, their scale and zero point; what they are worth. spare: a zero
        point of 0 may be left out."""
        q, scale, zero = self.draw(*shape), numpy.float32(rng.uniform(0.01, 0.1)), self.zero()
        self.add(q, given)
        self.add(scale)
        self.add(None if spare and zero == 0 else zero)
        return (q.astype("f8") - float(zero)) * scale.astype("f8")

    def result(self, y):
        """Adds the result's scale and zero point; the quotients, not rounded."""
        reach = max(float(abs(y).max()), 1e-3) if y.size else 1
        scale, zero = numpy.float32(reach / rng.uniform(60, 250)), self.zero()
        self.steps = scale, zero
        self.add(scale)
        self.add(zero)
        return y / scale.astype("f8")


def binary(n, op):
    shape = some((3, 5, 7), (2, 64), (1, 8, 4, 4))
    other = some(shape, shape[1:], (1,) * len(shape), shape[:1] + (1,) * (len(shape) - 1))
    a = n.numbers(*shape, spare=True)
    b = n.numbers(*other, given=some(0, 1), spare=True)
    return n.result(a + b if op == "QLinearAdd" else a * b), {}


def unary(n, op):
    x = n.numbers(*some((40,), (2, 3, 17)), spare=True)
    alpha = float(numpy.float32(rng.uniform(0.01, 0.5)))
    if op == "QLinearSigmoid":
        return n.result(1 / (1 + numpy.exp(-x))), {}
    return n.result(numpy.where(x < 0, alpha * x, x)), {"alpha": alpha}


def softmax(n, op):
    x, opset = n.numbers(2, 3, 10, spare=True), some(11, 13)
    axis = some(1, 2) if opset == 11 else some(0, 1, -1)
    over = tuple(range(axis, 3)) if opset == 11 else axis
    e = numpy.exp(x - x.max(over, keepdims=True))
    return n.result(e / e.sum(over, keepdims=True)), {"axis": axis, "opset": opset}


def global_pool(n, op):
    last = some(0, 1)
    x = n.numbers(2, 5, 4, 6)
    return n.result(x.mean((1, 2) if last else (2, 3), keepdims=True)), {"channels_last": last}


def pool(n, op):
    last, counts, pad = some(0, 1), some(0, 1), some(0, 1)
    x = n.numbers(*((2, 6, 7, 3) if last else (2, 3, 6, 7)), spare=True)
    images = x.transpose(0, 3, 1, 2) if last else x
    room = [(0, 0), (0, 0), (pad, pad), (pad, pad)]
    sums, ones = numpy.pad(images, room), numpy.pad(numpy.ones(images.shape), room, constant_values=counts)
    sums, ones = ([numpy.lib.stride_tricks.sliding_window_view(v, (3, 2), (2, 3))[:, :, ::2, ::1].sum((4, 5))
                   for v in (sums, ones)])
    y = sums / ones
    return n.result(y.transpose(0, 2, 3, 1) if last else y), {
        "kernel_shape": [3, 2], "strides": [2, 1], "pads": [pad] * 4, "count_include_pad": counts, "channels_last": last}


def max_pool(n, op):
    q = n.draw(2, 6, 7, 3)
    n.add(q, True)
    n.steps = 1, 0
    windows = numpy.lib.stride_tricks.sliding_window_view(q, (3, 2), (1, 2))[:, ::2]
    return windows.max((4, 5)).astype("f8"), {"kernel_shape": [3, 2], "strides": [2, 1]}


def reduce_mean(n, op):
    axes, keep = some([1], [0, 2], [-1]), some(0, 1)
    return n.result(n.numbers(3, 5, 8, spare=True).mean(tuple(axes), keepdims=bool(keep))), {"axes": axes, "keepdims": keep}


def where(n, op):
    n.add(rng.integers(0, 2, (4, 6)).astype(bool), True)
    chosen = n.inputs["v0"]
    x = n.numbers(*some((4, 6), (6,)))
    y = n.numbers(*some((4, 6), (4, 1)))
    return n.result(numpy.where(chosen, x, y)), {}


def concat(n, op):
    parts = [(some(1, 3), 4) for _ in range(some(1, 2, 3))]
    n.result(numpy.float64(12))
    return numpy.concatenate([n.numbers(*shape) for shape in parts]) / n.steps[0].astype("f8"), {"axis": some(0, -2)}


def convolution(n, op):
    """Over all channels at a place: a product."""
    x = n.numbers(2, 4, 5, 12)
    w = rng.integers(-128, 128, (6, 12, 1, 1)).astype("i1")
    scale = rng.uniform(0.01, 0.1, 6).astype("f4")
    for v in (w, scale, numpy.zeros(6, "i1")):
        n.add(v)
    return n.result(x @ (w[:, :, 0, 0] * scale[:, None].astype("f8")).T), {"channels_last": 1}


def columns(n, size, zeros, rows=0):
    """A matrix's scales and zero points: one, or of each column."""
    each = some((), (1,), (size,))
    kind = some(numpy.int8, n.kind) if n.kind == numpy.uint8 else n.kind
    b = rng.integers(-128, 128, rows).astype("i1") if kind == numpy.int8 else n.draw(*rows)
    scale = rng.uniform(0.01, 0.1, each).astype("f4")
    zero = some(numpy.zeros(each), rng.integers(0, 100, each) + numpy.zeros(each)) if zeros else numpy.zeros(each)
    return b, scale, zero.astype(kind)


def gemm(n, op):
    m, k, size, ta, tb = some(1, 5), some(16, 40), some(8, 24), some(0, 1), some(0, 1)
    x = n.numbers(*((k, m) if ta else (m, k)))
    sa = numpy_helper.to_array(n.constants[0]).astype("f8")
    b, scale, zero = columns(n, size, True, (size, k) if tb else (k, size))
    alpha = some(1.0, 0.5)
    for v in (b, scale, zero):
        n.add(v)
    w = (b.T if tb else b).astype("f8") - zero.astype("f8")
    y = (x.T if ta else x) / sa @ w
    c = some(None, rng.integers(-2000, 2000, some((size,), (1, size), (m, 1), (m, size))))
    n.add(None if c is None else c.astype("i4"))
    y = (y + (0 if c is None else c)) * (alpha * sa * scale.astype("f8"))
    how = {"transA": ta, "transB": tb, "alpha": alpha}
    if some(0, 1, 2) == 0:
        n.kind = numpy.float32
        return y, how
    return n.result(y), how


def to_float(n, op):
    q, sa, za = n.draw(*some((5, 16), (2, 3, 16), (2, 1, 4, 16))), numpy.float32(0.03), n.zero()
    b, sb, zb = columns(n, 24, True, (16, 24))
    bias = some(None, rng.standard_normal(24).astype("f4"))
    n.add(q, True)
    for v in (b, sa, sb, za, zb, bias):
        n.add(v)
    y = (q.astype("f8") - float(za)) @ (b.astype("f8") - zb.astype("f8")) * (sa * sb).astype("f8")
    n.kind = numpy.float32
    return y if bias is None else y + bias, {}


def quantized(x):
    high, low, f32 = max(x.max(), 0), min(x.min(), 0), numpy.float32
    scale = (f32(high) - f32(low)) / f32(255)
    zero = numpy.clip(numpy.rint(-f32(low) / scale), 0, 255)
    return (numpy.clip(numpy.rint(x / scale) + zero, 0, 255).astype("f8") - zero) * scale.astype("f8")


def dynamic(n, op):
    x = rng.standard_normal(some((5, 16), (2, 3, 16))).astype("f4")
    n.kind = numpy.uint8
    b, sb, zb = columns(n, 24, True, (16, 24))
    bias = some(None, rng.standard_normal(24).astype("f4"))
    n.add(x, True)
    for v in (b, sb, zb if zb.any() else None, bias):
        n.add(v)
    y = quantized(x) @ ((b.astype("f8") - zb.astype("f8")) * sb)
    n.kind = numpy.float32
    return y if bias is None else y + bias, {}


def attention(n, op):
    batch, length, heads, head = some(1, 2), some(4, 9), some(1, 2), 8
    hidden = heads * head
    n.kind = numpy.uint8
    q, sa, za = n.draw(batch, length, 16), numpy.float32(0.001), n.zero()
    b, sb, zb = columns(n, 3 * hidden, False, (16, 3 * hidden))
    bias = rng.standard_normal(3 * hidden).astype("f4")
    lengths = some(None, rng.integers(1, length + 1, batch).astype("i4"))
    causal = some(0, 1)
    n.add(q, True)
    for v in (b, bias, sa, sb, lengths, za, zb):
        n.add(v)
    y = (q.astype("f8") - float(za)) @ (b.astype("f8") - zb.astype("f8")) * (sa * sb).astype("f8") + bias
    parts = y.reshape(batch, length, 3, heads, head).transpose(2, 0, 3, 1, 4)
    scores = parts[0] @ parts[1].swapaxes(-1, -2) / numpy.sqrt(head)
    hidden_keys = numpy.triu(numpy.ones((length, length), bool), 1) & bool(causal)
    if lengths is not None:
        hidden_keys = hidden_keys | (numpy.arange(length) >= lengths[:, None, None, None])
    scores = numpy.where(hidden_keys, -numpy.inf, scores)
    e = numpy.exp(scores - scores.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True) @ parts[2]
    n.kind = numpy.float32
    return y.transpose(0, 2, 1, 3).reshape(batch, length, hidden), {"num_heads": heads, "unidirectional": causal}


def embedding(n, op):
    """Tables of tokens, places and segments; with zeros behind the scales."""
    narrow, batch, length, hidden = op[0] == "Q", some(1, 3), some(4, 7), 16
    sizes = [(20, hidden), (9, hidden), (2, hidden), (hidden,), (hidden,)]
    segments = some(0, 1)
    ids = rng.integers(0, 20, (batch, length)).astype("i4")
    which = rng.integers(0, 2, (batch, length)).astype("i4")
    mask = (numpy.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype("i4")
    masked, places = some(0, 1), None if narrow else some(None, rng.integers(0, 9, (batch, length)).astype("i4"))
    n.add(ids, True)
    n.add(which if segments else None, segments)
    tables, steps = [], []
    for i, size in enumerate(sizes):
        q, scale, zero = n.draw(*size), numpy.float32(rng.uniform(0.01, 0.1)), n.zero()
        wide = ((q.astype("f8") - float(zero)) * scale.astype("f8")).astype("f4")
        here = i != 2 or segments
        tables.append(wide.astype("f8"))
        steps.append((scale if here else None, zero if here else None))
        n.add((q if narrow else wide) if here else None)
    n.add(mask if masked else None, masked)
    for k in range(2 * narrow):
        for step in steps:
            n.add(step[k])
    if places is not None:
        n.add(places, True)
    x = tables[0][ids] + tables[1][numpy.arange(length) if places is None else places]
    x = x + tables[2][which] if segments else x
    centred = x - x.mean(-1, keepdims=True)
    y = centred / numpy.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-12)
    n.kind = numpy.float32
    n.also = mask.sum(1) * masked
    return y * tables[3] + tables[4], {}


def lstm(n, op):
    """Weights of bytes alone: what else onnxruntime rounds is less than a hundredth."""
    steps, batch, size, hidden, both = 5, some(1, 3), 6, 8, some(1, 2)
    x, b = rng.standard_normal((steps, batch, size)).astype("f4"), rng.standard_normal((both, 8 * hidden)).astype("f4")
    n.add(x, True)
    wide, each = [], some((both,), (both, 4 * hidden))
    drawn = [n.draw(both, size, 4 * hidden), n.draw(both, hidden, 4 * hidden)]
    for q in drawn:
        n.add(q)
    for v in (b, None, None, None, None):
        n.add(v)
    for q in drawn:
        scale = rng.uniform(0.001, 0.004, each).astype("f4")
        zero = n.kind(0 if n.kind == numpy.int8 else 128)
        n.add(scale)
        n.add(numpy.full(each, zero))
        wide.append((q.astype("f8") - float(zero)) * scale.reshape(both, 1, -1))
    y = numpy.zeros((steps, both, batch, hidden))
    for d in range(both):
        h = c = numpy.zeros((batch, hidden))
        for t in range(steps)[::-1 if d else 1]:
            g = x[t] @ wide[0][d] + h @ wide[1][d] + b[d, :4 * hidden] + b[d, 4 * hidden:]
            i, o, f, k = numpy.split(g, 4, 1)
            i, o, f = (1 / (1 + numpy.exp(-v)) for v in (i, o, f))
            c = f * c + i * numpy.tanh(k)
            h = y[t, d] = o * numpy.tanh(c)
    n.kind, n.coarse = numpy.float32, 0.02
    return y, {"hidden_size": hidden, "direction": ["", "forward", "bidirectional"][both]}


OPERATORS = {
    "QLinearAdd": binary, "QLinearMul": binary, "QLinearSigmoid": unary, "QLinearLeakyRelu": unary,
    "QLinearSoftmax": softmax, "QLinearGlobalAveragePool": global_pool, "QLinearAveragePool": pool, "NhwcMaxPool": max_pool,
    "QLinearReduceMean": reduce_mean, "QLinearWhere": where, "QLinearConcat": concat, "QLinearConv": convolution,
    "QGemm": gemm, "MatMulIntegerToFloat": to_float, "DynamicQuantizeMatMul": dynamic, "QAttention": attention,
    "EmbedLayerNormalization": embedding, "QEmbedLayerNormalization": embedding, "DynamicQuantizeLSTM": lstm}


def compare(op, who, given, exact, n):
    if given.dtype == numpy.float32:
        most = 1e-4 if who == "hidet-run" else n.coarse
        assert numpy.allclose(given, exact, most, most), "%s of %s: %g" % (op, who, abs(given - exact).max())
        return
    assert given.dtype == n.kind and given.shape == exact.shape
    wanted = numpy.clip(numpy.rint(exact) + float(n.steps[1]), n.limits.min, n.limits.max)
    near = abs(abs(exact - numpy.floor(exact)) - 0.5) < 1e-3
    off = abs(given.astype("f8") - wanted)
    assert (off <= near).all(), "%s of %s: %d of %d are off, by %d" % (op, who, (off > near).sum(), off.size, off.max())


def case(number, op):
    n = Node(some(numpy.int8, numpy.uint8))
    exact, how = OPERATORS[op](n, op)
    node = helper.make_node(op, n.names, ["y"] if n.also is None else ["y", "n"], domain="com.microsoft", **how)
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info(name, kind(v.dtype), v.shape) for name, v in n.inputs.items()],
        [helper.make_tensor_value_info("y", kind(numpy.dtype(n.kind)), None)] +
        ([] if n.also is None else [helper.make_tensor_value_info("n", TensorProto.INT32, None)]), n.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                                ir_version=8), folder / "one.onnx")
    command = ["hidet-run", str(folder / "one.onnx"), "-q", "--output=y=@%s" % (folder / "y.npy"), *sys.argv[4:]]
    if n.also is not None:
        numpy.save(folder / "n.npy", n.also.astype("i4"))
        command.append("--expected=n=@%s" % (folder / "n.npy"))
    for name, v in n.inputs.items():
        numpy.save(folder / (name + ".npy"), v)
        command.append("--input=%s=@%s" % (name, folder / (name + ".npy")))
    run = subprocess.run(command, text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + run.stderr
    compare(op, "hidet-run", numpy.load(folder / "y.npy"), exact, n)
    if onnxruntime and op not in ("QLinearSoftmax", "QLinearReduceMean"):
        session = onnxruntime.InferenceSession(folder / "one.onnx", providers=["CPUExecutionProvider"])
        given = session.run(None, n.inputs)
        compare(op, "onnxruntime", given[0], exact, n)
        assert n.also is None or (given[1] == n.also).all()


for number in range(count):
    op = list(OPERATORS)[number % len(OPERATORS)]
    try:
        case(number, op)
    except Exception as error:
        sys.exit("case %d of seed %d, %s: %s" % (number, seed, op, error))
print(count, "cases")
