# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes ONNX's messages byte by byte, so that they may be wrong."""

import struct

FLOAT, UINT8, INT64, STRING, BOOL = 1, 2, 7, 8, 9


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, content):
    if isinstance(content, str):
        content = content.encode()
    return varint(field << 3 | 2) + varint(len(content)) + content


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def entry(key, value):
    return data(1, key) + data(2, value)


def tensor(name, dims, kind=FLOAT, raw=None, external=None, more=b""):
    out = b"".join(number(1, d) for d in dims) + number(2, kind)
    out += data(8, name) + more
    if raw is not None:
        out += data(9, raw)
    if external is not None:
        for key, value in external.items():
            out += data(13, entry(key, str(value)))
        out += number(14, 1)
    return out


def tensor_type(dims, kind=FLOAT):
    shape = b"".join(
        data(1, data(2, d) if isinstance(d, str) else number(1, d))
        for d in dims)
    return data(1, number(1, kind) + data(2, shape))


def value(name, dims=(2,), kind=FLOAT):
    return data(1, name) + data(2, tensor_type(dims, kind))


def node(op, inputs, outputs, attributes=(), domain="", name=""):
    return b"".join([data(1, i) for i in inputs] +
                    [data(2, o) for o in outputs] +
                    ([data(3, name)] if name else []) + [data(4, op)] +
                    [data(5, a) for a in attributes] +
                    ([data(7, domain)] if domain else []))


def graph_attribute(name, graph):
    return data(1, name) + data(6, graph) + number(20, 5)


def graph(nodes=(), inputs=(), outputs=(), tensors=(), more=b""):
    return b"".join([data(1, n) for n in nodes] + [data(2, "g")] +
                    [data(5, t) for t in tensors] +
                    [data(11, i) for i in inputs] +
                    [data(12, o) for o in outputs]) + more


def function(name, nodes, inputs=("x",), outputs=("y",), domain="own"):
    return b"".join([data(1, name)] + [data(4, i) for i in inputs] +
                    [data(5, o) for o in outputs] + [data(7, n) for n in nodes] +
                    [data(9, opset("", 13)), data(9, opset("own", 1))] +
                    [data(10, domain)])


def opset(domain, version):
    return data(1, domain) + number(2, version)


def model(graph, opsets=(("", 13),), functions=(), ir=8, more=b""):
    return number(1, ir) + data(7, graph) + b"".join(
        [data(8, opset(*o)) for o in opsets] +
        [data(25, f) for f in functions]) + more


def relu(more=(), **others):
    """A sound model but for what is put in."""
    return model(graph([node("Relu", ["x"], ["y"])] + list(more),
                       [value("x")], [value("y")], **others))
