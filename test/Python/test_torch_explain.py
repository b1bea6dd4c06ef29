# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hidet.explain(): what ran, of a compiled model and of an exported program."""

import pathlib
import re
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet
import hidet.torch
from torch import nn


class Explain(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        self.model = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)
        ).eval()
        self.x = torch.randn(64, 64)

    def test_model(self):
        """A kernel for each Linear, with its module and a price."""
        compiled = torch.compile(self.model, backend="hidet")
        text = hidet.explain(compiled, self.x)
        lines = text.splitlines()
        self.assertEqual(
            lines[0], "graph 1 of 1: 1 part, 0 operators in PyTorch"
        )
        self.assertRegex(lines[1], "on cpu: .* 1 input, 4 constants, 1 result")
        prices = []
        for line, module in zip(lines[2:-1], ("0", "2"), strict=True):
            found = re.match(rf" +([\d.]+) us  matmul.*  {module}  +matmul", line)
            self.assertTrue(found, line)
            prices.append(float(found[1]))
        total = f"{sum(prices):.2f} us are expected of 2 of 2"
        self.assertEqual(lines[-1].strip(), total)

    def test_between(self):
        """What PyTorch runs, and graphs that Dynamo breaks."""

        def function(x):
            y = self.model(x).cumsum(0)
            torch._dynamo.graph_break()
            at = torch.searchsorted(y[0].sort().values, x)
            return at + 1

        compiled = torch.compile(function, backend="hidet")
        text = hidet.explain(compiled, self.x)
        self.assertEqual(
            re.findall(r"^graph .*", text, re.M),
            [
                "graph 1 of 2: 1 part, 0 operators in PyTorch",
                "graph 2 of 2: 2 parts, 1 operator in PyTorch",
            ],
        )
        self.assertIn("aten.searchsorted.Tensor runs in PyTorch: it is", text)

    def test_report(self):
        """The page has the parts, their modules, and what is not ours."""

        def function(x):
            y = self.model(x).cumsum(0)
            return torch.searchsorted(y[0].sort().values, x) + 1

        compiled = torch.compile(function, backend="hidet", dynamic=True)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.html"
            hidet.report(compiled, path, self.x)
            text = path.read_text()
        self.assertTrue("Graph 1, part 2" in text)
        self.assertTrue("<td>aten.searchsorted.Tensor</td>" in text)
        self.assertFalse("Not known" in text)
        modules = re.findall(r'title="(model\.\d)">\1</td>', text)
        self.assertEqual(modules, ["model.0", "model.2"])
        self.assertLess(len(text), 100_000)  # No weights are in it.

    def test_report_of_nothing(self):
        with self.assertRaisesRegex(hidet.UsageError, "not compiled"):
            hidet.report(self.model, "report.html", self.x)

    def test_program(self):
        with torch.no_grad():
            program = torch.export.export(self.model, (self.x,))
        text = hidet.explain(hidet.compile(program), self.x)
        self.assertIn("graph 1 of 1: 1 part", text)
        self.assertIn("us are expected of 2 of 2", text)

    def test_not_compiled(self):
        self.assertIn("nothing of it ran", hidet.explain(self.model, self.x))


if __name__ == "__main__":
    unittest.main()
