# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of the onnx package's test data, put into models that give back
their inputs; compared with what the package itself reads.

usage: read_pb.py FOLDER [STEP]    (every STEP-th file)
"""

import glob
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from constants import bits_of

BATCH = 100
UNSUPPORTED = (TensorProto.UNDEFINED, TensorProto.STRING, TensorProto.COMPLEX64,
               TensorProto.COMPLEX128)


def test_data():
    root = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data")
    return sorted(glob.glob(root + "/**/*.pb", recursive=True))


def read(path):
    """NULL where the file is no tensor (which it does not say)."""
    tensor = TensorProto()
    try:
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        if tensor.data_type in UNSUPPORTED or tensor.ByteSize() == 0:
            return None
        array = numpy_helper.to_array(tensor)
    except Exception:
        return None
    # Sequences begin with the same fields as some tensors.
    kept = TensorProto.FromString(tensor.SerializeToString())
    kept.DiscardUnknownFields()
    return (tensor, array) if kept.ByteSize() == tensor.ByteSize() else None


def run(folder, batch):
    inputs, outputs = (
        [helper.make_tensor_value_info(name % i, t.data_type, t.dims)
         for i, (_, t, _) in enumerate(batch)] for name in ("x%d", "y%d"))
    nodes = [helper.make_node("Identity", ["x%d" % i], ["y%d" % i])
             for i in range(len(batch))]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs))
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    command = ["hidet-run", "--device=ref", path]
    for i, (source, _, _) in enumerate(batch):
        command += ["--input=x%d=@%s" % (i, source),
                    "--output=y%d=@%s/y%d.npy" % (i, folder, i)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        print("exit", done.returncode)
        return len(batch)
    wrong = 0
    for i, (source, tensor, array) in enumerate(batch):
        got, want = np.load("%s/y%d.npy" % (folder, i)), bits_of(array)
        mask = {TensorProto.INT4: 15, TensorProto.UINT4: 15,
                TensorProto.FLOAT4E2M1: 15, TensorProto.INT2: 3,
                TensorProto.UINT2: 3}.get(tensor.data_type)
        if mask:
            got, want = got.view(np.uint8) & mask, want.view(np.uint8) & mask
        if got.shape != want.shape or got.tobytes() != want.tobytes():
            wrong += 1
            print("differs:", source)
    return wrong


def main():
    folder, step = sys.argv[1], int((sys.argv[2:] or [1])[0])
    os.makedirs(folder, exist_ok=True)
    files = [(path,) + r for path in test_data()[::step] for r in [read(path)]
             if r]
    wrong = sum(run(folder, files[i:i + BATCH])
                for i in range(0, len(files), BATCH))
    print("%d tensors, %d wrong" % (len(files), wrong))
    return wrong > 0 or len(files) == 0


if __name__ == "__main__":
    sys.exit(main())
