# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in f16 called from Python: by torch.compile(backend="hidet"), and by
Inductor in its default mode and with reduce-overhead. A call is one of 100 back
to back with one synchronization; the first answer is from torch.compile to a
result, a second time with our cache filled ($HIDET_CACHE_DIR: another process
finds it, too), and of both what passed since Dynamo had the first graph.

usage: torch_calls.py [--json=FILE] [--no-inductor] [--ours=FILE] NAME...
  NAME: a model of scripts/export_models.py
  --ours: what bench/models.py wrote of the same models on this machine, for
      the time of one inference on the GPU

One line a model. HIDET_LIBRARY names the library where it is not installed.
"""
import argparse
import json
import pathlib
import sys
import time

import measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "python")]
import export_models  # noqa: E402
import hidet.torch  # noqa: E402,F401  The backend.
import hidet.utils  # noqa: E402

CALLS, ROUNDS = 100, 5
HIDET = {"hidet": {}}
INDUCTOR = {"default": {}, "reduce-overhead": {"mode": "reduce-overhead"}}


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


def measured(name, ways):
    import torch
    torch.manual_seed(0)
    model = export_models.find_model(name)
    network = export_models.settle(model.make(), model).cuda().half()
    x = export_models.draw_input(model, 1).cuda()
    x = x.half() if x.is_floating_point() else x
    found = {"model": name}
    with torch.no_grad():
        expected = network(x)
        for way, how in ways.items():
            if way != "hidet":
                run, found[way + "_first_s"] = first_answer(network, x, how)
            else:
                for turn in ("first", "again"):
                    run, all_s, own_s = first_of_hidet(network, x)
                    found["hidet_%s_s" % turn] = all_s
                    found["hidet_%s_own_s" % turn] = own_s
                error = (run(x) - expected).abs().max() / expected.abs().max()
                found["hidet_from_eager"] = float(error)
            found[way + "_us"] = call_us(run, x)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--ours", type=pathlib.Path)
    parser.add_argument("names", nargs="+", metavar="NAME")
    options = parser.parse_args()
    alone = {case["model"]: 1e3 * case["ms"] for case in
             json.loads(options.ours.read_text())["cases"]} if options.ours else {}
    ways = HIDET if options.no_inductor else {**HIDET, **INDUCTOR}
    cases = []
    for name in options.names:
        case = measured(name, ways)
        if name in alone:
            case["alone_us"] = alone[name]
        cases.append(case)
        print("%-14s" % name + "".join(
            "  %s %.0f us" % (key[:-3], value) for key, value in case.items()
            if key.endswith("_us")) + "  first %.2f (%.2f) s, again %.2f (%.2f) s  "
            "from eager %.1e" % (
                case["hidet_first_s"], case["hidet_first_own_s"],
                case["hidet_again_s"], case["hidet_again_own_s"],
                case["hidet_from_eager"]), flush=True)
        measure.write(options.json, cases)


if __name__ == "__main__":
    main()
