# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The test data that the Python package onnx carries, as cases to run.

A case is a model and folders test_data_set_* with the inputs and outputs that
belong to it. The light models come with an output alone: their input is n
numbers from 0 towards 1, in even steps.
"""

import json
import pathlib
import shutil

import numpy
import onnx
import onnx.numpy_helper

SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
# Where a case does not say how exact a result has to be.
RTOL, ATOL = 1e-3, 1e-7
# As lib/Graph/ONNX/Domains.def calls them.
DOMAINS = {"": "onnx", "ai.onnx": "onnx", "ai.onnx.ml": "ml",
           "ai.onnx.preview": "preview", "ai.onnx.preview.training": "training"}


class Case:
    """One test of a suite; `name` is suite/test."""

    def __init__(self, suite, name, model, data, rtol=RTOL, atol=ATOL):
        self.suite, self.name = suite, suite + "/" + name
        self.model, self.data = model, data
        self.rtol, self.atol = rtol, atol
        self.row = suite  # of the table: an operator, for tests of operators
        self.operator = None  # the same with its domain, as in onnx.Add
        self.plain = True  # of a node test: only tensors go in and out
        self.words = ()  # an unsupported case names one of these


def package_data():
    return pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"


def graphs_of(graph):
    """A graph and those that its nodes hold."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            held = [attribute.g] if attribute.HasField("g") else []
            for inner in held + list(attribute.graphs):
                yield from graphs_of(inner)


def nodes_of(model):
    for graph in graphs_of(model.graph):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def is_plain(model):
    """Whether all inputs and outputs are tensors, and none of strings."""
    return all(value.type.WhichOneof("value") == "tensor_type" and
               value.type.tensor_type.elem_type != onnx.TensorProto.STRING
               for value in [*model.graph.input, *model.graph.output])


def describe(case, model):
    """What the model's nodes say of the case."""
    nodes = list(nodes_of(model))
    case.words = ({node.op_type for node in nodes} |
                  {a.name for node in nodes for a in node.attribute})
    if case.suite == "node":
        case.plain = is_plain(model)
        named = [n for n in model.graph.node if
                 n.op_type not in ("Constant", "Identity")]
        node = (named or model.graph.node)[0]
        case.row = node.op_type
        case.operator = DOMAINS[node.domain] + "." + node.op_type


def folder_cases(folder, suite):
    for path in sorted((folder / suite).iterdir()):
        rtol, atol = RTOL, ATOL
        if (path / "data.json").exists():
            said = json.loads((path / "data.json").read_text())
            rtol, atol = said.get("rtol", rtol), said.get("atol", atol)
        case = Case(suite, path.name, path / "model.onnx", path, rtol, atol)
        describe(case, onnx.load(case.model, load_external_data=False))
        yield case


def light_tolerances(folder):
    """The suite `real` names the light models, and says how exact they are."""
    for path in (folder / "real").glob("*/data.json"):
        said = json.loads(path.read_text())
        yield pathlib.Path(said["url"]).name, (said["rtol"], said["atol"])


def light_cases(folder, scratch):
    """Writes what the light models read and return to folders of `scratch`."""
    tolerances = dict(light_tolerances(folder))
    for path in sorted((folder / "light").glob("*.onnx")):
        model = onnx.load(path)
        constants = {value.name for value in model.graph.initializer}
        value, = [v for v in model.graph.input if v.name not in constants]
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        count = numpy.prod(shape)
        x = (numpy.arange(count).reshape(shape) / count).astype(numpy.float32)
        data = scratch / path.stem / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save_tensor(onnx.numpy_helper.from_array(x, value.name),
                         data / "input_0.pb")
        shutil.copy(path.with_name(path.stem + "_output_0.pb"),
                    data / "output_0.pb")
        case = Case("light", path.stem, path, data.parent,
                    *tolerances.get(path.name, (RTOL, ATOL)))
        describe(case, model)
        yield case


def rows_of_expanded(cases):
    """A test_x_expanded stands in the row of test_x."""
    named = {case.name: case for case in cases}
    for case in cases:
        whole = named.get(case.name.split("_expanded")[0], case)
        case.row, case.operator = whole.row, whole.operator


def all_cases(scratch):
    """All of them; `scratch` is a folder that lives as long as they do."""
    folder = package_data()
    cases = [case for suite in SUITES if suite != "light"
             for case in folder_cases(folder, suite)]
    cases += light_cases(folder, pathlib.Path(scratch))
    rows_of_expanded(cases)
    return cases
