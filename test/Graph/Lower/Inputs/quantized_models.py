# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized networks of drawn layers, as tools write them (QuantizeLinear and
DequantizeLinear around every operator, or operators of integers), against NumPy
in f64. Scales are powers of two, so that nothing but the standard's own rounding
and saturation happens, and every element has to be the same.

usage: quantized_models.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
DTYPES = {"i8": numpy.int8, "u8": numpy.uint8}


class Value:
    """A quantized value: its name as bytes, what its bytes are worth."""

    def __init__(self, name, q, scale, zero):
        self.name, self.q, self.scale, self.zero = name, q, scale, zero

    def numbers(self):
        return (self.q.astype("f8") - float(self.zero)) * self.scale


class Model:
    def __init__(self):
        self.nodes, self.constants, self.count = [], [], 0

    def name(self):
        self.count += 1
        return "v%d" % self.count

    def constant(self, value):
        name = self.name()
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name

    def node(self, op, *inputs, **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def zero_of(self, kind):
        limits = numpy.iinfo(DTYPES[kind])
        common = [0, 0, -128 if kind == "i8" else 128, int(rng.integers(limits.min, limits.max + 1))]
        return numpy.array(common[int(rng.integers(4))], DTYPES[kind])

    def narrowed(self, numbers):
        """Bytes for numbers, with a scale and a zero point."""
        kind = str(rng.choice(["i8", "u8"]))
        zero = self.zero_of(kind)
        reach = max(float(numpy.abs(numbers).max()), 2.0 ** -20)
        scale = 2.0 ** int(numpy.ceil(numpy.log2(reach / 160)))
        limits = numpy.iinfo(DTYPES[kind])
        q = numpy.clip(numpy.rint(numbers / scale) + float(zero), limits.min, limits.max)
        return q.astype(DTYPES[kind]), scale, zero

    def quantized(self, name, numbers):
        """Of a name in f32."""
        q, scale, zero = self.narrowed(numbers)
        made = self.node("QuantizeLinear", name, self.constant(numpy.float32(scale)), self.constant(zero))
        return Value(made, q, scale, zero)

    def dequantized(self, v):
        return self.node("DequantizeLinear", v.name, self.constant(numpy.float32(v.scale)), self.constant(v.zero))

    def weights(self, shape, axis):
        """Signed ones without zero points, as tools write them, or any."""
        kind = str(rng.choice(["i8", "i8", "u8"]))
        limits = numpy.iinfo(DTYPES[kind])
        q = rng.integers(limits.min, limits.max + 1, shape).astype(DTYPES[kind])
        each = bool(rng.integers(3))
        size = shape[axis] if each else 1
        scale = 2.0 ** rng.integers(-9, -6, size)
        zero = numpy.zeros(size) if kind == "i8" else numpy.full(size, 128)
        if rng.integers(4) == 0:
            zero = rng.integers(limits.min, limits.max + 1, size)
        zero = zero.astype(DTYPES[kind])
        column = [size if i == axis else 1 for i in range(len(shape))]
        numbers = (q.astype("f8") - zero.astype("f8").reshape(column)) * scale.reshape(column)
        if not each:
            scale, zero = scale.reshape(()), zero.reshape(())
        return q, scale, zero, numbers

    def dequantized_weights(self, q, scale, zero, axis):
        return self.node("DequantizeLinear", self.constant(q), self.constant(scale.astype("f4")), self.constant(zero),
                         axis=axis)


def convolve(x, w, strides, pads, dilations, groups):
    room = [(0, 0), (0, 0)] + [(p, p) for p in pads]
    x = numpy.pad(x, room)
    sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(x.shape[2:], w.shape[2:], dilations, strides)]
    each, own = w.shape[1], w.shape[0] // groups
    y = numpy.zeros((x.shape[0], w.shape[0], *sizes))
    for g in range(groups):
        for u, v in numpy.ndindex(*w.shape[2:]):
            part = x[:, g * each:(g + 1) * each, u * dilations[0]:, v * dilations[1]:]
            part = part[:, :, :(sizes[0] - 1) * strides[0] + 1:strides[0], :(sizes[1] - 1) * strides[1] + 1:strides[1]]
            y[:, g * own:(g + 1) * own] += numpy.einsum("nchw,oc->nohw", part, w[g * own:(g + 1) * own, :, u, v])
    return y


def add_bias(m, name, y, unit):
    """Multiples of the sums' unit, of which f32 has all."""
    b = rng.integers(-2000, 2000, y.shape[1]) * unit
    column = [-1 if i == 1 else 1 for i in range(y.ndim)]
    return b, y + b.reshape(column)


def draw_conv(m, v, whole):
    """What v is to a convolution, in f32, and its numbers; whole: a value, by
    the operator that has all in one."""
    c = v.q.shape[1]
    k = int(rng.choice([1, 1, 3]))
    groups = int(rng.choice([1, 1, 1, 2])) if c % 2 == 0 else 1
    o = int(rng.choice([8, 16, 40, 64]))
    strides, dilations = [[int(rng.choice([1, 1, 2]))] * 2, [1, 1]]
    pads = [int(rng.choice([0, k // 2]))] * 2
    if min(v.q.shape[2:]) + 2 * pads[0] < k:
        return None
    q, scale, zero, w = m.weights((o, c // groups, k, k), 0)
    y = convolve(v.numbers(), w, strides, pads, dilations, groups)
    b, y = add_bias(m, None, y, v.scale * 2.0 ** -9)
    if numpy.abs(y).max() / (v.scale * scale.min()) >= 2 ** 24:
        return None
    how = {"strides": strides, "pads": pads * 2, "dilations": dilations, "group": groups}
    if whole:
        y -= b.reshape(1, -1, 1, 1)
        b = rng.integers(-2000, 2000, o)
        y += (b * v.scale * scale).reshape(1, -1, 1, 1)
        made, to, zero_to = m.narrowed(y)
        name = m.node("QLinearConv", v.name, m.constant(numpy.float32(v.scale)), m.constant(v.zero), m.constant(q),
                      m.constant(scale.astype("f4")), m.constant(zero), m.constant(numpy.float32(to)),
                      m.constant(zero_to), m.constant(b.astype("i4")), **how)
        return Value(name, made, to, zero_to)
    name = m.node("Conv", m.dequantized(v), m.dequantized_weights(q, scale, zero, 0), m.constant(b.astype("f4")), **how)
    return name, y


def draw_matmul(m, v):
    k, n = v.q.shape[-1], int(rng.choice([8, 24, 64, 100]))
    turned = v.q.ndim == 2 and bool(rng.integers(2))
    q, scale, zero, w = m.weights((n, k) if turned else (k, n), 0 if turned else 1)
    y = v.numbers() @ (w.T if turned else w)
    if numpy.abs(y).max() / (v.scale * scale.min()) >= 2 ** 24:
        return None
    matrix = m.dequantized_weights(q, scale, zero, 0 if turned else 1)
    if turned:
        b = rng.integers(-2000, 2000, n) * v.scale * 2.0 ** -9
        return m.node("Gemm", m.dequantized(v), matrix, m.constant(b.astype("f4")), transB=1), y + b
    return m.node("MatMul", m.dequantized(v), matrix), y


def draw_integers(m, v, whole):
    """The operators of integers: sums as they are, scaled behind."""
    k, n = v.q.shape[-1], int(rng.choice([8, 24, 64]))
    q, scale, zero, w = m.weights((k, n), 1)
    y = v.numbers() @ w
    if numpy.abs(y).max() / (v.scale * scale.min()) >= 2 ** 24:
        return None
    if whole:
        made, to, zero_to = m.narrowed(y)
        name = m.node("QLinearMatMul", v.name, m.constant(numpy.float32(v.scale)), m.constant(v.zero), m.constant(q),
                      m.constant(scale.astype("f4")), m.constant(zero), m.constant(numpy.float32(to)),
                      m.constant(zero_to))
        return Value(name, made, to, zero_to)
    s = m.node("MatMulInteger", v.name, m.constant(q), m.constant(v.zero), m.constant(zero))
    f = m.node("Cast", s, to=TensorProto.FLOAT)
    return m.node("Mul", f, m.constant((scale * v.scale).astype("f4"))), y


def draw_both(m, v, u):
    """A product of two values that are computed."""
    y = v.numbers() @ u.numbers()
    if numpy.abs(y).max() / (v.scale * u.scale) >= 2 ** 24:
        return None
    return m.node("MatMul", m.dequantized(v), m.dequantized(u)), y


def layer(m, v, images):
    whole = rng.integers(4) == 0
    if images:
        made = draw_conv(m, v, whole)
    else:
        made = draw_matmul(m, v) if rng.integers(3) else draw_integers(m, v, whole)
    if made is None or isinstance(made, Value):
        return made
    name, y = made
    if rng.integers(2):
        name, y = m.node("Relu", name), numpy.maximum(y, 0)
    return m.quantized(name, y)


def with_residual(m, v, u):
    y = v.numbers() + u.numbers()
    if numpy.abs(y).max() / min(v.scale, u.scale) >= 2 ** 24:
        return v
    return m.quantized(m.node("Add", m.dequantized(v), m.dequantized(u)), y)


def pooled(m, v):
    x = v.numbers()
    y = x[:, :, :x.shape[2] // 2 * 2, :x.shape[3] // 2 * 2]
    y = y.reshape(*y.shape[:2], y.shape[2] // 2, 2, y.shape[3] // 2, 2).max((3, 5))
    return m.quantized(m.node("MaxPool", m.dequantized(v), kernel_shape=[2, 2], strides=[2, 2]), y)


def draw():
    m = Model()
    images = bool(rng.integers(2))
    if images:
        shape = [int(rng.integers(1, 3)), int(rng.choice([3, 16, 32])), int(rng.integers(3, 12)), int(rng.integers(3, 12))]
    else:
        shape = [[int(rng.choice([1, 9, 40])), int(rng.choice([16, 32, 64, 100]))],
                 [2, int(rng.choice([5, 16])), int(rng.choice([32, 64]))]][int(rng.integers(2))]
    x = rng.integers(-640, 640, shape) / 128
    v = m.quantized("x", x)
    values = [v]
    for _ in range(int(rng.integers(1, 4))):
        after = layer(m, v, images)
        if after is None:
            continue
        near = [u for u in values if u.q.shape == after.q.shape]
        if near and rng.integers(2):
            after = with_residual(m, after, near[-1])
        if images and min(after.q.shape[2:]) >= 2 and rng.integers(4) == 0:
            after = pooled(m, after)
        v = after
        values.append(v)
    turned = [u for u in values if not images and u.q.ndim == 3 and u.q.shape[-1] == v.q.shape[-2]]
    if turned:
        made = draw_both(m, v, turned[-1]) if v.q.shape[-1] == turned[-1].q.shape[-2] else None
        v = m.quantized(*made) if made else v
    y = m.dequantized(v) if rng.integers(2) else v.name
    return m, x.astype("f4"), y, v


def case(number):
    m, x, y, v = draw()
    wanted = v.q if y == v.name else v.numbers().astype("f4")
    kind = TensorProto.FLOAT if wanted.dtype == numpy.float32 else helper.np_dtype_to_tensor_dtype(wanted.dtype)
    graph = helper.make_graph(m.nodes, "quantized", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info(y, kind, wanted.shape)], m.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "quantized.onnx")
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", wanted)
    run = subprocess.run(["hidet-run", str(folder / "quantized.onnx"), "-q", "--rtol=0", "--atol=0",
                          "--input=x=@%s" % (folder / "x.npy"), "--expected=%s=@%s" % (y, folder / "y.npy"), *sys.argv[4:]],
                         text=True, capture_output=True)
    if run.returncode:
        print(run.stdout, run.stderr)
        sys.exit("case %d of seed %d" % (number, seed))


for number in range(count):
    case(number)
print(count, "cases")
