# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What users do to a compiled model, held against PyTorch at each call: weights
that change in every way, streams and threads beside each other, inputs that lie
as they like or share memory, models that are dropped. On a GPU where there is
one, else on the simulator.

usage: torch_hostile.py [--filter=REGEX]

A line for each. Exit 1: an answer is wrong, or something is kept; 77: there is no
PyTorch.
"""

import argparse
import copy
import gc
import re
import sys
import threading
import weakref

try:
    import torch
    from torch import nn
except ImportError as error:
    print("needs PyTorch: %s" % error)
    sys.exit(77)

import hidet.torch  # noqa: E402,F401  The backend.

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
WIDTH = 256 if CUDA else 32
CALLS = 50 if CUDA else 4
TOLERANCE = 2e-2


def network(dtype=torch.half):
    return nn.Sequential(
        nn.Linear(WIDTH, 2 * WIDTH),
        nn.GELU(),
        nn.LayerNorm(2 * WIDTH),
        nn.Linear(2 * WIDTH, WIDTH),
    ).to(DEVICE, dtype).eval()


def images(dtype=torch.half):
    return nn.Sequential(
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 16, 1),
    ).to(DEVICE, dtype).eval()


def compiled(model):
    return torch.compile(model, backend="hidet")


def draw(*shape, dtype=torch.half):
    return torch.randn(shape, device=DEVICE).to(dtype)


def same(made, own):
    torch.testing.assert_close(made, own, rtol=TOLERANCE, atol=TOLERANCE)


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


def weights():
    """Each change between calls; models beside keep their own."""
    model, beside = network(), network()
    run, run_beside = compiled(model), compiled(beside)
    x = draw(8, WIDTH)
    other = copy.deepcopy(model)
    for p in other.parameters():
        p.mul_(-0.5)

    def data():
        model[0].weight.data = draw(2 * WIDTH, WIDTH) * 0.1

    def assign():
        kept = {k: v.clone() * 2 for k, v in other.state_dict().items()}
        model.load_state_dict(kept, assign=True)

    def parameter():
        model[3].bias = nn.Parameter(draw(WIDTH))

    def grow():
        model[0], model[2], model[3] = (
            m.to(DEVICE).half() for m in (
                nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH),
                nn.Linear(WIDTH, WIDTH)))

    def step():
        with torch.enable_grad():
            model(x).float().square().mean().backward()
        torch.optim.SGD(model.parameters(), lr=0.01).step()

    for change in (
        lambda: None,
        lambda: model[0].weight.mul_(-2),
        lambda: model[0].bias[3:7].zero_(),
        data,
        step,
        lambda: model.load_state_dict(other.state_dict()),
        assign,
        parameter,
        lambda: model.float() and model.half(),
        lambda: model.cpu() and model.to(DEVICE),
        grow,
    ):
        change()
        for _ in range(2):
            same(run(x), model(x))
            same(run_beside(x), beside(x))


def types_and_devices():
    """A model that is moved, or of another type, between calls."""
    for make, shape in (network, (4, WIDTH)), (images, (1, 16, 8, 8)):
        model = make(torch.float32)
        run = compiled(model)
        for device, dtype in (
            (DEVICE, torch.float32), (DEVICE, torch.half), ("cpu", torch.float32),
            (DEVICE, torch.bfloat16), (DEVICE, torch.half),
        ):
            model.to(device, dtype)
            x = torch.randn(shape).to(device, dtype)
            made = run(x)
            assert made.device.type == device and made.dtype == dtype
            exact = copy.deepcopy(model).double()(x.double())
            off = (made.double() - exact).abs().max() / exact.abs().max()
            assert off < 4e-2, (device, dtype, float(off))


def wrong_devices():
    """PyTorch's error, or its answer; the next call is right."""
    if not CUDA:
        return
    model, x = network(), draw(4, WIDTH)
    run = compiled(model)
    same(run(x), model(x))
    try:
        run(x.cpu())
        raise AssertionError("no error of a tensor of the CPU")
    except (RuntimeError, torch._dynamo.exc.TorchDynamoException):
        pass
    same(run(x), model(x))
    scale = torch.tensor(3.0)  # A scalar of the CPU goes with any device.
    twice = torch.compile(lambda x, y: x * y + 1, backend="hidet")
    same(twice(x, scale), x * scale + 1)


def layouts():
    for make, shape in (network, (8, WIDTH)), (images, (2, 16, 12, 12)):
        model = make()
        run = compiled(model)
        x = draw(*shape)
        wide = draw(*(2 * n for n in shape))
        odd = draw(x.numel() + 1)[1:].view(shape)
        forms = [
            x,
            odd,
            x.transpose(-1, -2).contiguous().transpose(-1, -2),
            wide[tuple(slice(0, 2 * n, 2) for n in shape)],
            wide[tuple(slice(n // 2, n // 2 + n) for n in shape)],
            x[:1].expand(shape),
        ]
        if x.dim() == 4:
            forms.append(x.contiguous(memory_format=torch.channels_last))
        for form in forms + forms[::-1]:
            same(run(form), model(form))


def aliases():
    """Results are tensors of their own, and inputs may be results."""
    model = network()
    run = compiled(model)
    x = draw(4, WIDTH)
    first = run(x)
    kept = first.clone()
    second = run(first)
    third = run(x)
    same(second, model(kept))
    third.zero_()
    torch.testing.assert_close(first, kept)
    y = own = x
    for _ in range(5):
        y, own = run(y), model(own)
    same(y, own)

    def views(x, y):
        return x, x[1:], x * 2, y.t(), (x + y).view(-1)

    twin = torch.compile(views, backend="hidet")
    for made, expected in zip(twin(x, x), views(x, x)):
        same(made, expected)
    assert twin(x, x)[0].data_ptr() == x.data_ptr()

    def change(x, y):
        x.mul_(2)
        y.add_(1)
        return x + y

    for start in 0, 1, 4:
        torch._dynamo.reset()
        both = torch.compile(change, backend="hidet")
        base = draw(12)
        copied = base.clone()
        for _ in range(2):
            made = both(base[:4], base[start:start + 4])
            own = change(copied[:4], copied[start:start + 4])
            same(made, own)
            same(base, copied)


def freed():
    """Inputs whose memory is another tensor's right after the call."""
    model = network()
    run = compiled(model)
    seeds = [draw(64, WIDTH) for _ in range(4)]
    own = [model(x * 2) for x in seeds]
    made = []
    for i in range(CALLS):
        x = seeds[i % 4] * 2
        made.append(run(x))
        del x
        torch.full((64, WIDTH), float("nan"), device=DEVICE).half()
    for i, y in enumerate(made):
        same(y, own[i % 4])


def streams():
    """One model on several streams at once, without waiting."""
    if not CUDA:
        return
    for make, shape in (network, (512, WIDTH)), (images, (4, 16, 64, 64)):
        model = make()
        run = compiled(model)
        xs = [draw(*shape) for _ in range(4)]
        own = [model(x) for x in xs]
        run(xs[0])
        beside = [torch.cuda.Stream() for _ in xs]
        torch.cuda.synchronize()
        made = []
        for i in range(CALLS):
            with torch.cuda.stream(beside[i % 4]):
                made.append(run(xs[i % 4]))
        torch.cuda.synchronize()
        for i, y in enumerate(made):
            same(y, own[i % 4])


def threads():
    """Each with a stream and inputs of its own, through one model; and models
    of their own, whose weights change."""
    shared = network()
    run_shared = compiled(shared)
    x = draw(16, WIDTH)
    run_shared(x)
    synchronize()
    faults = []
    models = [network() for _ in range(4)]
    inputs = [draw(16 + i, WIDTH) for i in range(4)]
    own = [shared(x) for x in inputs]
    synchronize()

    def work(k):
        # PyTorch's mark that somebody traces is a process's: while one thread
        # compiles, another's call is an error unless it may run uncompiled.
        torch._dynamo.config.error_on_nested_fx_trace = False
        try:
            stream = torch.cuda.Stream() if CUDA else None
            with torch.no_grad(), torch.cuda.stream(stream):
                run = compiled(models[k])
                for i in range(CALLS // 2):
                    made = run_shared(inputs[k])
                    models[k][0].bias.add_(0.1 * (i % 3))
                    pair = run(inputs[k]), models[k](inputs[k])
                    if stream:
                        stream.synchronize()
                    same(made, own[k])
                    same(*pair)
        except Exception as fault:
            faults.append(fault)

    each = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    if faults:
        raise faults[0]


def modes():
    """Of PyTorch: inference mode, gradients, autocast, in any order."""
    model = network()
    run = compiled(model)
    x = draw(4, WIDTH)
    for _ in range(2):
        with torch.inference_mode():
            same(run(x), model(x))
            same(run(x.clone()), model(x))
        with torch.enable_grad():
            y = run(x)
            y.float().sum().backward()
            made = model[0].weight.grad.clone()
            model.zero_grad()
            model(x).float().sum().backward()
            same(made, model[0].weight.grad)
            model.zero_grad()
        same(run(x), model(x))
    wide = network(torch.float32)
    run = compiled(wide)
    x = draw(4, WIDTH, dtype=torch.float32)
    for kind in torch.bfloat16, None, torch.bfloat16:
        with torch.autocast(DEVICE, kind or torch.half, enabled=bool(kind)):
            made, own = run(x), wide(x)
            assert made.dtype == own.dtype
            same(made.float(), own.float())


def dropped():
    """Models that are compiled, called and dropped: nothing keeps them."""
    x = draw(4, WIDTH)
    free = []
    for i in range(24 if CUDA else 6):
        model = network()
        run = compiled(model)
        for _ in range(2):
            same(run(x), model(x))
        gone = [weakref.ref(p) for p in model.parameters()]
        del model, run
        gc.collect()
        synchronize()
        kept = sum(each() is not None for each in gone)
        assert not kept, "%d tensors of model %d are kept" % (kept, i)
        if CUDA:
            free.append(torch.cuda.mem_get_info()[0])
    if CUDA:
        assert free[11] - free[-1] < 1 << 20, [n >> 20 for n in free]


CASES = (
    weights, types_and_devices, wrong_devices, layouts, aliases, freed,
    streams, threads, modes, dropped,
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    failed = False
    for case in CASES:
        if not re.search(options.filter, case.__name__):
            continue
        torch.manual_seed(0)
        torch._dynamo.reset()
        try:
            with torch.no_grad():
                case()
            synchronize()
            print("%-18s ok" % case.__name__, flush=True)
        except Exception as error:
            failed = True
            text = "%s: %s" % (type(error).__name__, error)
            print("%-18s FAILS: %s" % (case.__name__, text[:600]), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
