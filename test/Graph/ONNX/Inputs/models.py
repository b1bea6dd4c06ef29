# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models, each for one thing that the importer does.

usage: models.py NAME FILE
"""

import sys

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

node = helper.make_node
FLOAT = TensorProto.FLOAT


def value(name, shape=(2,), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs, outputs, tensors=(), name="g"):
    return helper.make_graph(nodes, name, inputs, outputs, list(tensors))


def model(g, versions=(("", 13),), functions=()):
    return helper.make_model(
        g, functions=functions,
        opset_imports=[helper.make_opsetid(d, v) for d, v in versions])


def names():
    """What is no identifier, or is one that means something; the standard's
    operators, imported under both of their names."""
    return model(graph([
        node("Relu", ["/in.put:0"], ["1"], name='quo"ted'),
        node("Relu", ["1"], ["/1"]),
        node("Relu", ["/1"], ["in"], name="layer/1"),
        node("Relu", ["in"], ["f32"]),
        node("Relu", ["f32"], ["größe"]),
        node("Relu", ["größe"], ["graph"]),
        node("Relu", ["graph"], ["_"]),
        node("Relu", ["_"], ["out put"]),
    ], [value("/in.put:0", ("batch size", 3, None, "batch size"))],
        [value("out put")]), (("", 13), ("ai.onnx", 13)))


def attributes():
    tensor = numpy_helper.from_array(np.array([[1, 2]], np.int8), "t")
    return model(graph([
        node("Op", ["x"], ["y"], domain="own.domain", an_int=-3, a_float=0.1,
             a_string="te\"xt\n", ints=[1, 2], floats=[0.5, 2.0],
             strings=["a", "b"], tensor=tensor),
        helper.make_node("Conv", ["y", "y", ""], ["z"], strides=[2, 2],
                         auto_pad="SAME_UPPER"),
        node("Split", ["z"], ["a", "", "c"], axis=1),
        node("f32", ["a"], ["d"], domain="in"),
        node("if", ["d"], ["e"], domain="v2"),
    ], [value("x")], [value("e"), value("c")]),
        (("", 13), ("own.domain", 4), ("in", 1), ("v2", 3)))


def constants():
    dense = numpy_helper.from_array(np.array([1.5, -2], np.float32), "w")
    four = helper.make_tensor("four", TensorProto.INT4, [3], [-8, 7, 1])
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", FLOAT, [2], [5, 6]),
        helper.make_tensor("", TensorProto.INT64, [2, 2], [0, 1, 1, 2]), [2, 3])
    linear = helper.make_sparse_tensor(
        helper.make_tensor("l", FLOAT, [1], [7]),
        helper.make_tensor("", TensorProto.INT64, [1], [3]), [2, 2])
    g = graph([node("Add", ["x", "w"], ["y"]),
               node("Constant", [], ["k"], sparse_value=linear)],
              [value("x"), value("w")],
              [value("y"), value("four"), value("s"), value("k")],
              [dense, four])
    g.sparse_initializer.append(sparse)
    return model(g)


def subgraphs():
    """A graph of an attribute sees the values around it."""
    then = graph([node("Add", ["x", "w"], ["r"])], [], [value("r")],
                 [numpy_helper.from_array(np.float32([1, 2]), "w")], "then")
    other = graph([node("Mul", ["x", "h"], ["r"])], [], [value("r")], (),
                  "other")
    body = graph([
        node("If", ["c"], ["q"], then_branch=then, else_branch=other),
        node("Identity", ["c"], ["c_out"]),
        node("Add", ["v", "q"], ["v_out"]),
    ], [value("i", (), TensorProto.INT64), value("c", (), TensorProto.BOOL),
        value("v")],
        [value("c_out", (), TensorProto.BOOL), value("v_out")], (), "body")
    return model(graph([node("Relu", ["x"], ["h"]),
                        node("Loop", ["m", "", "h"], ["y"], body=body)],
                       [value("x"), value("m", (), TensorProto.INT64)],
                       [value("y")]))


def reference(name, to, kind):
    return AttributeProto(name=name, ref_attr_name=to, type=kind)


def functions():
    """Twice called, one in the other, with attributes given and left out."""
    leaky = node("LeakyRelu", ["t"], ["y"])
    leaky.attribute.append(reference("alpha", "slope", AttributeProto.FLOAT))
    clip = node("Clip", ["x", "low"], ["t"])
    inner = helper.make_function(
        "own", "inner", ["x", "low"], ["y"], [clip, leaky],
        [helper.make_opsetid("", 16)], attributes=[],
        attribute_protos=[helper.make_attribute("slope", 0.25)])
    call = node("inner", ["a"], ["b"], domain="own", name="call")
    call.attribute.append(reference("slope", "given", AttributeProto.FLOAT))
    outer = helper.make_function(
        "own", "outer", ["a"], ["b", "same"],
        [call, node("Relu", ["b"], ["unused"]),
         node("Identity", ["a"], ["same"])],
        [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)], ["given"])
    passing = helper.make_function("own", "passing", ["a"], ["a"], [],
                                   [helper.make_opsetid("", 13)])
    return model(graph([
        node("outer", ["x"], ["p"], domain="own", name="first", given=0.5),
        node("outer", ["p"], ["q", "s"], domain="own", name="second"),
        node("inner", ["q", "x"], ["r"], domain="own"),
        node("passing", ["r"], ["z"], domain="own"),
    ], [value("x")], [value("z"), value("s")]), (("", 13), ("own", 1)),
        [outer, inner, passing])


def types():
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [2])
    optional = helper.make_optional_type_proto(
        helper.make_tensor_type_proto(TensorProto.INT64, []))
    of_sequence = helper.make_optional_type_proto(helper.make_sequence_type_proto(
        helper.make_tensor_type_proto(FLOAT, [])))
    inputs = [sequence, helper.make_value_info("o", optional),
              helper.make_value_info("os", of_sequence),
              value("bare", None), value("f8", (1,), TensorProto.FLOAT8E4M3FN)]
    return model(graph([node("SequenceAt", ["s", "i"], ["y"])],
                       inputs + [value("i", (), TensorProto.INT64)],
                       [value("y")]), (("", 19),))


if __name__ == "__main__":
    with open(sys.argv[2], "wb") as file:
        file.write(globals()[sys.argv[1]]().SerializeToString())
