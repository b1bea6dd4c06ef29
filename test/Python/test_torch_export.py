# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hidet.compile() of programs of torch.export on the simulator, against
PyTorch, and the files that they are saved as."""

import copy
import pathlib
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet
from torch import nn


def export(model, *inputs, sizes=None, **named):
    with torch.no_grad():
        return torch.export.export(
            copy.deepcopy(model), inputs, named, dynamic_shapes=sizes
        )


class Attention(nn.Module):
    """Takes a keyword, changes an input and a buffer, and gives a tree."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 24), nn.BatchNorm1d(8)
        self.register_buffer("count", torch.zeros(8))

    def forward(self, x, shared, *, scale=None, times=2):
        q, k, v = self.linear(x).chunk(3, -1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.norm(y.transpose(1, 2)).transpose(1, 2)
        shared.add_(1)
        self.count.add_(times)
        if scale is not None:
            y = y * scale
        return {"y": y + self.count, "x": x, "times": times}, shared[0]


class Export(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "m.hidet"

    def saved(self, model):
        model.save(self.path)
        return hidet.load(self.path, device="sim")

    def compare_file(self, loaded, own, compiled, *inputs):
        made = loaded(*[x.numpy() for x in inputs])
        torch.testing.assert_close(torch.from_numpy(made.copy()), own)
        self.assertEqual(loaded.num_compiled, compiled)

    def test_network(self):
        """A file for the sizes of the export, without a call."""
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 64, 10),
        ).eval()
        x = torch.randn(2, 3, 8, 8)
        made = hidet.compile(export(model, x))
        with torch.no_grad():
            own = model(x)
        self.compare_file(self.saved(made), own, 0, x)
        torch.testing.assert_close(made(x), own)

    def test_sizes(self):
        """One file for all; the code for those that came is in it."""
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
        model = model.eval()
        n = torch.export.Dim("n", min=2, max=50)
        program = export(model, torch.randn(5, 4), sizes=({0: n},))
        made = hidet.compile(program)
        inputs = [torch.randn(n, 4) for n in (3, 7, 20)]
        with torch.no_grad():
            own = [model(x) for x in inputs]
        for x, y in zip(inputs[:2], own):
            torch.testing.assert_close(made(x), y)
        loaded = self.saved(made)
        self.assertEqual(loaded.inputs[0].shape, (None, 4))
        for compiled, x, y in zip((0, 0, 1), inputs, own):
            self.compare_file(loaded, y, compiled, x)
        for wrong in torch.randn(1, 4), torch.randn(51, 4):
            with self.assertRaisesRegex(hidet.UsageError, "from 2 to 50"):
                made(wrong)

    def test_trees_and_changes(self):
        model = Attention().eval()
        n = torch.export.Dim("n", min=2, max=50)
        program = export(
            model,
            torch.randn(2, 5, 8),
            torch.randn(3, 3),
            scale=torch.ones(8),
            sizes=dict(x={1: n}, shared=None, scale=None),
        )
        made = hidet.compile(program)
        for n in 5, 7, 5:
            x, scale = torch.randn(2, n, 8), torch.randn(8)
            shared = torch.randn(3, 3)
            ours, counted = shared.clone(), model.count.clone()
            with torch.no_grad():
                own = model(x, shared, scale=scale)
            got = made(x, ours, scale=scale)
            torch.testing.assert_close(got, own)
            torch.testing.assert_close(ours, shared)
        loaded = self.saved(made)
        self.assertEqual(
            [v.name for v in loaded.inputs], "b_count x shared_ scale".split()
        )
        results = loaded(counted, x, shared - 1, scale=scale)
        expected = [model.count, shared, *map(own[0].get, "yx"), own[1]]
        for result, value in zip(results, expected, strict=True):
            torch.testing.assert_close(torch.tensor(result), value)

    def test_wrong_arguments(self):
        model = nn.Bilinear(4, 4, 3).eval()
        n = torch.export.Dim("n", min=2, max=50)
        x = torch.randn(5, 4)
        made = hidet.compile(
            export(model, x, x.clone(), sizes=({0: n}, {0: n}))
        )
        with torch.no_grad():
            torch.testing.assert_close(made(x, x), model(x, x))
        for said, *given in (
            ("arguments are", x),
            ("arguments are", x, x, x),
            ("is a tensor, not float", x, 1.0),
            ("'input1': its dtype is torch.float32", x.double(), x),
            ("'input1': its ndim is 2, not 1", x[0], x),
            ("'input2': its device is cpu, not meta", x, x.to("meta")),
            ("axis 0 has .* elements", x, x[1:]),
            ("'input2': axis 1 has 4 elements, not 3", x, x[:, 1:]),
        ):
            with self.assertRaisesRegex(hidet.UsageError, said):
                made(*given)
        with self.assertRaisesRegex(hidet.UsageError, "not Bilinear"):
            hidet.compile(model)

    def test_not_ours(self):
        """Runs in PyTorch where it is called, and is refused for a file."""

        class Search(nn.Module):
            def forward(self, x, at):
                return torch.searchsorted(x.cumsum(0), at * 2) + 1

        inputs = torch.rand(5), torch.rand(3)
        made = hidet.compile(export(Search(), *inputs))
        torch.testing.assert_close(made(*inputs), Search()(*inputs))
        with self.assertRaisesRegex(
            hidet.UnsupportedError, "no PyTorch for aten.searchsorted.Tensor"
        ):
            made.save(self.path)
        self.assertFalse(self.path.exists())

    def test_sizes_of_data(self):
        """What nobody knows the size of before it runs is PyTorch's, and is
        refused by its name for a file."""

        class Where(nn.Module):
            def forward(self, x):
                return torch.nonzero(x > 0) * 2

        x = torch.randn(4, 5)
        program = torch.export.export(Where(), (x,))
        compiled = hidet.compile(program)
        with self.assertLogs("hidet.torch", "WARNING") as logs:
            torch.testing.assert_close(compiled(x), Where()(x))
        self.assertIn("aten.nonzero.default", logs.output[0])
        with (
            tempfile.TemporaryDirectory() as folder,
            self.assertRaisesRegex(hidet.UnsupportedError, "aten.nonzero"),
        ):
            compiled.save(pathlib.Path(folder) / "m.hidet")

    def test_another_for_other_sizes(self):
        """What asks for a size's number is right, and refused for a file."""

        class Scaled(nn.Module):
            def forward(self, x):
                return x.flip(0).cumsum(0) * (2.0 / x.shape[0])

        n = torch.export.Dim("n", min=2, max=50)
        made = hidet.compile(
            export(Scaled(), torch.randn(5, 3), sizes=({0: n},))
        )
        for n in 4, 9:
            x = torch.randn(n, 3)
            torch.testing.assert_close(made(x), Scaled()(x))
        with self.assertRaisesRegex(hidet.UnsupportedError, "for other sizes"):
            made.save(self.path)

    def test_names(self):
        """Of inputs that are words of the language."""

        class Sum(nn.Module):
            def forward(self, out, out_, shared):
                return out + out_ * 2 + shared * 3

        inputs = [torch.randn(4) for _ in range(3)]
        made = hidet.compile(export(Sum(), *inputs))
        loaded = self.saved(made)
        names = [v.name for v in loaded.inputs]
        self.assertEqual(len(set(names)), 3)
        self.compare_file(loaded, Sum()(*inputs), 0, *inputs)


if __name__ == "__main__":
    unittest.main()
