# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers of a compiled model, on the simulator: rotary embeddings are
one part, and what is not known of pairs is PyTorch's."""

import sys
import unittest

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet.torch
from hidet.torch import backend
from torch import nn

real, pair = torch.view_as_real, torch.view_as_complex
draw = torch.randn


class Rotary(nn.Module):
    """As Meta's Llama and its descendants have it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("angle", torch.outer(torch.arange(7.0), draw(4)))
        self.q = nn.Linear(16, 16)

    def forward(self, x):
        turn = torch.polar(torch.ones_like(self.angle), self.angle)
        q = self.q(x).view(1, 7, 2, 8)
        z = pair(q.float().reshape(*q.shape[:-1], -1, 2))
        made = real(z * turn.view(1, 7, 1, 4)).flatten(3)
        return made.type_as(x), real(z.transpose(0, 2)[:, -1:].unsqueeze(-1))


class Complex(unittest.TestCase):
    def compare(self, function, *inputs, left=(), **options):
        """left: operators that PyTorch runs. Each of the inputs is a call's."""
        torch._dynamo.reset()
        backend.said.clear()
        compiled = torch.compile(
            function, backend="hidet", fullgraph=True, **options
        )
        with torch.no_grad():
            for given in inputs:
                made, own = compiled(*given), function(*given)
                torch.testing.assert_close(made, own, check_stride=True)
        names = {text.partition(" ")[0] for text in backend.said}
        self.assertEqual(names, {f"aten.{name}" for name in left})

    def test_rotary(self):
        torch.manual_seed(0)
        self.compare(Rotary().eval(), [draw(1, 7, 16)])
        narrow = Rotary().eval()
        narrow.q = nn.Identity()
        self.compare(narrow, [draw(1, 7, 16).half()])

    def test_arithmetic(self):
        def f(x, y, t):
            a, b = pair(x), torch.complex(y, t)
            joined = torch.cat([a * b, a.conj() - b], -1).permute(1, 0)
            return real(joined), (a * t + a * 2.5).real, (b * y).imag, b.abs()

        given = draw(3, 4, 2), draw(3, 4), draw(4)
        self.compare(f, given)
        longer = draw(6, 4, 2), draw(6, 4), draw(4)
        self.compare(f, given, longer, dynamic=True)

    def test_views(self):
        """What is computed lies row-major, whatever it is computed from; a size
        is a number; conjugates that PyTorch has not computed yet are."""

        def f(x):
            a = pair(x).transpose(0, 1)
            square, half = (a * a).transpose(0, 1), (a.conj() * 0.5).T
            both = square.reshape(-1), half.reshape(2, -1)
            return *map(real, both), real(pair(x) * x.shape[0])

        self.compare(f, [draw(3, 4, 2)], [draw(5, 4, 2)], dynamic=True)
        self.compare(lambda x: real(pair(x).conj().diagonal() * 2.0),
                     [draw(4, 4, 2)], left=["view_as_complex.default",
                     "_conj.default", "diagonal.default", "resolve_conj.default",
                     "view_as_real.default"])  # fmt: skip

    def test_half(self):
        """Each product would be rounded to f16: here they nearly cancel."""
        x = torch.tensor([[1.0009765625, 1.0]]).half()
        self.compare(lambda x: real(pair(x) * pair(x)), [x],
                     left=["view_as_complex.default", "mul.Tensor",
                           "view_as_real.default"])  # fmt: skip

    def test_left(self):
        """Complex inputs, results and numbers, and a transform."""
        z, x = torch.randn(3, 4, dtype=torch.complex64), draw(3, 4, 2)
        self.compare(lambda z, x: (real(z * pair(x)), x + 1), (z, x),
                     left=["view_as_real.default"])  # fmt: skip
        self.compare(lambda x, y: real(torch.cat([pair(y), pair(x)])),
                     (x, draw(0, 2)), left=["view_as_complex.default",
                     "cat.default", "view_as_real.default"])  # fmt: skip
        self.compare(lambda z, x: z * pair(x), (z, x),
                     left=["view_as_complex.default", "mul.Tensor"])  # fmt: skip
        self.compare(lambda x: real(x * 1j), (x,),
                     left=["mul.Tensor", "view_as_real.default"])  # fmt: skip
        self.compare(lambda x: torch.fft.rfft(x).abs() + 1, (x,),
                     left=["_fft_r2c.default", "view_as_real.default"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
