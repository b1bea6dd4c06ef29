# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models on several GPUs of one host, and in several sessions on one: in one
process a thread and a session each, on tensors in that GPU's memory, each on a
stream of its own. Answers a second of each GPU alone, of all at once, and of so
many sessions on the first. Every session's answer is held against the first's,
bit by bit, and that against PyTorch's in f32.

usage: gpus.py [--json=FILE] [--gpus=2] [--sessions=8] [--seconds=1]
           [--rounds=3] [--precision=f16|tf32|f32] FOLDER NAME...
  FOLDER: what scripts/export_models.py has written, of any batch and length
  NAME: a model of it
  --gpus=1: sessions alone

One line a case, medians of rounds in turns. HIDET_LIBRARY names the library
where it is not installed.
"""
import argparse
import pathlib
import statistics
import sys
import threading
import time

import measure
import numpy
import torch

sys.path.insert(0, str(measure.ROOT / "python"))
from hidet.runtime import Array, Buffer, Device, Frozen, Module, Session, as_array  # noqa: E402
from hidet.torch.operators.call import TYPES  # noqa: E402

AT_ONCE = 16  # Runs that are enqueued before the ones before them are awaited.


def array(tensor):
    return as_array(Buffer(TYPES[tensor.dtype], tuple(tensor.shape),
                           tensor.data_ptr()))


class Worker:
    """A session on a device, its tensors and its stream."""

    def __init__(self, model, device, x):
        self.index = int(device.name.split(":")[1])
        self.session = Session(model, device)
        self.x = x.to("cuda:%d" % self.index)
        given, made = (Array * 1)(array(self.x)), (Array * 1)()
        self.session.prepare(given, made)
        kind = {name: dtype for dtype, name in TYPES.items()}[made[0].type.decode()]
        self.y = torch.empty(tuple(made[0].shape[:made[0].rank]), dtype=kind,
                             device=self.x.device)
        made[0] = array(self.y)
        self.stream = torch.cuda.Stream(self.index)
        self.enqueue = self.session.enqueuer(given, made)
        self.events = [torch.cuda.Event(blocking=False) for _ in range(2)]
        torch.cuda.synchronize(self.index)
        self.enqueue(self.stream.cuda_stream)
        self.stream.synchronize()

    def run(self, barrier, seconds):
        """Runs for so long; leaves how many there were, and when they ended."""
        self.count, turn = 0, 0
        barrier.wait()
        self.begun = time.perf_counter()
        while time.perf_counter() - self.begun < seconds:
            for _ in range(AT_ONCE):
                self.enqueue(self.stream.cuda_stream)
            self.count += AT_ONCE
            self.events[turn % 2].record(self.stream)
            turn += 1
            if turn > 1:
                self.events[turn % 2].synchronize()
        self.stream.synchronize()
        self.ended = time.perf_counter()


def answers_a_second(workers, seconds, batch):
    barrier = threading.Barrier(len(workers))
    threads = [threading.Thread(target=w.run, args=(barrier, seconds))
               for w in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = max(w.ended for w in workers) - min(w.begun for w in workers)
    return batch * sum(w.count for w in workers) / took


def in_turns(sets, options, batch):
    """Answers a second of each set of workers: medians."""
    rates = {name: [] for name in sets}
    for _ in range(options.rounds):
        for name, workers in sets.items():
            rates[name].append(
                answers_a_second(workers, options.seconds, batch))
    return {name: statistics.median(rate) for name, rate in rates.items()}


def check(workers, expected):
    """The first answer's largest difference over the largest value; all others
    are the first's."""
    first = workers[0].y.cpu().numpy()
    for worker in workers[1:]:
        if worker.y.cpu().numpy().tobytes() != first.tobytes():
            raise RuntimeError("another answer on cuda:%d" % worker.index)
    first = first.astype(numpy.float64).reshape(expected.shape)
    return float(numpy.abs(first - expected).max() / numpy.abs(expected).max())


def measured(options, name):
    at = str(options.folder / name.replace("/", "-"))
    x = torch.from_numpy(numpy.load(at + ".in0.npy"))
    module = Module.load_onnx(at + ".onnx")
    model = Frozen(module)
    model.set_precision(options.precision)
    devices = [Device(module.context, "cuda:%d" % i) for i in range(options.gpus)]
    several = [Worker(model, devices[0], x) for _ in range(options.sessions)]
    each = several[:1] + [Worker(model, device, x) for device in devices[1:]]
    sets = {"cuda:%d" % i: [worker] for i, worker in enumerate(each)}
    if len(each) > 1:
        sets["gpus"] = each
    if len(several) > 1:
        sets["sessions"] = several
    rates = in_turns(sets, options, len(x))
    alone = [rates["cuda:%d" % i] for i in range(len(each))]
    found = {"model": name, "precision": options.precision, "batch": len(x),
             "sessions": len(several), "alone": alone,
             "error": check(several + each[1:],
                            numpy.load(at + ".out0.npy"))}
    if "gpus" in rates:
        found.update(gpus=rates["gpus"],
                     gpus_over_one=rates["gpus"] / statistics.mean(alone))
    if "sessions" in rates:
        found.update(side_by_side=rates["sessions"],
                     sessions_over_one=rates["sessions"] / alone[0])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", default="f16",
                        choices=["f16", "tf32", "f32"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="+", metavar="NAME")
    options = parser.parse_args()
    cases = []
    for name in options.names:
        case = measured(options, name)
        cases.append(case)
        print("%-14s a second: alone %s" % (
            name, ", ".join("%.0f" % rate for rate in case["alone"])) + "".join(
                "; %s %.0f (%.3f x)" % (what, case[key], case[over])
                for what, key, over in (
                    ("all GPUs", "gpus", "gpus_over_one"),
                    ("%d sessions" % case["sessions"], "side_by_side",
                     "sessions_over_one")) if key in case)
            + "; error %.1e" % case["error"], flush=True)
        measure.write(options.json, cases)


if __name__ == "__main__":
    main()
