# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of examples/python, seed by seed: the kernel in Python, and the
network of torchvision through torch.compile, both as they are written there.

usage: torch_programs.py [--device=cuda|cpu] [--first=0] [--seeds=20]
           [--counted=10] [--most=100] [--makers=8]
  --first: the first seed; several processes share the seeds by it
  --makers: processes that draw weights ahead

A network of random weights may differ from itself by more than the program
allows, with its channels last. Such a seed is not counted; more are drawn until
so many are, --most at the most. Exit 1: a counted one fails, or too few are; 77:
PyTorch or torchvision is not there, or no GPU.
"""

import argparse
import pathlib
import sys
import time

try:
    import torch
    from torch import multiprocessing
except ImportError as error:
    print("needs PyTorch: %s" % error)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "examples" / "python")]

import export_models  # noqa: E402
import naive_matmul  # noqa: E402

import hidet  # noqa: E402

TOLERANCE = {"rtol": 1e-2, "atol": 1e-2}  # The program's.


def network(device):
    import torchvision

    return getattr(
        torchvision.models, "resnet50" if device == "cuda" else "resnet18"
    )


def make_weights(given):
    """Of the network as the program draws it, which takes the CPU's time."""
    device, seed = given
    torch.set_num_threads(1)
    export_models.torchvision_models()
    torch.manual_seed(seed)
    half = device == "cuda"
    flat = torch.cat([v.flatten() for v in drawn_of(network(device)())])
    return flat.half() if half else flat


def drawn_of(model):
    """What is drawn, or begins as it is: all that is no count."""
    return [v for v in model.state_dict().values() if v.is_floating_point()]


def put_weights(model, flat):
    own = drawn_of(model)
    for value, part in zip(own, flat.split([v.numel() for v in own])):
        value.copy_(part.view(value.shape))


def draw_input(device, seed):
    torch.manual_seed(seed)
    if device == "cuda":
        return torch.randn(1, 3, 224, 224, device="cuda").half()
    return torch.randn(1, 3, 64, 64)


def is_close(made, expected):
    try:
        torch.testing.assert_close(made, expected, **TOLERANCE)
    except AssertionError:
        return False
    return True


def check(model, x):
    """None: not counted; else whether it passes."""
    expected = model(x)
    own = model.to(memory_format=torch.channels_last)(
        x.to(memory_format=torch.channels_last)
    )
    model.to(memory_format=torch.contiguous_format)
    if not is_close(own, expected):
        return None
    torch._dynamo.reset()
    return is_close(torch.compile(model, backend="hidet")(x), expected)


def check_networks(options, weights):
    """How many were drawn, counted, and passed."""
    device, found = options.device, []
    model = network(device)().to(device).eval()
    model = model.half() if device == "cuda" else model
    hidet.torch.dynamo_config.use_tensor_core(True)
    hidet.torch.dynamo_config.search_space(2)
    said = {None: "is not counted", True: "passes", False: "fails"}
    for seed, drawn in enumerate(weights, options.first):
        start = time.perf_counter()
        put_weights(model, drawn)
        found.append(check(model, draw_input(device, seed)))
        took = time.perf_counter() - start
        print("seed %d %s, %.1f s" % (seed, said[found[-1]], took), flush=True)
        counted = [passed for passed in found if passed is not None]
        if len(found) >= options.seeds and len(counted) >= options.counted:
            break
    return len(found), len(counted), sum(counted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--counted", type=int, default=10)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--makers", type=int, default=8)
    options = parser.parse_args()
    try:
        export_models.torchvision_models()
    except ImportError as error:
        print("needs torchvision: %s" % error)
        return 77
    makers = multiprocessing.get_context("spawn").Pool(options.makers)
    seeds = range(options.first, options.first + options.most)
    given = [(options.device, seed) for seed in seeds]
    with makers, torch.no_grad():
        weights = makers.imap(make_weights, given)
        start = time.perf_counter()
        for seed in seeds[: options.seeds]:
            torch.manual_seed(seed)
            naive_matmul.main(options.device)
        print("naive_matmul: %d of %d pass" % (options.seeds, options.seeds))
        drawn, counted, passed = check_networks(options, weights)
    print(
        "resnet: %d of %d counted pass, of %d seeds; %.1f s"
        % (passed, counted, drawn, time.perf_counter() - start)
    )
    return passed != counted or counted < options.counted


if __name__ == "__main__":
    sys.exit(main())
