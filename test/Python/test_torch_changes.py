# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled model changes in place, on the simulator: inputs and buffers
are what PyTorch makes of them, caches are written where they lie, and nothing
else shares memory with them."""

import gc
import sys
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet
import hidet.torch
from hidet.torch import backend, engine, part, weights
from torch import nn


class Changes(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        backend.said.clear()
        hidet.torch.dynamo_config.reset()
        self.parts = []
        init = part.Part.__init__

        def keep(this, *arguments):
            init(this, *arguments)
            self.parts.append(this)

        part.Part.__init__ = keep
        self.addCleanup(setattr, part.Part, "__init__", init)

    def compare(self, function, *inputs, calls=3, stored=None, **options):
        """Results, and what inputs are afterwards, call after call. stored: how
        many are computed where they belong."""
        compiled = torch.compile(function, backend="hidet", **options)
        own, ours = [[x.clone() for x in inputs] for _ in range(2)]
        with torch.no_grad():
            for _ in range(calls):
                made, expected = compiled(*ours), function(*own)
                torch.testing.assert_close(made, expected)
                torch.testing.assert_close(ours, own)
        if stored is not None:
            held = [p.built.engine.stored for p in self.parts if p.built]
            self.assertEqual(sum(map(len, held)), stored)
        return compiled

    def test_capture(self):
        """While a graph is captured nothing is compiled, and what was runs;
        here nothing is captured, but PyTorch says so."""
        always = {"is_capturing": lambda _device: True}
        compiled = torch.compile(torch.tanh, backend="hidet")
        x = torch.randn(3, 4)
        with torch.no_grad():
            with mock.patch.multiple(part, **always):
                self.assertRaisesRegex(
                    hidet.UsageError, "once before", compiled, x
                )
            compiled(x)
            with mock.patch.multiple(part, **always):
                with mock.patch.multiple(engine, **always):
                    torch.testing.assert_close(compiled(x), torch.tanh(x))
        self.assertIn(self.parts[-1].built.engine.model, engine.captured)
        engine.captured.clear()

    def test_cache_in_place(self):
        """A row is put into it, and nothing else of it is written."""

        def step(cache, at, new):
            cache.index_copy_(1, at, new)
            return torch.softmax(new @ cache.transpose(1, 2), -1) @ cache

        inputs = torch.zeros(2, 9, 8), torch.tensor([3]), torch.randn(2, 1, 8)
        compiled = self.compare(step, *inputs, stored=1)
        text = hidet.explain(compiled, *inputs)
        self.assertIn("scatter_rows_in_place", text)
        self.assertRegex(text, "result 0 is stored in the input that it is")
        # Rows that no run has put in are as somebody else leaves them.
        cache = inputs[0]
        cache[:, 5] = 7.0
        with torch.no_grad():
            compiled(*inputs)
        self.assertTrue(bool((cache[:, 5] == 7).all()))

    def test_slices_and_places(self):
        def step(a, b, at, new):
            a[:, 2] = new[:, 0]
            b[0, at] += 1
            return a + b

        self.compare(
            step,
            torch.randn(2, 9, 4),
            torch.randn(2, 9, 4),
            torch.tensor([1, 4]),
            torch.randn(2, 1, 4),
        )

    def test_what_was_there(self):
        """Results of the old value, and the new one, are tensors of their
        own."""

        def add(x, at):
            before = x + 0
            x.index_add_(0, at, torch.ones(1, 4))
            return before, x.clone()

        def put(x, at):
            x.index_copy_(0, at, torch.ones(1, 4))
            return x.sum(0), x.clone()

        for step in add, put:
            torch._dynamo.reset()
            x, at = torch.randn(3, 4), torch.tensor([1])
            compiled = self.compare(step, x, at)
            with torch.no_grad():
                made = compiled(x, at)
            kept = [t.clone() for t in made]
            x.zero_()
            torch.testing.assert_close(list(made), kept)

    def test_given_away(self):
        """What an input becomes is a result, too."""

        def step(x):
            y = x + 1
            x.copy_(y)
            return y

        x = torch.randn(5)
        compiled = self.compare(step, x)
        with torch.no_grad():
            y = compiled(x)
        kept = y.clone()
        x.zero_()
        torch.testing.assert_close(y, kept)

    def test_exchanged(self):
        def step(x, y):
            z = x.clone()
            x.copy_(y)
            y.copy_(z)
            return x - y

        self.compare(step, torch.randn(4), torch.randn(4))

    def test_read_by_another_part(self):
        """What was there is read after the part that computes what is new."""

        def step(x, at):
            new = x.index_copy(0, at, x.new_ones(1, 4))
            found = torch.searchsorted(new[0].sort().values, x)
            old = x * 2 + found
            x.copy_(new)
            return old

        self.compare(step, torch.randn(3, 4), torch.tensor([2]))
        self.assertIn("searchsorted", "".join(backend.said))

    def test_how_it_lies(self):
        """Not row-major, from an odd address, of another type."""

        def step(x, at, new):
            x.index_copy_(0, at, new)
            return x.sum(0)

        at, new = torch.tensor([1]), torch.ones(1, 4)
        base, twin = [torch.arange(64.0) for _ in range(2)]
        compiled = torch.compile(step, backend="hidet")

        def views(t):
            return t[:20].view(4, 5).T, t[1:21].view(5, 4), t.view(8, 8)[:5, :4]

        with torch.no_grad():
            for ours, own in zip(views(base), views(twin)):
                made = compiled(ours, at, new), compiled(ours, at, new)
                torch.testing.assert_close(made[1], step(own, at, new))
                torch.testing.assert_close(base, twin)

        def narrow(x, y):
            x.add_(y).mul_(2)
            return x

        torch._dynamo.reset()
        self.compare(narrow, torch.randn(4).half(), torch.randn(4))

    def test_overlapping(self):
        """Arguments that share memory, one of which changes. (What was compiled
        for one overlap PyTorch's aot_autograd gives for another, whatever the
        backend, and that is wrong.)"""

        def step(x, y):
            x.mul_(2)
            return y + 1

        for start in 0, 2, 4:
            torch._dynamo.reset()
            compiled = torch.compile(step, backend="hidet")
            base, twin = [torch.arange(12.0) for _ in range(2)]
            with torch.no_grad():
                for _ in range(2):
                    made = compiled(base[:6], base[start : start + 6])
                    own = step(twin[:6], twin[start : start + 6])
                    torch.testing.assert_close(made, own)
                    torch.testing.assert_close(base, twin)

    def test_buffer(self):
        """One that changes at each call is no constant."""

        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.register_buffer("n", torch.zeros(4))

            def forward(self, x):
                self.n.add_(1)
                return self.linear(x) * self.n

        own, ours = Counter().eval(), Counter().eval()
        ours.load_state_dict(own.state_dict())
        compiled = torch.compile(ours, backend="hidet")
        with torch.no_grad():
            for _ in range(4):
                x = torch.randn(2, 4)
                torch.testing.assert_close(compiled(x), own(x))
                torch.testing.assert_close(ours.n, own.n)
        self.assertEqual([p.changes for p in self.parts], [0])
        self.assertEqual(len(self.parts[0].built.constants), 2)

    def test_guards_that_watch(self):
        """PyTorch keeps their addresses: they outlive weights and models."""
        dictionaries = {"use_recursive_dict_tags_for_guards": True}
        with mock.patch.multiple(torch._dynamo.config, **dictionaries):
            self.assertEqual(weights.guards_watch(), sys.version_info >= (3, 12))
        told = weights.told_of_changes
        with mock.patch.object(weights, "told_of_changes", set(told)):
            self.check_guards_that_watch()

    def check_guards_that_watch(self):
        before = len(weights.told_of_changes)
        for watch in False, True:
            model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            with mock.patch.object(weights, "guards_watch", lambda: watch):
                self.compare(model, torch.randn(2, 4))
            del model
            self.parts.clear()
            gc.collect()
            after = len(weights.told_of_changes)
            self.assertEqual(after > before, watch)

    def test_sizes_and_report(self):
        """By dimensions; with bounds, and with a report, which asks for what
        was there, they are copied."""

        def step(x, at, new):
            x.index_copy_(0, at, new)
            return x * 2

        for options, stored in (
            ({}, 1),
            ({"buckets": True}, 0),
            ({"correctness_report": True}, 0),
        ):
            torch._dynamo.reset()
            self.parts.clear()
            compiled = torch.compile(
                step, backend="hidet", dynamic=True, options=options
            )
            with torch.no_grad():
                for n in 5, 7, 5:
                    own, ours = [torch.ones(n, 4) for _ in range(2)]
                    rest = torch.tensor([1]), torch.randn(1, 4)
                    made = compiled(ours, *rest)
                    torch.testing.assert_close(made, step(own, *rest))
                    torch.testing.assert_close(ours, own)
            for each in self.parts:
                self.assertEqual(len(each.built.engine.stored), stored)


if __name__ == "__main__":
    unittest.main()
