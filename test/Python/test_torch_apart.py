# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that are said by others (apart.py), and products of groups of rows,
on the simulator: PyTorch's results, from one part, with nothing left between."""

import sys
import unittest

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet.torch
from hidet.torch import backend, divide, table
from torch import nn

F = nn.functional
TYPES = torch.float32, torch.float16, torch.float64, torch.int64


class Apart(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        backend.said.clear()
        hidet.torch.dynamo_config.reset()

    def compare(self, function, *inputs, left=()):
        torch._dynamo.reset()
        divide.said.clear()
        with torch.no_grad():
            compiled = torch.compile(function, backend="hidet", fullgraph=True)
            made, own = compiled(*inputs), function(*inputs)
        torch.testing.assert_close(made, own, equal_nan=True)
        said = " ".join(divide.said)
        self.assertEqual(bool(left), bool(said), said)
        for name in left:
            self.assertIn(name, said)

    def test_memory_that_nobody_has_written(self):
        def turn(at):
            back = torch.empty_like(at)
            back[at] = torch.arange(len(at))
            more = torch.empty(2, 3)
            more[:] = 5
            return back, more

        self.compare(turn, torch.tensor([2, 0, 3, 1]))

    def test_shifts_and_powers(self):
        x = torch.tensor([1, -7, 100])
        self.compare(lambda x: (x << 3, x >> 1), x)
        self.compare(torch.ldexp, torch.randn(4), torch.tensor([-3, 0, 2, 9]))

    def test_addbmm(self):
        a, b = torch.randn(3, 4, 5), torch.randn(3, 5, 6)
        self.compare(
            lambda x: torch.addbmm(x, a, b, beta=0.5, alpha=2),
            torch.randn(4, 6),
        )
        self.compare(
            lambda x: torch.addbmm(x, a, b, beta=0),
            torch.full((4, 6), torch.nan),
        )

    def test_bucketize(self):
        bounds = torch.tensor([-1.0, 0.0, 0.0, 0.5])
        x = torch.tensor([[-2, -1, -0.5, 0], [0.25, 0.5, torch.inf, torch.nan]])
        for right in False, True:
            for kind in False, True:
                self.compare(
                    lambda x, b: torch.bucketize(x, b, out_int32=kind, right=right),
                    x, bounds,
                )  # fmt: skip
        self.compare(torch.bucketize, (9 * x[0]).int(), bounds.int())
        self.compare(torch.bucketize, x, bounds[:0])
        many = torch.zeros(1 << 14), torch.zeros(1 << 13)
        self.compare(torch.bucketize, *many, left=["bucketize"])

    def test_histc(self):
        """Numbers at the ends and outside of them."""
        x = torch.randint(-9, 10, (2, 40)) / 4
        for bins, low, high in (8, -2, 2), (3, -1, 1), (1, 0, 0.5):
            self.compare(lambda x: torch.histc(x, bins, low, high), x)
        self.compare(
            lambda x: torch.histc(x.int().float(), 8, 0, 7),
            torch.randint(-1, 9, (50,)),
        )
        self.compare(torch.histc, x, left=["histc"])  # Of all that is there.
        self.compare(  # Too many elements between.
            lambda x: torch.histc(x, 1 << 20, -2, 2), x, left=["histc"]
        )

    def test_distances(self):
        a, b = torch.randn(2, 5, 3), torch.randn(2, 6, 3)
        for p in 0.0, 0.5, 1.0, 2.0, 3.0, torch.inf:
            self.compare(lambda a, b: torch.cdist(a, b, p=p), a, b)
        many = torch.randn(30, 4)
        self.compare(torch.cdist, many, torch.randn(40, 4))

    def test_masked_scatter(self):
        x = torch.randn(3, 4)
        for mask in (
            x > 0,
            torch.zeros(3, 4, dtype=torch.bool),
            torch.ones(3, 4, dtype=torch.bool),
            torch.tensor([True, False, False, True]),  # Of each row.
        ):
            for dtype in TYPES:
                self.compare(
                    lambda x, m, s: x.masked_scatter(m, s),
                    (9 * x).to(dtype),
                    mask,
                    torch.randn(4, 4).to(dtype),
                )

    def test_diagonal_scatter(self):
        x = torch.randn(3, 4, 5)
        for offset in -1, 0, 2:
            for axes in (0, 1), (1, 2), (2, 0):
                self.compare(
                    lambda x: torch.diagonal_scatter(
                        x,
                        torch.ones_like(torch.diagonal(x, offset, *axes)),
                        offset,
                        *axes,
                    ),
                    x,
                )

    def test_scatter_reduce(self):
        """Places that nobody comes to keep what they have."""
        at = torch.tensor([[0, 0, 2], [1, 1, 1], [0, 3, 0]])
        for dtype in TYPES:
            x = torch.randint(-9, 9, (4, 3)).to(dtype)
            u = torch.randint(-9, 9, (3, 3)).to(dtype)
            for how in "sum", "prod", "mean", "amax", "amin":
                for own in False, True:
                    self.compare(
                        lambda x, at, u: x.scatter_reduce(
                            0, at, u, how, include_self=own
                        ),
                        x,
                        at,
                        u,
                    )

    def test_embedding_bag(self):
        """Bags of no word, at the end, too; words that do not count."""
        for mode in "sum", "mean":
            for more in {}, {"padding_idx": 2}, {"include_last_offset": True}:
                model = nn.EmbeddingBag(9, 4, mode=mode, **more).eval()
                words = torch.tensor([1, 2, 2, 8, 0, 5])
                ends = torch.tensor([0, 2, 2, 3, 6, 6])
                self.compare(model, words, ends)
            whole = nn.EmbeddingBag(9, 4, mode=mode).eval()
            self.compare(whole, torch.randint(0, 9, (3, 5)))
        model = nn.EmbeddingBag(9, 4, mode="sum").eval()
        self.compare(
            lambda at, by: model(at, per_sample_weights=by),
            torch.randint(0, 9, (3, 5)),
            torch.randn(3, 5),
        )

    def test_adaptive_max_pool(self):
        """Windows of several lengths, what is no number, and the places."""
        x = torch.randn(2, 3, 7, 10)
        x[0, 1, 3, 4] = torch.nan
        for size in (3, 4), (7, 1), (9, 3), 1:
            self.compare(
                lambda x: F.adaptive_max_pool2d(x, size, return_indices=True),
                x,
            )
            self.compare(lambda x: F.adaptive_max_pool2d(x, size), x[1])
        self.compare(
            lambda x: F.adaptive_max_pool2d(x, (0, 2)), x, left=["max_pool"]
        )

    def test_grouped_products(self):
        """Groups without a row, at the ends, too, and all rows in one."""
        with torch.library._scoped_library("transformers", "FRAGMENT") as own:
            name = "grouped_mm_fallback"
            own.define(name + "(Tensor x, Tensor w, Tensor ends) -> Tensor")

            def rows(x, w, ends):
                made = x.new_zeros(x.shape[0], w.shape[2])
                start = 0
                for i, end in enumerate(ends.tolist()):
                    made[start:end] = x[start:end] @ w[i]
                    start = end
                return made

            own.impl(name, rows, "CPU")
            own.impl(
                name,
                lambda x, w, _: x.new_empty(x.shape[0], w.shape[2]),
                "Meta",
            )
            op = getattr(torch.ops.transformers, name).default
            self.assertIn(op, table.table())
            for dtype in torch.float32, torch.float64:
                x, w = torch.randn(12, 16), torch.randn(4, 24, 16)
                for ends in (
                    [3, 3, 7, 12],
                    [0, 0, 0, 0],
                    [12, 12, 12, 12],
                    [0, 4, 4, 9],  # The last rows are of none: zeros.
                ):
                    self.compare(
                        lambda x, w, ends: op(x, w.transpose(1, 2), ends) + 1,
                        x.to(dtype),
                        w.to(dtype),
                        torch.tensor(ends, dtype=torch.int32),
                    )
            del table.rows_found()[op]

    def test_grouped_products_of_pytorch(self):
        """Which are of bf16, and have all rows in a group."""
        x, w = torch.randn(16, 32).bfloat16(), torch.randn(4, 24, 32).bfloat16()
        ends = torch.tensor([3, 3, 7, 16], dtype=torch.int32)
        self.compare(
            lambda x, w, ends: torch._grouped_mm(x, w.transpose(1, 2), ends),
            x,
            w,
            ends,
        )


if __name__ == "__main__":
    unittest.main()
