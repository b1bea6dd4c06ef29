# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that somebody made to do harm, or that are broken. Each is refused
with a diagnostic, within a second and 256 MiB.

usage: hostile.py [--relaxed] GROUP FOLDER [CASE]   (--relaxed: sanitizers)
"""

import os
import subprocess
import sys
import tempfile

from wire import *

SECONDS, MEMORY = 1, 256 << 20
CASES = []


def case(group, code, text):
    """Adds a case: a function that gets a folder and gives the model's bytes,
    the exit code, a part of the message."""
    def add(make):
        CASES.append((group, make.__name__, code, text, make))
        return make
    return add


def with_tensor(t, **others):
    return relu(tensors=[t], **others)


# --- External data.

def external(**entries):
    return with_tensor(tensor("w", [2], external=entries))


def put(folder, name, content=floats(1, 2)):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


@case("external", 3, "E1102]: external data of 'w': '../secret.bin': it lies "
      "outside the model's folder")
def parent(folder):
    put(os.path.dirname(folder), "secret.bin")
    return external(location="../secret.bin")


@case("external", 3, "outside the model's folder")
def parent_by_detour(folder):
    os.mkdir(os.path.join(folder, "sub"))
    put(os.path.dirname(folder), "secret.bin")
    return external(location="sub/../../secret.bin")


@case("external", 3, "outside the model's folder")
def absolute(folder):
    return external(location="/etc/passwd")


@case("external", 3, "outside the model's folder")
def absolute_inside(folder):
    put(folder, "w.bin")
    return external(location=os.path.join(folder, "w.bin"))


@case("external", 3, "symbolic link")
def link(folder):
    put(os.path.dirname(folder), "secret.bin")
    os.symlink("../secret.bin", os.path.join(folder, "w.bin"))
    return external(location="w.bin")


@case("external", 3, "symbolic link")
def link_inside(folder):
    put(folder, "w.bin")
    os.symlink("w.bin", os.path.join(folder, "link.bin"))
    return external(location="link.bin")


@case("external", 3, "symbolic link")
def link_of_folder(folder):
    put(os.path.dirname(folder), "secret.bin")
    os.symlink("..", os.path.join(folder, "sub"))
    return external(location="sub/secret.bin")


@case("external", 3, "it is not there")
def missing(folder):
    return external(location="w.bin")


@case("external", 3, "it is no file")
def folder_itself(folder):
    return external(location=".")


@case("external", 3, "it is no file")
def pipe(folder):
    os.mkfifo(os.path.join(folder, "w.bin"))
    return external(location="w.bin")


@case("external", 3, "no file is named")
def nowhere(folder):
    return external(offset=0)


@case("external", 3, "ends at 4 bytes")
def too_short(folder):
    put(folder, "w.bin", b"1234")
    return external(location="w.bin")


@case("external", 3, "ends at 8 bytes")
def offset_past_end(folder):
    put(folder, "w.bin")
    return external(location="w.bin", offset=(1 << 63) - 1)


@case("external", 3, "the offset '-8' is no size")
def negative_offset(folder):
    put(folder, "w.bin")
    return external(location="w.bin", offset=-8)


@case("external", 3, "is no size")
def offset_past_64_bits(folder):
    put(folder, "w.bin")
    return external(location="w.bin", offset=1 << 64)


@case("external", 3, "its length is 4 bytes")
def wrong_length(folder):
    put(folder, "w.bin")
    return external(location="w.bin", length=4)


@case("external", 3, "E1101]")
def zero_byte_in_name(folder):
    put(folder, "w.bin")
    return external(location="w.bin\0.txt")


@case("external", 3, "too long")
def long_name(folder):
    return external(location="a/" * 100000 + "w.bin")


# --- Sizes and elements.

@case("tensors", 3, "E0309]: tensor 'w'")
def overflow(folder):
    return with_tensor(tensor("w", [1 << 40, 1 << 40], raw=b""))


@case("tensors", 3, "E0309]")
def overflow_to_nothing(folder):
    return with_tensor(tensor("w", [1 << 32, 1 << 32], UINT8, raw=b""))


@case("tensors", 3, "E0309]")
def overflow_to_little(folder):
    return with_tensor(tensor("w", [(1 << 62) + 1, 4], raw=floats(1, 2, 3, 4)))


@case("tensors", 3, "it holds 0 bytes of elements, and its shape needs")
def much_of_nothing(folder):
    return with_tensor(tensor("w", [1 << 40], raw=b""))


@case("tensors", 3, "fewer elements")
def much_without_data(folder):
    return with_tensor(tensor("w", [1 << 40]))


@case("tensors", 3, "initializer 'w': axis 0 has the size -1")
def negative(folder):
    return with_tensor(tensor("w", [-1, -2], raw=floats(1, 2)))


@case("tensors", 3, "input 'z': axis 1 has the size -4")
def negative_input(folder):
    return model(graph(inputs=[value("z", (1, -4))]))


@case("tensors", 3, "it holds 7 bytes of elements, and its shape needs 8")
def truncated(folder):
    return with_tensor(tensor("w", [2], raw=floats(1, 2)[:7]))


@case("tensors", 3, "twice")
def raw_twice(folder):
    return with_tensor(tensor("w", [2], raw=floats(1, 2),
                              more=data(9, floats(1, 2))))


@case("tensors", 3, "raw_data and elsewhere")
def raw_and_other(folder):
    return with_tensor(tensor("w", [2], raw=floats(1, 2),
                              more=data(4, floats(1, 2))))


@case("tensors", 3, "middle of an element")
def half_a_float(folder):
    return with_tensor(tensor("w", [2], more=data(4, floats(1, 2)[:6])))


@case("tensors", 3, "middle of an element")
def half_an_int(folder):
    return with_tensor(tensor("w", [2], INT64, more=data(7, b"\1\x80")))


@case("tensors", 4, "rank 1000 (at most 16)")
def rank(folder):
    return with_tensor(tensor("w", [1] * 1000, raw=b"1234"))


@case("tensors", 4, "E1104]: initializer 'w': elements of type string")
def strings(folder):
    return with_tensor(tensor("w", [1], STRING, more=data(6, "text")))


def sparse(indices, dims):
    return data(15, data(1, tensor("w", [1], raw=floats(1))) +
                data(2, tensor("i", [1], INT64, more=data(7, varint(indices)))) +
                b"".join(number(3, d) for d in dims))


@case("tensors", 5, "sparse")
def sparse_made_dense(folder):
    return model(graph(outputs=[value("w")], more=sparse(0, [1 << 40])))


@case("tensors", 3, "outside its shape")
def sparse_outside(folder):
    return model(graph(outputs=[value("w")], more=sparse(4, [2, 2])))


@case("tensors", 3, "outside its shape")
def sparse_negative(folder):
    return model(graph(outputs=[value("w")], more=sparse(-1, [2, 2])))


# --- Nesting.

def nested(depth, inner, wrap):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def in_if(inner):
    return graph([node("If", ["c"], ["y"],
                       [graph_attribute("then_branch", inner)])])


@case("nesting", 3, "nested too deeply")
def graphs(folder):
    return model(nested(40, graph(), in_if))


@case("nesting", 3, "nested too deeply")
def graphs_far(folder):
    return model(nested(3000, graph(), in_if))


@case("nesting", 3, "nested too deeply")
def types(folder):
    inner = nested(10000, tensor_type([2]), lambda t: data(4, data(1, t)))
    return model(graph(inputs=[data(1, "x") + data(2, inner)]))


@case("nesting", 3, "calls itself")
def cycle(folder):
    return model(graph([node("f", ["x"], ["y"], domain="own")], [value("x")],
                       [value("y")]), (("", 13), ("own", 1)),
                 [function("f", [node("f", ["x"], ["y"], domain="own")])])


@case("nesting", 3, "calls itself")
def cycle_of_three(folder):
    call = lambda f: node(f, ["x"], ["y"], domain="own")
    return model(graph([call("f")], [value("x")], [value("y")]),
                 (("", 13), ("own", 1)),
                 [function("f", [call("g")]), function("g", [call("h")]),
                  function("h", [call("f")])])


@case("nesting", 3, "calls itself")
def cycle_in_a_graph(folder):
    call = node("f", ["x"], ["y"], domain="own")
    branch = node("If", ["x"], ["y"], [graph_attribute("then_branch", graph(
        [node("f", ["x"], ["z"], domain="own")], outputs=[value("z")]))])
    return model(graph([call], [value("x")], [value("y")]),
                 (("", 13), ("own", 1)), [function("f", [branch])])


@case("nesting", 5, "levels deep")
def chain(folder):
    functions = [function("f%d" % i, [node("f%d" % (i + 1), ["x"], ["y"],
                                           domain="own")])
                 for i in range(1000)]
    return model(graph([node("f0", ["x"], ["y"], domain="own")], [value("x")],
                       [value("y")]), (("", 13), ("own", 1)), functions)


@case("nesting", 5, "more than 262144 nodes")
def bomb(folder):
    def body(i):
        return [node("f%d" % (i + 1) if i < 20 else "Relu", ["x"],
                     ["y" if k == 0 else "y%d" % k],
                     domain="own" if i < 20 else "") for k in range(10)]
    return model(graph([node("f0", ["x"], ["y"], domain="own")], [value("x")],
                       [value("y")]), (("", 13), ("own", 1)),
                 [function("f%d" % i, body(i)) for i in range(21)])


# --- Counts.

@case("counts", 5, "bytes beside weights")
def empty_nodes(folder):
    return model(data(1, b"") * 20000000)


@case("counts", 5, "more than")
def empty_attributes(folder):
    return model(graph([data(5, b"") * 5000000]))


@case("counts", 5, "more than")
def empty_tensors(folder):
    return model(data(5, b"") * 5000000)


@case("counts", 5, "more than")
def empty_functions(folder):
    return model(graph(), more=data(25, b"") * 5000000)


@case("counts", 5, "more than")
def dimensions(folder):
    return model(graph([node("Relu", ["x"], ["y"])], [
        data(1, "x") + data(2, data(1, number(1, FLOAT) + data(
            2, data(1, b"") * 5000000)))]))


@case("counts", 5, "bytes beside weights")
def ints(folder):
    return model(graph([node("Relu", ["x"], ["y"], [
        data(1, "a") + data(8, bytes(15000000)) + number(20, 7)])]))


@case("counts", 5, "bytes beside weights")
def ints_one_by_one(folder):
    return model(graph([node("Relu", ["x"], ["y"], [
        data(1, "a") + number(8, 1) * 5000000 + number(20, 7)])]))


@case("counts", 5, "bytes beside weights")
def names(folder):
    return model(graph([data(1, "x") * 5000000 + data(4, "Sum")]))


@case("counts", 5, "bytes beside weights")
def pieces_of_tensors(folder):
    return model(graph(tensors=[tensor("w", [2], more=data(4, b"") * 5000000)]))


@case("counts", 5, "bytes beside weights")
def shapes(folder):
    return model(graph(tensors=[data(1, bytes(15000000))]))


@case("counts", 3, "no node gives this value")
def unread_fields(folder):
    # They cost nothing but the time to pass them.
    return model(graph(outputs=[value("y")], more=data(13, b"") * 5000000))


@case("counts", 3, "no node gives this value")
def similar_names(folder):
    inputs = [value("%s%d" % ("?" * (1 + i % 7), i), ()) for i in range(20000)]
    inputs += [value("x" + "?!;,."[i % 5] * (i // 5 + 1), ())
               for i in range(2000)]
    return model(graph(inputs=inputs, outputs=[value("y")]))


# --- Rules of graphs.

@case("graphs", 3, "E1103]: node number 0 (Relu) 'z': no input, initializer or "
      "node before it gives this value")
def unsorted(folder):
    return model(graph([node("Relu", ["z"], ["y"]), node("Relu", ["x"], ["z"])],
                       [value("x")], [value("y")]))


@case("graphs", 3, "node 'loop' (Add) 'y': no input")
def feeds_itself(folder):
    return model(graph([node("Add", ["x", "y"], ["y"], name="loop")],
                       [value("x")], [value("y")]))


@case("graphs", 3, "another value has this name")
def outputs_of_one_name(folder):
    return relu([node("Relu", ["x"], ["y"])])


@case("graphs", 3, "another value has this name")
def inputs_of_one_name(folder):
    return model(graph(inputs=[value("x"), value("x")]))


@case("graphs", 3, "another value has this name")
def tensors_of_one_name(folder):
    return relu(tensors=[tensor("w", [0], raw=b""), tensor("w", [0], raw=b"")])


@case("graphs", 3, "defined twice")
def functions_of_one_name(folder):
    return model(graph(), functions=[function("f", []), function("f", [])])


@case("graphs", 3, "the attribute is given twice")
def attributes_of_one_name(folder):
    a = data(1, "a") + number(3, 1) + number(20, 2)
    return model(graph([node("Relu", ["x"], ["y"], [a, a])], [value("x")]))


@case("graphs", 3, "output 'y': no node gives this value")
def output_of_nothing(folder):
    return model(graph(outputs=[value("y")]))


@case("graphs", 3, "is not imported")
def domain_not_imported(folder):
    return model(graph([node("F", [], ["y"], domain="elsewhere")]))


@case("graphs", 3, "stands in none")
def reference_outside(folder):
    return model(graph([node("Relu", ["x"], ["y"], [
        data(1, "a") + number(20, 2) + data(21, "b")])], [value("x")]))


@case("graphs", 3, "the function has 1 inputs, and 2 are given")
def too_many_inputs(folder):
    return model(graph([node("f", ["x", "x"], ["y"], domain="own")],
                       [value("x")]), (("own", 1),), [function("f", [])])


@case("graphs", 3, "no node of the function gives this output")
def function_gives_nothing(folder):
    return model(graph([node("f", ["x"], ["y"], domain="own")], [value("x")]),
                 (("own", 1),), [function("f", [])])


@case("graphs", 3, "of no known kind (77)")
def attribute_of_no_kind(folder):
    return relu([node("Relu", ["x"], ["z"], [data(1, "a") + number(20, 77)])])


@case("graphs", 3, "it holds no graph")
def attribute_without_graph(folder):
    return relu([node("If", ["x"], ["z"], [data(1, "a") + number(20, 5)])])


@case("graphs", 4, "version 1000, and the newest one known here is 27")
def newer_operators(folder):
    return model(graph(), (("", 1000),))


@case("graphs", 3, "operator set 'own': version 2147483647")
def far_version(folder):
    return model(graph(), (("own", (1 << 31) - 1),))


@case("graphs", 4, "its format has version 99")
def newer_format(folder):
    return model(graph(), ir=99)


@case("graphs", 3, "imported twice, as version 13 and 14")
def two_versions(folder):
    return model(graph(), (("", 13), ("ai.onnx", 14)))


@case("graphs", 4, "attribute 'type': the type is not supported")
def type_of_strings(folder):
    return relu([node("Optional", [], ["o"], [
        data(1, "type") + data(14, tensor_type([], STRING)) + number(20, 13)])])


@case("graphs", 4, "input 'm': its type (a map)")
def map_input(folder):
    return model(graph(inputs=[data(1, "m") + data(2, data(5, b""))]))


# --- Bytes.

@case("bytes", 3, "it is empty")
def empty(folder):
    return b""


@case("bytes", 3, "E1101]: 'model.onnx' is no ONNX model")
def text(folder):
    return b"This is a text, and not a model.\n" * 100


@case("bytes", 3, "Git LFS")
def pointer(folder):
    return (b"version https://git-lfs.github.com/spec/v1\n"
            b"oid sha256:" + b"0" * 64 + b"\nsize 1\n")


@case("bytes", 3, "is no ONNX model")
def zeros(folder):
    return bytes(1000000)


@case("bytes", 3, "is no ONNX model")
def elf(folder):
    with open("/proc/self/exe", "rb") as file:
        return file.read(100000)


@case("bytes", 3, "it holds no graph")
def no_graph(folder):
    return number(1, 8)


@case("bytes", 3, "a field passes the end")
def long_field(folder):
    return number(1, 8) + varint(7 << 3 | 2) + varint(1 << 62)


@case("bytes", 3, "a field passes the end")
def half(folder):
    whole = relu()
    return whole[:len(whole) // 2]


@case("bytes", 3, "a field passes the end")
def endless_number(folder):
    return b"\x08" + b"\xff" * 100


@case("bytes", 3, "no known kind")
def groups(folder):
    return number(1, 8) + b"\x0b" * 1000


@case("bytes", 3, "a field of a wrong kind")
def graph_is_a_number(folder):
    return number(1, 8) + number(7, 1)


@case("bytes", 3, "given twice")
def two_graphs(folder):
    return relu() + data(7, graph())


@case("bytes", 3, "given twice")
def two_kinds_of_dimension(folder):
    return model(graph(inputs=[data(1, "x") + data(2, data(1, number(
        1, FLOAT) + data(2, data(1, number(1, 2) + data(2, "n")))))]))


@case("bytes", 3, "not UTF-8")
def latin(folder):
    return model(graph(inputs=[data(1, b"\xe9") + data(2, tensor_type([2]))]))


@case("bytes", 3, "no input")
def long_names(folder):
    # What a message repeats of a name is short.
    return model(graph([node("Relu", ["x" * 5000000], ["y"], name="n" * 5000000)]))


def run(make, code, text, folder, relaxed):
    """What is wrong, or None."""
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(make(folder))
    process = subprocess.Popen(
        ["hidet-run", "--device=ref", "--color=never", "model.onnx"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    if process.returncode != code or text not in said:
        return "exit %d, not %d with '%s': %s" % (process.returncode, code,
                                                  text, said[:2000])
    if len(said) > 2000:
        return "%d characters said" % len(said)
    if relaxed:
        return None
    if seconds > SECONDS:
        return "%.2f s" % seconds
    if usage.ru_maxrss << 10 > MEMORY:
        return "%d MiB" % (usage.ru_maxrss >> 10)
    return None


def main():
    arguments = sys.argv[1:]
    relaxed = "--relaxed" in arguments
    arguments = [a for a in arguments if a != "--relaxed"]
    group, top = arguments[:2]
    os.makedirs(top, exist_ok=True)
    failed = count = 0
    for of, name, code, text, make in CASES:
        if of != group or name not in (arguments[2:] or [name]):
            continue
        with tempfile.TemporaryDirectory(dir=top) as outer:
            folder = os.path.join(outer, name)
            os.mkdir(folder)
            wrong = run(make, code, text, folder, relaxed)
        count += 1
        if wrong:
            failed += 1
            print("%s: %s" % (name, wrong))
    print("%d refused, %d not" % (count - failed, failed))
    return failed > 0 or count == 0


if __name__ == "__main__":
    sys.exit(main())
