# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model served at all batch sizes up to a bound, each by an executable of its
own, by sessions side by side: what that takes of the device's memory. The same
weights and what is prepared of them serve all, so that more sizes take code
alone, and more sessions their own workspaces. Every session's answers are those
of the first, bit by bit, and a row of each size is that of the largest.

usage: batches.py [--json=FILE] [--device=cuda] [--sizes=32] [--sessions=8]
           [--precision=f16|tf32|f32] MODEL.onnx
  MODEL.onnx: its one input's first axis is the batch

Memory is what the driver says of the device, on which nothing else may run.
HIDET_LIBRARY names the library where it is not installed.
"""
import argparse
import ctypes
import pathlib
import random
import sys
import threading
import time

import measure
import numpy

sys.path.insert(0, str(measure.ROOT / "python"))
from hidet.model import as_buffer  # noqa: E402
from hidet.runtime import Device, Frozen, Module, Session  # noqa: E402


class Memory:
    """What is taken of a GPU's memory, by the driver; none on the simulator."""

    def __init__(self, device):
        self.driver = None
        if device.startswith("cuda"):
            self.driver = ctypes.CDLL("libcuda.so.1")
            self.context = ctypes.c_void_p()
            self.call("cuInit", 0)
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context),
                      int((device + ":0").split(":")[1]))

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError("%s: error %d" % (name, status))

    def mib(self):
        if not self.driver:
            return 0
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuCtxPushCurrent_v2", self.context)
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        return (total.value - free.value) >> 20


class Server:
    """A session, and what it answered for each size."""

    def __init__(self, model, device, inputs):
        self.session, self.inputs = Session(model, device), inputs
        self.answers = {}

    def ask(self, size):
        (y,) = self.session.run([as_buffer(self.inputs[:size])], [None])
        self.answers[size] = bytes(y.owner)

    def ask_all(self, sizes, seed):
        order = list(sizes)
        random.Random(seed).shuffle(order)
        for size in order:
            self.ask(size)


def side_by_side(servers, sizes):
    faults = []

    def work(server, seed):
        try:
            server.ask_all(sizes, seed)
        except Exception as error:  # Which is raised by who waits.
            faults.append(error)

    threads = [threading.Thread(target=work, args=(server, seed))
               for seed, server in enumerate(servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def off(servers, sizes):
    """The largest difference of a size's rows from the largest size's, over the
    largest value."""
    for server in servers[1:]:
        if server.answers != servers[0].answers:
            raise RuntimeError("sessions have different answers")
    rows = {size: numpy.frombuffer(servers[0].answers[size], "f4").reshape(size, -1)
            for size in sizes}
    whole = rows[max(sizes)]
    return max(float(numpy.abs(rows[size] - whole[:size]).max())
               for size in sizes) / float(numpy.abs(whole).max())


def measured(options):
    module = Module.load_onnx(str(options.model))
    model = Frozen(module)
    model.set_precision(options.precision)
    device = Device(module.context, options.device)
    (value,) = model.inputs
    sizes = range(1, options.sizes + 1)
    inputs = numpy.random.default_rng(0).standard_normal(
        (options.sizes, *value.shape[1:]), dtype="f4")
    memory = Memory(options.device)
    taken = [memory.mib()]
    servers = [Server(model, device, inputs)]
    servers[0].ask(options.sizes)
    taken.append(memory.mib())
    for _ in range(options.sessions - 1):
        servers.append(Server(model, device, inputs))
        servers[-1].ask(options.sizes)
    taken.append(memory.mib())
    start = time.perf_counter()
    side_by_side(servers, sizes)
    seconds = time.perf_counter() - start
    taken.append(memory.mib())
    first, sessions, more = (b - a for a, b in zip(taken, taken[1:]))
    return {"model": options.model.stem, "precision": options.precision,
            "sizes": options.sizes, "sessions": options.sessions,
            "first_mib": first, "other_sessions_mib": sessions,
            "other_sizes_mib": more, "seconds": seconds,
            "compiled": model.num_compiled(device), "off": off(servers, sizes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", type=int, default=32)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--precision", default="f16",
                        choices=["f16", "tf32", "f32"])
    parser.add_argument("model", type=pathlib.Path)
    options = parser.parse_args()
    found = measured(options)
    print("%s: %d sizes compiled, %d sessions, %.1f s; MiB: the largest size in "
          "one session %d, in %d more %d, all other sizes %d; rows off by %.1e" % (
              found["model"], found["compiled"], found["sessions"],
              found["seconds"], found["first_mib"], found["sessions"] - 1,
              found["other_sessions_mib"], found["other_sizes_mib"], found["off"]))
    if options.device.startswith("cuda"):
        measure.write(options.json, [found])


if __name__ == "__main__":
    main()
