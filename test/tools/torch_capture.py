# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled models inside of torch.cuda.graph, on a GPU: products, attention, a
convolution, a cache with a counter, each captured in each of PyTorch's modes,
after runs of the model's own and between them. A replay on other inputs is held
against PyTorch.

usage: torch_capture.py

A line for each. Exit 1: one is refused or wrong; 77: there is no GPU, or no
PyTorch.
"""

import sys

try:
    import torch
    from torch import nn
except ImportError as error:
    print("needs PyTorch: %s" % error)
    sys.exit(77)
if not torch.cuda.is_available():
    print("needs a GPU")
    sys.exit(77)

import hidet.torch  # noqa: E402,F401  The backend.

MODES = ("global", "thread_local", "relaxed")
TOLERANCE = 2e-2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(512)
        self.qkv, self.out = nn.Linear(512, 1536), nn.Linear(512, 512)

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(self.norm(x)).view(b, t, 3, 8, c // 8)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        made = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True
        )
        return x + self.out(made.transpose(1, 2).reshape(b, t, c))


class Cache(nn.Module):
    """A row is put in place, and a counter is stored beside what reads it."""

    def __init__(self):
        super().__init__()
        self.row = nn.Linear(64, 64)
        self.register_buffer("rows", torch.zeros(8, 32, 64))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.rows.index_copy_(1, self.count.clone(), self.row(x))
        self.count.add_(1)
        return self.rows.float().sum(1) + self.count


CASES = {
    "products": (
        lambda: nn.Sequential(
            nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)
        ),
        (4, 1024),
    ),
    "attention": (Attention, (1, 128, 512)),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 256, 1)
        ),
        (1, 64, 56, 56),
    ),
    "cache": (Cache, (8, 1, 64)),
}


def rewind(model):
    for buffer in model.buffers():
        buffer.zero_()


def captured(model, run, x, mode):
    """A graph of a run on x, after one outside of it, and what it gives."""
    rewind(model)
    run(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        y = run(x)
    return graph, y


def check(name):
    make, shape = CASES[name]
    torch.manual_seed(0)
    model = make().cuda().half().eval()
    run = torch.compile(model, backend="hidet")
    for mode in MODES:
        x = torch.randn(shape, device="cuda").half()
        graph, y = captured(model, run, x, mode)
        x.copy_(torch.randn_like(x))
        rewind(model)
        graph.replay()
        torch.cuda.synchronize()
        rewind(model)
        torch.testing.assert_close(
            y, model(x), rtol=TOLERANCE, atol=TOLERANCE
        )
    print("%-12s ok, in %s" % (name, ", ".join(MODES)), flush=True)


def main():
    failed = False
    with torch.no_grad():
        for name in CASES:
            try:
                check(name)
            except (AssertionError, RuntimeError, hidet.HidetError) as error:
                failed = True
                print("%-12s FAILS: %s" % (name, error), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
