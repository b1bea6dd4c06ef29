# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Hopper's kernels of examples/ do, against PyTorch's libraries.

usage: hopper.py [--tools=DIR] [--json=FILE] [name...]

One line a case. The f16 product is among products.py. Here are
  matmul_f8     e4m3 in, f16 out: torch._scaled_mm with fast accumulation
  matmul_tf32   f32 by tf32: torch.matmul with allow_tf32
  conv_wgmma    3 x 3, f16: cuDNN, channels-last, benchmark = True
  chain         100 dependent kernels of 132 blocks: launched programmatic
                against one after the other
"""

import json
import pathlib
import sys
import tempfile

import measure
import numpy
import torch

CHAIN = 100
CHAIN_SIZE = 132 * 256

KERNEL = """
kernel add_one(n: i32, in a: f32[n], out c: f32[n])
  grid(ceildiv(n, 256)) block(256)
{
  let i = block * 256 + thread
%s  if i < n {
    c[i] = a[i] + 1.0
  }
}
"""
EARLY = "  griddepcontrol_launch()\n  griddepcontrol_wait()\n"


def chain(early):
    """A plan of CHAIN launches, each of what the one before wrote."""
    names = ["a"] + [("s", "t")[i % 2] for i in range(CHAIN - 1)] + ["c"]
    launches = ["  launch add_one(n, %s, %s)%s\n" % (
        names[i], names[i + 1], " programmatic" if early else "")
        for i in range(CHAIN)]
    return (KERNEL % (EARLY if early else "") +
            "plan main(n: i32, in a: f32[n], out c: f32[n]) {\n"
            "  workspace s: f32[n]\n  workspace t: f32[n]\n" +
            "".join(launches) + "}\n")


def run_chain(tools, early):
    """Milliseconds of the whole chain; its result is looked at, too."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "chain.hir").write_text(chain(early))
        numpy.save(path / "expected.npy",
                   numpy.full(CHAIN_SIZE, CHAIN, dtype="f4"))
        return measure.run(tools, path / "chain.hir", [
            "--shape=n=%d" % CHAIN_SIZE, "--input=a=zeros", "--atol=0",
            "--expected=c=@%s" % (path / "expected.npy")])


def measure_chain(tools):
    times, report = measure.in_turns({
        "plain": lambda: run_chain(tools, False),
        "early": lambda: run_chain(tools, True)})
    if times is None:
        return None, report
    plain, early = times["plain"], times["early"]
    print("chain of %d         %7.3f us a kernel, %.3f programmatic, "
          "%.3f times as fast" % (CHAIN, plain * 1e3 / CHAIN,
                                  early * 1e3 / CHAIN, plain / early),
          flush=True)
    return {"ms": early, "plain_ms": plain, "kernels": CHAIN,
            "ratio": plain / early}, None


def f8_peer(m, n, k):
    one = torch.ones((), device="cuda")

    def operands():
        def random(rows):
            x = torch.randn(rows, k, device="cuda", dtype=torch.float16)
            return x.to(torch.float8_e4m3fn)
        return (random(m), random(n),
                torch.empty(m, n, device="cuda", dtype=torch.float16))

    return measure.peer(operands, lambda a, b, c: torch._scaled_mm(
        a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.float16,
        use_fast_accum=True))


def tf32_peer(m, n, k):
    def operands():
        return (torch.randn(m, k, device="cuda"),
                torch.randn(n, k, device="cuda"),
                torch.empty(m, n, device="cuda"))

    torch.backends.cuda.matmul.allow_tf32 = True
    ms = measure.peer(operands,
                      lambda a, b, c: torch.matmul(a, b.t(), out=c))
    torch.backends.cuda.matmul.allow_tf32 = False
    return ms


def conv_peer(batch, h, w, channels, filters):
    torch.backends.cudnn.benchmark = True
    last = {"memory_format": torch.channels_last, "device": "cuda",
            "dtype": torch.float16}

    def operands():
        # The output is none of PyTorch's arguments, but rotates with them.
        return (torch.randn(batch, channels, h, w, device="cuda").to(**last),
                torch.randn(filters, channels, 3, 3, device="cuda").to(**last),
                torch.empty(batch, filters, h, w, **last))

    return measure.peer(operands, lambda x, weight, y: (
        torch.nn.functional.conv2d(x, weight, padding=1)))


def measure_product(tools, name, m, n, k):
    label = "%-12s %5d x %5d x %5d" % (name, m, n, k)
    peer = f8_peer if name == "matmul_f8" else tf32_peer
    case = {"m": m, "n": n, "k": k}
    shapes = {"a": [m, k], "b": [n, k]}
    return compare(tools, name, label, shapes, 2 * m * n * k,
                   lambda: peer(m, n, k), case)


def measure_conv(tools, name, batch, h, w, channels, filters):
    label = "%-12s %d x %d x %d x %d, %d" % (name, batch, h, w, channels,
                                             filters)
    case = {"batch": batch, "h": h, "w": w, "channels": channels,
            "filters": filters}
    shapes = {"x": [batch, h, w, channels], "weight": [filters, 9 * channels]}
    flop = 2 * batch * h * w * channels * filters * 9
    return compare(tools, name, label, shapes, flop,
                   lambda: conv_peer(batch, h, w, channels, filters), case)


def compare(tools, name, label, shapes, flop, peer, case):
    def theirs():
        ms = peer()
        torch.cuda.empty_cache()
        return ms, None

    times, report = measure.in_turns({
        "peer": theirs, "ours": lambda: measure.ours(tools, name, shapes)})
    if times is None:
        return None, "%s: %s" % (label, report)
    mine, theirs = times["ours"], times["peer"]
    print("%-34s %7.1f TFLOP/s  peer %7.1f  %.3f of it" % (
        label, flop / mine / 1e9, flop / theirs / 1e9, theirs / mine),
        flush=True)
    return {**case, "ms": mine, "peer_ms": theirs,
            "tflops": flop / mine / 1e9, "ratio": theirs / mine}, None


def main():
    options = measure.arguments(__doc__.splitlines()[0])
    shapes = json.loads((measure.SHAPES / "hopper.json").read_text())
    cases, failures = [], 0
    for name in options.names or list(shapes) + ["chain"]:
        for shape in shapes.get(name, [[]]):
            if name == "chain":
                case, fault = measure_chain(options.tools)
            elif name == "conv_wgmma":
                case, fault = measure_conv(options.tools, name, *shape)
            else:
                case, fault = measure_product(options.tools, name, *shape)
            if fault:
                failures += 1
                print("%s FAILED: %s" % (name, fault.strip()), flush=True)
            else:
                cases.append({"kernel": name, **case})
    measure.write(options.json, cases)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
