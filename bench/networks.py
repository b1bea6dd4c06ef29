# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models beside what Inductor makes of them, many at once: a process for
each exports its network, compiles it by us and by torch.compile, and waits; then
they are timed one after the other, which begins when all are ready or there is
time left for no more than that.

usage: networks.py prepare --tools=FOLDER [--jobs=N] FOLDER MODEL...
       networks.py time [--seconds=N] [--json=FILE] [--profiles=FOLDER] FOLDER MODEL...
  MODEL: a name of scripts/export_models.py or of a list of bench/shapes/models.json,
      with :bN for a batch of N, with :alone for no peer, with :tf32 for tf32 too
  prepare: ends when all are ready, or failed; each still waits to be timed
  time: for those that are ready, or get ready in time; ends the others

Of each: milliseconds on the GPU of one inference in a CUDA graph, ours and (in our
own graph, as reduce-overhead does) Inductor's, in turns; launches; the largest error
in f16 over the largest value against PyTorch in f32, ours and PyTorch's own. Where
a network cannot be exported to ONNX, ours is torch.compile(backend="hidet").
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import traceback

import measure
import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "python")]
import export_models  # noqa: E402

TURNS = 2
SLOW = 6  # Seconds that a model is timed for, about.
WAIT = 900  # Seconds that a process waits to be timed.


def split(model):
    name, *more = model.split(":")
    batch = next((int(each[1:]) for each in more if each[0] == "b"), 1)
    return name, batch, more


def stem(folder, model):
    name, batch, _ = split(model)
    return folder / ("%s.b%d" % (name.replace("/", "-"), batch))


def called(call, calls=50):
    """Milliseconds of a call, by events around each."""
    import torch
    times = []
    for turn in range(calls + 10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times[10:])[calls // 2]


class Network:
    """What a process has of a model."""

    def __init__(self, options, model):
        self.options, self.model = options, model
        self.name, self.batch, self.more = split(model)
        self.at = stem(options.folder, model)
        self.device = options.device
        self.found = {"model": self.name, "batch": self.batch}

    def say(self, what):
        print("%s %s" % (time.strftime("%H:%M:%S"), what), flush=True)

    def make(self):
        """The network, an input, and what PyTorch says in f32 and in f16."""
        import torch
        device = "cuda" if self.device == "cuda" else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.manual_seed(0)
        row = export_models.find_model(self.name)
        network = export_models.settle(row.make(), row)
        x = export_models.draw_input(row, self.batch, self.options.tokens)
        numpy.save(self.at.with_name(self.at.name + ".in0.npy"), x.numpy())
        network.to(device)
        with torch.no_grad():
            self.expected = network(x.to(device)).float().cpu().numpy()
        network.to("cpu")
        return row, network, x

    def export(self, row, network, x):
        import torch
        if row.traced:
            row.traced(network)
        path = self.at.with_name(self.at.name + ".onnx")
        try:
            torch.onnx.export(network, (x,), str(path), dynamo=True, opset_version=18,
                              external_data=True, verbose=False)
        except Exception:  # Of any kind: another way is tried.
            traceback.print_exc()
            self.found["export"] = traceback.format_exc().strip()[-300:]
            return None
        return path

    def run(self, precision, *more):
        report, output = (self.at.with_name("%s.%s.%s" % (self.at.name, precision, end))
                          for end in ("json", "npy"))
        command = [str(pathlib.Path(self.options.tools) / "hidet-run"), str(self.path),
                   "--device=" + self.device, "--precision=" + precision,
                   "--input=@%s" % self.at.with_name(self.at.name + ".in0.npy"),
                   "--cache-dir=%s" % (self.options.folder / "cache"),
                   "--json=%s" % report, *more]
        if "--profile" not in more:
            command += ["-q", "--output=@%s" % output]
        done = subprocess.run(command, text=True, capture_output=True, timeout=300)
        if done.returncode:
            raise RuntimeError("exit %d: %s" % (done.returncode, done.stderr[-500:]))
        return json.loads(report.read_text()), output, done.stdout

    def error(self, y):
        y = numpy.asarray(y, dtype=numpy.float64).reshape(self.expected.shape)
        if not numpy.isfinite(y).all():
            return float("inf")
        return float(numpy.abs(y - self.expected).max() / numpy.abs(self.expected).max())

    def precisions(self):
        return ["f16"] + (["tf32"] if "tf32" in self.more else [])

    def prepare(self):
        import torch
        row, network, x = self.make()
        self.say("made")
        self.path = self.export(row, network, x)
        self.say("exported" if self.path else "not exported")
        if row.traced:  # Networks are changed to be exported.
            row, network, x = self.make()
        self.calls = {}
        if self.path:
            for precision in self.precisions():
                report, output, _ = self.run(precision)
                error = self.error(numpy.load(output))
                self.found["error" if precision == "f16" else "tf32_error"] = error
                self.found.setdefault("compile_ms", report.get("compile_ms"))
            self.say("compiled, error %.3g" % self.found["error"])
        if self.device != "cuda":
            return
        network.cuda().half()
        x = x.cuda()
        x = x.half() if x.is_floating_point() else x
        self.x = x
        with torch.no_grad():
            self.found["torch_error"] = self.error(network(x).float().cpu().numpy())
            if "alone" not in self.more:
                if row.peers:
                    row.peers[0][1](network)
                call = torch.compile(network)
                call(x)
                self.calls["inductor_ms"] = lambda: call(x)
                self.say("Inductor's")
            if not self.path:
                import hidet.torch  # noqa: F401  The backend.
                torch._dynamo.reset()
                ours = torch.compile(network, backend="hidet")
                self.found["error"] = self.error(ours(x).float().cpu().numpy())
                self.calls["ms"] = lambda: ours(x)
                self.say("ours by torch")

    def graph_ms(self, call):
        """In a graph; else, said in the result, by calls one after the other."""
        import torch
        try:
            with torch.no_grad():
                return measure.replayed([call], skipped=10)
        except RuntimeError as error:
            self.found["no_graph"] = str(error).split("\n")[0][:200]
        with torch.no_grad():
            return called(call)

    def time(self):
        times = {}
        for turn in range(TURNS):
            for name, call in self.calls.items():
                if name not in times or "no_graph" not in self.found:
                    times.setdefault(name, []).append(self.graph_ms(call))
            if self.path:
                for precision in self.precisions()[:1 if turn else None]:
                    report, _, _ = self.run(
                        precision, "--bench=%d" % (50 if self.device == "cuda" else 1))
                    key = "ms" if precision == "f16" else "tf32_ms"
                    times.setdefault(key, []).append(report["median_ms"])
                    self.found.setdefault("launches", report["launches"])
        self.found.update({name: statistics.median(each) for name, each in times.items()})
        if "inductor_ms" in self.found:
            self.found["speed"] = self.found["inductor_ms"] / self.found["ms"]
        if self.path and self.device == "cuda" and "alone" not in self.more:
            report, _, table = self.run("f16", "--profile")
            self.at.with_name(self.at.name + ".profile.txt").write_text(table)
        return self.found


def work(options, model):
    """A process: gets ready, waits, is timed."""
    network = Network(options, model)
    answer, ready = (network.at.with_name(network.at.name + end)
                     for end in (".found", ".ready"))
    try:
        network.prepare()
        ready.write_text("")
        until = time.monotonic() + WAIT
        while not network.at.with_name(network.at.name + ".go").exists():
            if time.monotonic() > until:
                raise RuntimeError("nobody asked")
            time.sleep(0.05)
        found = network.time()
    except BaseException as error:
        traceback.print_exc()
        found = {**network.found, "failed": ("%s: %s" % (type(error).__name__, error))[-400:]}
    part = answer.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(answer)
    ready.write_text("")


def listed(names):
    lists = json.loads((measure.SHAPES / "models.json").read_text())
    return sum((lists.get(name, [name]) for name in names), [])


def prepare(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    waiting, started = listed(options.models), []
    threads = str(max((os.cpu_count() or 1) // options.jobs, 1))
    env = {**os.environ, "OMP_NUM_THREADS": threads,
           "TORCHINDUCTOR_COMPILE_THREADS": threads}
    while waiting or started:
        started = [(at, process) for at, process in started if process.poll() is None
                   and not at.with_name(at.name + ".ready").exists()]
        if waiting and len(started) < options.jobs:
            model = waiting.pop(0)
            at = stem(options.folder, model)
            with open(at.with_name(at.name + ".log"), "w") as log:
                process = subprocess.Popen(
                    [sys.executable, __file__, "work", "--tools=" + options.tools,
                     "--device=" + options.device, "--tokens=%d" % options.tokens,
                     str(options.folder), model], env=env, stdout=log,
                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    start_new_session=True)
            at.with_name(at.name + ".pid").write_text(str(process.pid))
            started.append((at, process))
        time.sleep(0.1)


def end(folder, models):
    """Ends what gets these ready, and what that started."""
    for model in models:
        at = stem(folder, model)
        try:
            os.killpg(int(at.with_name(at.name + ".pid").read_text()), signal.SIGTERM)
        except (FileNotFoundError, ProcessLookupError):
            pass


def line_of(case):
    text = "%-32s b%-3d" % (case["model"], case["batch"])
    if "failed" in case:
        return text + " FAILED: " + case["failed"].replace("\n", " ")
    text += " %7.3f ms" % case["ms"] if "ms" in case else ""
    if "launches" in case:
        text += " in %d launches" % case["launches"]
    if "inductor_ms" in case:
        text += ", Inductor %.3f: %.2f" % (case["inductor_ms"], case["speed"])
    if "tf32_ms" in case:
        text += ", tf32 %.3f" % case["tf32_ms"]
    if "error" in case:
        text += "; error %.2e" % case["error"]
    if "torch_error" in case:
        text += ", PyTorch's %.2e" % case["torch_error"]
    if "tf32_error" in case:
        text += ", of tf32 %.2e" % case["tf32_error"]
    return text + "".join("; %s: %s" % (key, case[key]) for key in ("no_graph", "export")
                          if key in case)


def time_all(options):
    until = time.monotonic() + options.seconds
    cases, waiting = [], listed(options.models)
    while waiting and time.monotonic() < until:
        ready = [model for model in waiting if stem(options.folder, model).with_name(
            stem(options.folder, model).name + ".ready").exists()]
        if not ready or (len(ready) < len(waiting) and  # Others would disturb them.
                         until - time.monotonic() > SLOW * len(waiting)):
            time.sleep(0.1)
            continue
        waiting.remove(ready[0])
        at = stem(options.folder, ready[0])
        at.with_name(at.name + ".go").write_text("")
        answer = at.with_name(at.name + ".found")
        while not answer.exists() and time.monotonic() < until:
            time.sleep(0.02)
        if not answer.exists():
            print("%s: no answer in time" % ready[0], flush=True)
            waiting.append(ready[0])
            break
        case = json.loads(answer.read_text())
        cases.append(case)
        print(line_of(case), flush=True)
        table = at.with_name(at.name + ".profile.txt")
        if options.profiles and table.exists():
            options.profiles.mkdir(parents=True, exist_ok=True)
            (options.profiles / table.name).write_text(table.read_text())
        measure.write(options.json, cases)
    if waiting:
        print("no time for " + " ".join(waiting), flush=True)
    end(options.folder, waiting)
    speeds = [case["speed"] for case in cases if "speed" in case]
    if speeds:
        print("over Inductor's, %d: geometric mean %.3f, worst %.3f" % (
            len(speeds), float(numpy.exp(numpy.log(speeds).mean())), min(speeds)), flush=True)
    return int(bool(waiting) or any("failed" in case for case in cases))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["prepare", "work", "time"])
    parser.add_argument("--tools")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", type=int, default=export_models.LENGTH)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--json")
    parser.add_argument("--profiles", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    if options.what == "work":
        return work(options, options.models[0])
    if options.what == "prepare":
        return prepare(options)
    return time_all(options)


if __name__ == "__main__":
    sys.exit(main())
