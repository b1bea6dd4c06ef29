# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of every element type in every form that ONNX has for them: a
model gives them back, and what comes is compared with what the onnx package
reads.

usage: constants.py FOLDER
"""

import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = [t for name, t in TensorProto.DataType.items()
         if name not in ("UNDEFINED", "STRING", "COMPLEX64", "COMPLEX128")]


def values(kind, count):
    """Whatever bits there are, as the type has them."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    random = np.random.default_rng(kind)
    if kind == TensorProto.BOOL:
        return random.integers(0, 2, count).astype(bool)
    bits = {TensorProto.INT4: 4, TensorProto.UINT4: 4,
            TensorProto.FLOAT4E2M1: 4, TensorProto.INT2: 2,
            TensorProto.UINT2: 2}.get(kind)
    if bits is None:
        raw = random.integers(0, 256, count * dtype.itemsize, np.uint8)
        return raw.view(dtype)
    # ml_dtypes reads the low bits of each byte.
    raw = random.integers(0, 1 << bits, count, np.uint8)
    if kind in (TensorProto.INT4, TensorProto.INT2):
        sign = 1 << (bits - 1)
        raw = ((raw.astype(np.int8) ^ sign) - sign).view(np.uint8)
    return raw.view(dtype)


def raw_tensor(name, kind, array):
    return numpy_helper.from_array(array, name)


def field_tensor(name, kind, array):
    """The elements in the field of their type."""
    if kind in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64,
                TensorProto.INT32, TensorProto.UINT64, TensorProto.UINT32):
        vals = array.ravel().tolist()
    elif array.dtype.itemsize > 1 or kind in (
            TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL,
            TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
            TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ,
            TensorProto.FLOAT8E8M0):
        unsigned = {1: np.uint8, 2: np.uint16}[array.dtype.itemsize]
        signed = kind in (TensorProto.INT8, TensorProto.INT16)
        flat = array.ravel()
        vals = flat.tolist() if signed else flat.view(unsigned).tolist()
    else:  # Packed below a byte: what raw_data has, a number for each byte.
        vals = list(numpy_helper.from_array(array, name).raw_data)
    tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
    field = helper.tensor_dtype_to_field(kind)
    getattr(tensor, field).extend(vals)
    return tensor


def bits_of(array):
    """As hidet-run writes it: types that NumPy lacks travel as raw bits, those
    below a byte as one byte each."""
    if array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1:
        return array
    size = array.dtype.itemsize
    return array.view({1: np.uint8, 2: np.uint16}[size])


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    tensors, expected = [], {}
    for kind in TYPES:
        for form, make in (("raw", raw_tensor), ("field", field_tensor),
                           ("file", raw_tensor)):
            for shape in ((5,), (2, 3, 7), (), (0, 2)):
                array = values(kind, int(np.prod(shape))).reshape(shape)
                name = "%s_%s_%s" % (TensorProto.DataType.Name(kind).lower(),
                                     form, "x".join(map(str, shape)) or "one")
                tensor = make(name, kind, array)
                if form == "file":
                    put_outside(folder, tensor)
                tensors.append(tensor)
                expected[name] = numpy_helper.to_array(make(name, kind, array))
    outputs = [helper.make_tensor_value_info(t.name, t.data_type, t.dims)
               for t in tensors]
    graph = helper.make_graph([], "g", [], outputs, tensors)
    model = helper.make_model(graph)
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    names = [t.name for t in tensors]
    command = ["hidet-run", "--device=ref", path] + [
        "--output=%s=@%s" % (n, os.path.join(folder, n + ".npy"))
        for n in names]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wrong = 0
    for name in names:
        got = np.load(os.path.join(folder, name + ".npy"))
        want = bits_of(expected[name])
        if want.dtype.kind in "iu" and got.dtype != want.dtype:
            got, want = got.view(np.uint8), want.view(np.uint8)
        mask = 0xFF
        if "int4" in name or "float4" in name:
            mask = 0xF
        if "int2_" in name:
            mask = 3
        if mask != 0xFF:
            got, want = got & mask, want & mask
        if got.shape != want.shape or got.tobytes() != want.tobytes():
            wrong += 1
            print(name, got.dtype, want.dtype, got.shape, got.ravel()[:5],
                  want.ravel()[:5])
    print("%d constants, %d wrong" % (len(names), wrong))
    return wrong > 0


def put_outside(folder, tensor):
    """Moves the elements to a file, at odd places."""
    with open(os.path.join(folder, "weights.bin"), "ab") as file:
        if file.tell() == 0:
            file.write(b"?")
        offset = file.tell()
        file.write(tensor.raw_data)
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", offset),
                       ("length", size)):
        tensor.external_data.add(key=key, value=str(value))


if __name__ == "__main__":
    sys.exit(main())
