# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches PTX as somebody would who knows neither Hidet nor its language: by
what `hidet-opt --emit=ptx --json` says of each kernel, with the CUDA driver.

usage: launch_ptx.py FILE.ptx REPORT.json KERNEL [NAME=NUMBER | NAME=FILE.npy]...
                     [--expected=NAME=FILE.npy] [--tolerance=X]

Tensors that no file gives are zeros of their shape. Exits 1 where a result
differs from what is expected.
"""

import ctypes
import json
import re
import sys

import numpy as np

cuda = ctypes.CDLL("libcuda.so.1")
# numpy's types and CUtensorMapDataType's numbers.
TYPES = {"f16": ("f2", 6), "f32": ("f4", 7), "i32": ("i4", 3), "u8": ("u1", 0)}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
L2 = {0: 0, 64: 1, 128: 2, 256: 3}
MAX_SHARED, CLUSTER, MULTIPROCESSORS = 8, 4, 16  # The driver's attributes.
SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    if error:
        raise SystemExit("%s: error %d" % (name, error))


class Config(ctypes.Structure):
    """CUlaunchConfig"""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


class Attribute(ctypes.Structure):
    """CUlaunchAttribute with the value that a cluster takes"""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int),
                ("value", ctypes.c_uint * 16)]


class Map(ctypes.Structure):
    """CUtensorMap: 64 bytes aligned, so twice its size is taken."""
    _fields_ = [("words", ctypes.c_uint64 * 32)]

    def address(self):
        return (ctypes.addressof(self) + 63) // 64 * 64


def number(text, sizes):
    """A size: a number, or an expression in the language's (C's) notation."""
    if isinstance(text, int):
        return text
    text = re.sub(r"\bi(32|64)\(", "(", text.replace("device.sms", "sms"))
    return eval(text.replace("/", "//"), {"min": min, "max": max}, sizes)


def array(values, kind):
    return (kind * len(values))(*values)


class Launch:
    def __init__(self, entry, given):
        call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        call("cuDeviceGet", ctypes.byref(device), 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        call("cuCtxSetCurrent", self.context)
        sms = ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(sms), MULTIPROCESSORS, device)
        self.entry, self.sizes = entry, {"sms": sms.value}
        self.tensors, self.addresses, self.kept = {}, {}, []
        for name, value in given.items():
            if value.endswith(".npy"):
                self.tensors[name] = np.load(value)
            else:
                self.sizes[name] = int(value)

    def upload(self, param):
        shape = [number(size, self.sizes) for size in param["shape"]]
        kind = TYPES[param["type"]][0]
        data = self.tensors.setdefault(param["name"], np.zeros(shape, kind))
        assert list(data.shape) == shape and data.dtype == kind, param["name"]
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address),
             ctypes.c_size_t(data.nbytes))
        call("cuMemcpyHtoD_v2", address, data.ctypes.data_as(ctypes.c_void_p),
             ctypes.c_size_t(data.nbytes))
        self.addresses[param["name"]] = address
        return address

    def encode(self, param):
        """Axes are counted from the contiguous one on."""
        tensor = self.tensors[param["tensor"]]
        rank = tensor.ndim
        sizes, box = tensor.shape[::-1], [
            number(size, self.sizes) for size in param["box"]][::-1]
        result = Map()
        address = ctypes.c_void_p(result.address())
        call("cuTensorMapEncodeTiled", address,
             {"f2": 6, "f4": 7}[tensor.dtype.str[1:]], rank,
             ctypes.c_void_p(self.addresses[param["tensor"]].value),
             array(sizes, ctypes.c_uint64),
             array(tensor.strides[::-1][1:], ctypes.c_uint64),
             array(box, ctypes.c_uint32), array([1] * rank, ctypes.c_uint32),
             0, SWIZZLES[param["swizzle"]], L2[param["l2"]], 0)
        self.kept.append(result)
        return address

    def argument(self, param):
        """The address of a parameter's value."""
        if param["kind"] == "tensor_map":
            return self.encode(param)
        value = (self.upload(param) if param["kind"] == "tensor" else
                 SCALARS[param["type"]](self.sizes[param["name"]]))
        self.kept.append(value)
        return ctypes.cast(ctypes.pointer(value), ctypes.c_void_p)

    def run(self, ptx):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx))
        call("cuModuleGetFunction", ctypes.byref(function), module,
             self.entry["name"].encode())
        shared = number(self.entry["shared_bytes"], self.sizes)
        if shared > 48 << 10:
            call("cuFuncSetAttribute", function, MAX_SHARED, shared)
        arguments = [self.argument(p) for p in self.entry["parameters"]]
        dims = {key: [number(size, self.sizes) for size in self.entry[key]]
                for key in ("grid", "block", "cluster")}
        cluster = Attribute(CLUSTER)
        cluster.value[:3] = dims["cluster"]
        has_cluster = dims["cluster"] != [1, 1, 1]
        stream = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(stream), 0)
        config = Config(array(dims["grid"], ctypes.c_uint),
                        array(dims["block"], ctypes.c_uint), shared, stream,
                        ctypes.addressof(cluster), int(has_cluster))
        call("cuLaunchKernelEx", ctypes.byref(config), function,
             array([a.value for a in arguments], ctypes.c_void_p), None)
        call("cuStreamSynchronize", stream)
        for param in self.entry["parameters"]:
            if param.get("direction", "in") != "in":
                data = self.tensors[param["name"]]
                call("cuMemcpyDtoH_v2",
                     data.ctypes.data_as(ctypes.c_void_p),
                     self.addresses[param["name"]],
                     ctypes.c_size_t(data.nbytes))


def main():
    ptx, report, kernel = sys.argv[1:4]
    options = dict(a[2:].split("=", 1) for a in sys.argv[4:]
                   if a.startswith("--"))
    given = dict(a.split("=", 1) for a in sys.argv[4:] if a[:2] != "--")
    with open(report) as file:
        entries = {e["name"]: e for e in json.load(file)["entries"]}
    launch = Launch(entries[kernel], given)
    with open(ptx, "rb") as file:
        launch.run(file.read())
    if "expected" not in options:
        return 0
    name, path = options["expected"].split("=")
    error = np.abs(launch.tensors[name].astype("f8") - np.load(path)).max()
    print("%s: largest error %g" % (name, error))
    return int(not error <= float(options.get("tolerance", "0")))


if __name__ == "__main__":
    sys.exit(main())
