# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in f16 called from Python: by torch.compile(backend="hidet"), and by
Inductor in its default mode and with reduce-overhead. A call is one of 100 back
to back with one synchronization; the first answer is from torch.compile to a
result, a second time with our cache filled ($HIDET_CACHE_DIR: another process
finds it, too), and of both what passed since Dynamo had the first graph.

usage: torch_calls.py [--json=FILE] [--ways=WAY,...] [--together] [--ours=FILE]
           NAME...
  NAME: a model of scripts/export_models.py
  --ways: of hidet, default, reduce-overhead; all unless said
  --together: a process for each model and way, which compile side by side, wait
      for each other, and are then timed one by one: all of a list takes as long
      as its slowest; of first answers nothing is said
  --ours: what bench/models.py wrote of the same models on this machine, for
      the time of one inference on the GPU

One line a model. HIDET_LIBRARY names the library where it is not installed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "python")]
import export_models  # noqa: E402
import hidet.torch  # noqa: E402,F401  The backend.
import hidet.utils  # noqa: E402

CALLS, ROUNDS = 100, 5
# What torch.compile is told.
WAYS = {
    "hidet": {"backend": "hidet"},
    "default": {},
    "reduce-overhead": {"mode": "reduce-overhead"},
}


def call_us(run, x):
    return 1e3 * hidet.utils.benchmark_func(
        lambda: run(x), warmup=10, number=CALLS, repeat=ROUNDS)


def first_answer(network, x, how):
    """What is compiled, and seconds until its first answer."""
    import torch
    torch._dynamo.reset()
    torch.cuda.synchronize()
    start = time.perf_counter()
    run = torch.compile(network, **how)
    run(x)
    torch.cuda.synchronize()
    return run, time.perf_counter() - start


def first_of_hidet(network, x):
    """And those since Dynamo had the first graph."""
    begun = []

    def backend(module, inputs, **options):
        begun.append(time.perf_counter())
        return hidet.torch.hidet_backend(module, inputs, **options)

    run, all_s = first_answer(network, x, {"backend": backend})
    return run, all_s, time.perf_counter() - begun[0]


def drawn(name):
    """A network in f16 and its input, on the GPU where there is one."""
    import torch
    torch.manual_seed(0)
    model = export_models.find_model(name)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = export_models.settle(model.make(), model).to(device).half()
    x = export_models.draw_input(model, 1).to(device)
    return network, x.half() if x.is_floating_point() else x


def from_eager(run, network, x):
    """The largest error over the largest value."""
    expected = network(x)
    return float((run(x) - expected).abs().max() / expected.abs().max())


def wait_and_time(name, way):
    """Compiles, says so, and is timed when it is told to."""
    import torch
    network, x = drawn(name)
    with torch.no_grad():
        run = torch.compile(network, **WAYS[way])
        found = {way + "_from_eager": from_eager(run, network, x)}
        call_us(run, x)
        print("ready", flush=True)
        sys.stdin.readline()
        found[way + "_us"] = call_us(run, x)
    print(json.dumps(found), flush=True)


def measured_together(names, ways):
    """Of each model in turn what measured() gives, without first answers."""
    # Threads of more than there are cores wait for each other in circles.
    threads = max(os.cpu_count() // (len(names) * len(ways)), 1)
    started = [(name, way, subprocess.Popen(
        [sys.executable, __file__, "--wait=" + way, name], text=True,
        env={"OMP_NUM_THREADS": str(threads), **os.environ},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for name in names for way in ways]
    ready = [process.stdout.readline() == "ready\n" for *_, process in started]
    found = {name: {"model": name} for name in names}
    for (name, way, process), is_ready in zip(started, ready):
        answer, _ = process.communicate("now\n")
        if not is_ready or process.returncode:
            print("%s by %s fails" % (name, way), flush=True)
        else:
            found[name].update(json.loads(answer))
    return found.values()


def measured(name, ways):
    import torch
    network, x = drawn(name)
    found = {"model": name}
    with torch.no_grad():
        for way, how in ways.items():
            if way != "hidet":
                run, found[way + "_first_s"] = first_answer(network, x, how)
            else:
                for turn in ("first", "again"):
                    run, all_s, own_s = first_of_hidet(network, x)
                    found["hidet_%s_s" % turn] = all_s
                    found["hidet_%s_own_s" % turn] = own_s
                found["hidet_from_eager"] = from_eager(run, network, x)
            found[way + "_us"] = call_us(run, x)
    return found


def say(case):
    text = "%-14s" % case["model"] + "".join(
        "  %s %.0f us" % (key[:-3], value) for key, value in case.items()
        if key.endswith("_us"))
    if "hidet_first_s" in case:
        text += "  first %.2f (%.2f) s, again %.2f (%.2f) s" % (
            case["hidet_first_s"], case["hidet_first_own_s"],
            case["hidet_again_s"], case["hidet_again_own_s"])
    if "hidet_from_eager" in case:
        text += "  from eager %.1e" % case["hidet_from_eager"]
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--ways", default=",".join(WAYS),
                        type=lambda text: {w: WAYS[w] for w in text.split(",")})
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--ours", type=pathlib.Path)
    parser.add_argument("--wait", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="+", metavar="NAME")
    options = parser.parse_args()
    if options.wait:
        return wait_and_time(*options.names, options.wait)
    alone = {case["model"]: 1e3 * case["ms"] for case in
             json.loads(options.ours.read_text())["cases"]} if options.ours else {}
    ways = options.ways
    cases = []
    each = measured_together(options.names, ways) if options.together else (
        measured(name, ways) for name in options.names)
    for case in each:
        if case["model"] in alone:
            case["alone_us"] = alone[case["model"]]
        cases.append(case)
        say(case)
        measure.write(options.json, cases)
    return any(way + "_us" not in case for case in cases for way in ways)


if __name__ == "__main__":
    sys.exit(main())
