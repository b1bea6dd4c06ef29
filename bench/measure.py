# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the measurements on a GPU share: our side by hidet-run --bench, the
peer's by a CUDA graph in PyTorch, taken one after the other.

Both sides: random normal data, warmed up, as many copies of the operands as
pass twice the L2 cache together, one launch for each copy in a CUDA graph, again
and again until a replay takes a millisecond, 50 replays, the median, per launch. A
GPU at its power limit changes its clock from second to second, and the sooner the
longer it is busy: what is compared with each other is measured in turns, and keeps
the GPU busy for as long.
"""

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = ROOT / "bench" / "shapes"
REPLAYS = 50
ROUNDS = 3
MOST_CALLS = 4096  # Of a graph.


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tools", default="build/bin",
                        help="folder of hidet-run")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("names", nargs="*", help="kernels; default: all")
    return parser.parse_args()


def run(tools, path, arguments):
    """Milliseconds of one run of a module, and hidet-run's report; (None, what
    it said) where it failed. Quietly: to describe an output of 64 million
    elements takes longer than everything else of a run."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [str(pathlib.Path(tools) / "hidet-run"), str(path),
                   "-q", "--device=cuda", "--bench=%d" % REPLAYS,
                   "--json=%s" % report] + arguments
        result = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        if result.returncode != 0:
            return None, result.stdout
        data = json.loads(report.read_text())
        return data["median_ms"], data


def ours(tools, name, shapes, entry=None, specialize=True):
    """run() of examples/<name>.hir with random inputs of these shapes.
    specialize: make the kernel for its sizes, as hidet-run does by itself."""
    options = ["--specialize=%d" % specialize]
    if entry:
        options.append("--entry=" + entry)
    for tensor, shape in shapes.items():
        options.append("--shape=%s=%s" % (tensor, "x".join(map(str, shape))))
        options.append("--input=%s=random" % tensor)
    return run(tools, ROOT / "examples" / (name + ".hir"), options)


class Compiled:
    """A graph of ours in PyTorch's process: called with its inputs and results,
    tensors on the GPU, it is enqueued on the current stream, or becomes part of
    what is captured there. Its first launch is a plain one.

    arrays: type and shape of each input and result, the first `inputs` of them
    and one result by default; database: of measurements, None to go by what is
    expected; weights: of constants by name, type and array of NumPy. RuntimeError
    (hidet.HidetError) where it is not compiled."""

    def __init__(self, tools, text, arrays, results=1, precision="model", database=None,
                 device="cuda", weights=None):
        runtime = library(tools)
        module = runtime.Module.parse(text)
        model = runtime.Frozen(module)
        model.set_precision(precision)
        if database:
            model.set_measured(database)
        for constant, (kind, array) in (weights or {}).items():
            model.set_weight(constant, runtime.Buffer(
                kind, array.shape, array.ctypes.data, array))
        self.session = runtime.Session(model, opened(tools, device))
        made = [runtime.as_array(runtime.Buffer(kind, tuple(shape), 0))
                for kind, shape in arrays]
        inputs = len(made) - results
        self.given = (type(made[0]) * inputs)(*made[:inputs])
        self.made = (type(made[0]) * results)(*made[inputs:])
        self.session.prepare(self.given, (type(made[0]) * results)())
        self.places = [*self.given, *self.made]
        self.enqueue = self.session.enqueuer(self.given, self.made)

    def __call__(self, *tensors):
        import torch
        for place, tensor in zip(self.places, tensors, strict=True):
            place.data = tensor.data_ptr()
        with self.session.lock:
            self.enqueue(torch.cuda.current_stream().cuda_stream)


def library(tools):
    """hidet.runtime, over the library beside the tools."""
    lib = pathlib.Path(tools).resolve().parent / "lib"
    os.environ.setdefault("HIDET_LIBRARY", str(lib / "libhidet.so"))
    for folder in (ROOT / "python", lib / "python"):
        if folder.is_dir() and str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    import hidet.runtime
    return hidet.runtime


def tune(tools, most, database, folder, text, arguments, device="cuda"):
    """The report of hidet-run --tune=most of a graph; what was measured is in the
    database. Files that constants name lie in the folder."""
    path, report = folder / "all.hir", folder / "tune.json"
    path.write_text(text)
    done = subprocess.run(
        [str(pathlib.Path(tools) / "hidet-run"), str(path), "-q", "--device=" + device,
         "--tune=%d" % most, "--tune-db=" + database, "--json=%s" % report, *arguments],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout[-4000:], end="", flush=True)
    if done.returncode:
        raise SystemExit("--tune: exit %d" % done.returncode)
    return json.loads(report.read_text()).get("tune", [])


@functools.cache
def opened(tools, device):
    runtime = library(tools)
    return runtime.Device(runtime.Context(), device)


def copies_of(make):
    """So many of operands as pass twice the L2 cache; make() gives one."""
    import torch
    first = make()
    size = sum(x.numel() * x.element_size() for x in first)
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    return [first] + [make() for _ in range(-(-2 * l2 // size) - 1)]


def peer(make, run):
    """Milliseconds of run(*operands); make() gives one copy of the operands."""
    return replayed([lambda operands=operands: run(*operands)
                     for operands in copies_of(make)])


def replayed(calls, replays=REPLAYS, skipped=5):
    """Milliseconds of a call: the median of so many replays of a CUDA graph of
    all calls, as often as take a millisecond, after some that are not looked at."""
    import torch
    stream = torch.cuda.Stream()
    begin, done = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        for call in (calls * 3)[:3]:
            call()
        stream.synchronize()
        begin.record()
        for call in calls:
            call()
        done.record()
    stream.synchronize()
    ms = max(begin.elapsed_time(done), 1e-3)
    while ms < 1 and len(calls) * 2 <= MOST_CALLS:
        calls, ms = calls * 2, ms * 2
    graph = torch.cuda.CUDAGraph()
    # Other threads may load what they have compiled meanwhile.
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        for call in calls:
            call()
    times = []
    for replay in range(skipped + replays):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if replay >= skipped:
            times.append(start.elapsed_time(end) / len(calls))
    return statistics.median(times)


def in_turns(measures, rounds=ROUNDS):
    """Medians of what each measure says, by its name, asked so many times in
    turns, each round begun by the next one, for what came before settles the
    clock: a function that returns milliseconds and a report, the milliseconds
    None where it failed. Then: (None, that report)."""
    times = {name: [] for name in measures}
    order = list(measures)
    for turn in range(rounds):
        first = turn % len(order)
        for name in order[first:] + order[:first]:
            ms, report = measures[name]()
            if ms is None:
                return None, report
            times[name].append(ms)
    return {name: statistics.median(t) for name, t in times.items()}, None


@functools.cache
def machine():
    import torch
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        text=True, capture_output=True).stdout.strip()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True,
                            capture_output=True).stdout.strip()
    return {"device": driver, "cuda": torch.version.cuda,
            "torch": torch.__version__, "commit": commit}


def write(path, cases, **more):
    if path:
        with open(path, "w") as file:
            json.dump({**machine(), **more, "cases": cases}, file, indent=1)
