# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scaled_dot_product_attention comes whole to the compiler, whatever the device,
and is what PyTorch computes."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet.torch
from hidet.torch import backend, emit, part
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

attention = nn.functional.scaled_dot_product_attention


class Traced(Exception):
    """A text, in the place of a run."""


class Attention(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        backend.said.clear()

    def text_of(self, function, *inputs):
        """Of a function on fake tensors: its only part's."""

        def stop(this, *_):
            raise Traced(emit.emit_graph(this.module.graph, ())[0])

        forward, part.Part.forward = part.Part.forward, stop
        try:
            with FakeTensorMode(), torch.no_grad():
                fakes = [
                    torch.empty(shape, dtype=dtype, device=device)
                    for shape, dtype, device in inputs
                ]
                torch.compile(function, backend="hidet")(*fakes)
        except Traced as text:
            return str(text)
        finally:
            part.Part.forward = forward

    def compare(self, function, *inputs, narrow=False):
        """PyTorch's own results, of one part that has attention whole."""
        limits = dict(rtol=2e-2, atol=2e-3) if narrow else {}
        texts, dump = [], backend.Options.dump
        backend.Options.dump = lambda _, text: texts.append(text)
        try:
            with torch.no_grad():
                made = torch.compile(function, backend="hidet")(*inputs)
                torch.testing.assert_close(made, function(*inputs), **limits)
        finally:
            backend.Options.dump = dump
        self.assertEqual(len(texts), 1)
        self.assertEqual(len(re.findall(r"= softmax\w*\(", texts[0])), 1)
        self.assertEqual(backend.said, set())

    def test_whole_on_a_gpu(self):
        """PyTorch without CUDA would take this one apart, as one with CUDA does
        where it has no kernel for it."""
        half, true = torch.float16, torch.bool
        texts = []
        for device in "cuda", "cpu":
            head = (1, 4, 64, 32), half, device
            mask = (1, 1, 64, 64), true, device
            texts.append(self.text_of(attention, head, head, head, mask))
        self.assertEqual(*texts)
        used = re.findall(r"= (\w+)\(", texts[0])
        self.assertEqual(
            used,
            "matmul mul where softmax cast matmul not reshape reduce_min_bool "
            "reshape where copy".split(),
        )
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "attention.hir"
            path.write_text(texts[0])
            flags = "--target=sm_90a --expand --rewrite --fuse --schedule"
            plan = subprocess.run(
                [sys.executable, "-m", "hidet", "opt", *flags.split(), path],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        launches = re.findall(r"^  launch (\w+)", plan, re.M)
        self.assertEqual(len(launches), 2)
        self.assertRegex(launches[1], "^matmul_attention")

    def test_written_out(self):
        """As transformers' eager attention has it, with heads of keys that
        several of queries share: one kernel, as the operator is."""

        def eager(q, k, v, mask):
            k, v = [
                t[:, :, None].expand(1, 2, 2, 64, 32).reshape(1, 4, 64, 32)
                for t in (k, v)
            ]
            weights = q @ k.transpose(2, 3) * 32**-0.5 + mask
            weights = torch.softmax(weights, -1, dtype=torch.float32)
            return (weights.to(q.dtype) @ v).transpose(1, 2).contiguous()

        mask = torch.full((64, 64), -torch.inf).triu(1)[None, None]
        for dtype in torch.float16, torch.bfloat16:
            torch._dynamo.reset()
            q = torch.randn(1, 4, 64, 32, dtype=dtype)
            k, v = torch.randn(2, 1, 2, 64, 32, dtype=dtype)
            inputs = q, k, v, mask.to(dtype)
            compiled = torch.compile(eager, backend="hidet")
            limits = {torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
            with torch.no_grad():
                torch.testing.assert_close(
                    compiled(*inputs), eager(*inputs), rtol=limits, atol=limits
                )
            kernels = hidet.explain(compiled, *inputs).splitlines()[2:-1]
            self.assertEqual(len(kernels), 1, kernels)
            self.assertRegex(kernels[0], " matmul_attention")

    def test_operands(self):
        """All that a call can say."""
        q = torch.randn(2, 4, 7, 8)
        k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 6)
        add = torch.randn(4, 1, 5)
        self.compare(attention, q, k, v)
        self.compare(lambda *x: attention(*x, is_causal=True), q, k, v)
        self.compare(lambda *x: attention(*x, scale=-0.3), q, k, v)
        self.compare(attention, q, k, v, add)
        self.compare(attention, q, k, v, torch.rand(2, 1, 7, 1) < 0.5)
        self.compare(attention, q[0], k[0], v[0], add)
        self.compare(attention, q, k[:, :1], v[:, :1])  # A head for all.
        few = torch.randn(2, 2, 5, 8)
        self.compare(
            lambda *x: attention(*x, is_causal=True, enable_gqa=True),
            q,
            few,
            few,
        )
        for dtype in torch.float16, torch.bfloat16:
            given = [x.to(dtype) for x in (q, k, v, add)]
            self.compare(attention, *given, narrow=True)

    def test_nothing_seen(self):
        """0, and what is not a number stays so."""
        see = torch.rand(7, 5) < 0.5
        see[3] = False
        q, k = torch.randn(2, 3, 7, 8), torch.randn(2, 3, 5, 8)
        self.compare(lambda q, k, m: attention(q, k, k, m), q, k, see)
        made = torch.compile(attention, backend="hidet")(q, k, k, see)
        self.assertEqual(float(made[:, :, 3].abs().max()), 0)
        q[0, 1, 2, 4] = torch.nan
        with torch.no_grad():
            made = torch.compile(attention, backend="hidet")(q, k, k, see)
        self.assertEqual(int(made.isnan().sum()), 8)
        self.assertTrue(made[0, 1, 2].isnan().all())

    def test_large_scores(self):
        """Products of f16 that f16 does not hold."""
        q = torch.full((1, 1, 4, 16), 200.0, dtype=torch.half)
        k = torch.randn(1, 1, 4, 16, dtype=torch.half)
        k[0, 0, 2] = 100
        self.compare(lambda q, k: attention(q, k, k, scale=0.1), q, k)

    def test_modules(self):
        """What PyTorch's own modules make of it."""
        x = torch.randn(2, 6, 16)
        mha = nn.MultiheadAttention(16, 4, batch_first=True).eval()
        self.compare(lambda x: mha(x, x, x, need_weights=False)[0], x)

    def test_encoder_layers(self):
        """PyTorch's operator for a whole layer, in one part, with masks of all
        its types; a sequence of nothing but padding has no numbers."""
        causal = nn.Transformer.generate_square_subsequent_mask(6)
        padding = torch.arange(6) >= torch.tensor([[6], [2], [0]])
        heads = causal.expand(3 * 4, 6, 6)
        masks = [
            {},
            {"src_mask": causal},
            {"src_key_padding_mask": padding},
            {"src_mask": causal < 0, "src_key_padding_mask": padding},
            {"src_mask": heads},
        ]
        x = torch.randn(3, 6, 32)
        for first, activation in (False, "relu"), (True, "gelu"):
            layer = nn.TransformerEncoderLayer(
                32, 4, 48, 0.1, activation, batch_first=True, norm_first=first
            ).eval()
            for given in masks:
                torch._dynamo.reset()
                ran = []
                backend.watchers.append(ran.append)
                compiled = torch.compile(layer, backend="hidet")
                with self.subTest(first=first, masks=list(given)):
                    with torch.no_grad():
                        found, expected = compiled(x, **given), layer(x, **given)
                    torch.testing.assert_close(
                        found, expected, rtol=1e-4, atol=1e-5, equal_nan=True
                    )
                    self.assertEqual([len(v.parts) for v in ran], [1])
                    self.assertEqual(ran[0].left, {})
                backend.watchers.clear()

    def test_autocast(self):
        q = torch.randn(1, 2, 8, 16)

        def function(q):
            with torch.autocast("cpu", torch.bfloat16):
                return attention(q, q, q)

        self.compare(function, q, narrow=True)

    def test_training(self):
        """Gradients are PyTorch's."""
        q = torch.randn(1, 2, 8, 16, requires_grad=True)
        made = torch.compile(attention, backend="hidet")(q, q, q)
        made.sum().backward()
        own = q.detach().clone().requires_grad_()
        attention(own, own, own).sum().backward()
        torch.testing.assert_close(q.grad, own.grad)

    def test_left_to_pytorch(self):
        """What the table does not say runs in PyTorch, as one operator."""
        q = torch.randn(2, 2, 3, 4, 8)
        with self.assertLogs("hidet.torch", "WARNING") as logs, torch.no_grad():
            made = torch.compile(attention, backend="hidet")(q, q, q)
        torch.testing.assert_close(made, attention(q, q, q))
        self.assertIn("hidet.attention.default runs in PyTorch", logs.output[0])


if __name__ == "__main__":
    unittest.main()
