# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(backend="hidet") on CPU tensors, that is on the simulator,
against PyTorch's own results."""

import gc
import logging
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
import weakref

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet
import hidet.torch
from hidet.torch import backend, part, sizes, table, text
from torch import nn


class Parts:
    """Counts the parts that are made, and keeps their texts."""

    def __init__(self):
        self.made = []
        self.init = part.Part.__init__

    def __enter__(self):
        def init(this, *arguments):
            self.init(this, *arguments)
            self.made.append(this)

        part.Part.__init__ = init
        return self

    def __exit__(self, *_):
        part.Part.__init__ = self.init


class Backend(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        backend.said.clear()
        hidet.torch.dynamo_config.reset()

    def compare(self, function, *inputs, parts=1, **options):
        """The same results as PyTorch's, from so many parts; twice."""
        with torch.no_grad(), Parts() as found:
            compiled = torch.compile(function, backend="hidet", **options)
            for _ in range(2):
                own = function(*[x.clone() for x in inputs])
                made = compiled(*[x.clone() for x in inputs])
                torch.testing.assert_close(made, own)
                strides = torch.utils._pytree.tree_map(
                    lambda t: t.stride() if torch.is_tensor(t) else t,
                    (made, own),
                )
                self.assertEqual(*strides)
        self.assertEqual(len(found.made), parts)
        return found.made

    def test_network(self):
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(8 * 16, 10),
        ).eval()
        self.compare(model, torch.randn(2, 3, 8, 8))

    def test_types(self):
        def function(x):
            return torch.nn.functional.gelu(x @ x.T), x.sum(1), x * 0.3 + 1

        for dtype in (
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.float64,
        ):
            self.compare(function, torch.randn(5, 7).to(dtype))

    def test_numbers_outside(self):
        """Numbers that an integer type does not hold wrap; hypot's squares
        do not overflow."""
        self.compare(
            lambda x: (x + 300, x * -1000, 260 - x),
            torch.arange(0, 250, 10).byte(),
        )
        self.compare(
            lambda x: (x + 200, x - 200, x * 1000),
            torch.arange(-120, 120, 10).to(torch.int8),
        )
        most = torch.inf
        x = torch.tensor([1e30, 1e-30, 3.0, -most, most, 0.0, -0.0])
        y = torch.tensor([1e30, 2e-30, -4.0, 1.0, torch.nan, 0.0, 3e38])
        self.compare(torch.hypot, x, y)
        self.compare(torch.hypot, x.double() * 1e200, y.double() * 1e200)

    def test_gelu_written_out(self):
        """As models of PyTorch's write it, in numbers that f16 has not: the
        operators of a rule that makes one of them (gelu_of_tanh_numbers)."""

        def gelu(x):
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
            return 0.5 * x * (1.0 + torch.tanh(inner))

        self.compare(gelu, torch.randn(50))
        torch._dynamo.reset()
        x = torch.randn(50).half()
        with torch.no_grad(), Parts() as found:
            made = torch.compile(gelu, backend="hidet")(x)
        torch.testing.assert_close(made, gelu(x), rtol=4e-3, atol=1e-4)
        used = re.findall(r"= (\w+)\([xt]\d", found.made[0].text)
        self.assertEqual(
            sorted(used[:-1]),
            "add add mul mul mul mul mul_number mul_number tanh".split(),
        )

    def test_windows_of_nan(self):
        x = torch.randn(1, 2, 6, 6)
        x[0, 0, 1, 2] = torch.nan
        x[0, 1] = -torch.inf
        x[0, 1, 5, 5] = torch.nan
        with torch.no_grad():
            for pad in 0, 1:
                pool = nn.MaxPool2d(3, 2, pad)
                made = torch.compile(pool, backend="hidet")(x)
                torch.testing.assert_close(made, pool(x), equal_nan=True)

    def test_attention_of_no_keys(self):
        """A query that sees no key has 0."""
        see = torch.rand(2, 1, 7, 5) < 0.5
        see[0, 0, 3] = see[1] = False
        add = torch.zeros(7, 5).masked_fill(see[0, 0].logical_not(), -torch.inf)
        q, k = torch.randn(2, 3, 7, 8), torch.randn(2, 3, 5, 8)
        attention = nn.functional.scaled_dot_product_attention
        for mask in see, see[1, 0, 0], add:
            mask = mask.expand(*mask.shape[:-2], 7, 5)
            self.compare(lambda q, k, m: attention(q, k, k, m), q, k, mask)

    def test_strides(self):
        """Inputs and results that do not lie row-major."""
        x = torch.randn(4, 6, 5).transpose(0, 2)
        self.compare(lambda x: (x.transpose(0, 1) + 1, x.exp()), x)
        x = torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last)
        self.compare(nn.Conv2d(4, 4, 3).eval(), x)
        self.compare(lambda x: x[1:, ::2] * 2, torch.randn(5, 9))
        self.compare(lambda x: x + 1, torch.randn(9)[1:])

        def function(x):
            return (x + 1).expand(4, 3), (x[0] * 2).expand(2, 5, 3)

        self.compare(function, torch.randn(1, 3))

        def function(x):
            y = (x + 1).t()
            z = torch.as_strided(x * 3, (2, 2, 3), (1, 2, 1)) + 1
            return (
                z,
                torch.as_strided(x * 2, (3, 2), (1, 3)),
                y.as_strided((2, 3), (1, 2)),
            )

        self.compare(function, torch.randn(2, 3))

    def test_results(self):
        """What is an input, a view of one, a constant, or given twice."""

        def function(x):
            y = x + 1
            return y, y, x, x[0], torch.ones(3), y.T, 3

        self.compare(function, torch.randn(3, 3))

    def test_mutation(self):
        """Inputs and buffers that change in place."""

        def function(x, cache):
            cache[1] = x.sum(0)
            x.mul_(2)
            return x + cache

        self.compare(function, torch.randn(3, 4), torch.zeros(3, 4))

        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("n", torch.zeros(2))

            def forward(self, x):
                self.n.add_(x)
                return self.n * x

        own, ours = Counter(), Counter()
        compiled = torch.compile(ours, backend="hidet")
        x = torch.tensor([1.0, 2.0])
        with torch.no_grad():
            for _ in range(4):
                torch.testing.assert_close(compiled(x), own(x))
        torch.testing.assert_close(ours.n, own.n)

    def test_weights_change(self):
        """In place, by another tensor, or by loading."""
        model = nn.Linear(4, 3).eval()
        compiled = torch.compile(model, backend="hidet")
        x = torch.randn(2, 4)
        other = nn.Linear(4, 3)

        def replaced():
            model.weight = nn.Parameter(torch.randn(3, 4))

        changes = (
            lambda: None,
            lambda: model.weight.mul_(2),
            lambda: model.load_state_dict(other.state_dict()),
            replaced,
            lambda: model.bias.zero_(),
        )
        with torch.no_grad():
            for change in changes:
                change()
                torch.testing.assert_close(compiled(x), model(x))

    def test_other_sizes(self):
        """A size that changes becomes symbolic; each is compiled for itself."""
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).eval()
        compiled = torch.compile(model, backend="hidet")
        dynamic = torch.compile(
            lambda x: x.reshape(-1, x.shape[0]).sum(0) * x.shape[1],
            backend="hidet",
            dynamic=True,
        )
        with torch.no_grad():
            for n in 2, 5, 3, 5:
                x = torch.randn(n, 4)
                torch.testing.assert_close(compiled(x), model(x))
                own = x.reshape(-1, n).sum(0) * 4
                torch.testing.assert_close(dynamic(x), own)

    def test_views_of_inputs(self):
        """With sizes that are symbols, too, a result that is a view of an input
        begins where it should, also where the input begins elsewhere."""

        def function(x):
            half = x.shape[0] // 2
            rows = x[half:]
            return rows, x.T[1], x.narrow(0, half, 2).T, rows * 2

        compiled = torch.compile(function, backend="hidet", dynamic=True)
        base = torch.arange(96.0)
        with torch.no_grad():
            for n, start in (5, 0), (8, 0), (5, 16), (8, 32):
                x = base[start : start + 4 * n].view(n, 4)
                for got, own in zip(compiled(x), function(x)):
                    torch.testing.assert_close(got, own, rtol=0, atol=0)
                    self.assertEqual(got.stride(), own.stride())

    def test_not_ours(self):
        """An operator that nobody knows runs in PyTorch, and is named once."""

        def function(x):
            y = (x + 1).relu()
            z = torch.linalg.inv(y @ y.T + 5 * torch.eye(3))
            return z.sum(1) * 2

        with self.assertLogs("hidet.torch", logging.WARNING) as logs:
            self.compare(function, torch.randn(3, 3), parts=2)
        text = "\n".join(logs.output)
        self.assertEqual(text.count("aten.linalg_inv_ex.default runs"), 1)

    def test_dead_code(self):
        """What nobody asks for is no reason to leave anything to PyTorch."""

        def function(x):
            values, places = torch.ops.aten.max_pool2d_with_indices(x, 2)
            torch.linalg.inv(x[0, 0] + 9 * torch.eye(4))
            return values + 1

        made = self.compare(function, torch.randn(1, 2, 4, 4))
        self.assertIn("MaxPool", made[0].text)

    def test_sorts(self):
        """Rows that pass a block, bools, ties, from either end."""
        x = torch.randn(2, 5000, 2).mul(4).round()
        x[0, ::7] = torch.inf
        for values in x, x > 0, x.to(torch.int16):
            for descending in False, True:
                torch._dynamo.reset()
                self.compare(
                    lambda v, d=descending: torch.sort(
                        v, stable=True, dim=1, descending=d
                    ),
                    values,
                )
        torch._dynamo.reset()
        self.compare(lambda v: torch.topk(v, 3, dim=1).values, x)

    def test_between(self):
        """A part after what PyTorch does with a part's several results."""

        def function(x, y):
            values, _ = torch.sort(x)
            at = torch.searchsorted(values, y)
            return values[torch.where(at < 5, at, 0)] == y

        self.compare(function, torch.randn(5), torch.randn(4), parts=2)

    def test_outside(self):
        """A place outside of a tensor is an error, as it is PyTorch's."""
        w = torch.arange(12.0).reshape(3, 4)
        for function in (
            lambda at: w[at] + 0,
            lambda at: w[:, at] + 0,
            lambda at: w[at - at, at] + 0,
            lambda at: torch.zeros(4).index_add(0, at.abs(), torch.ones(2)),
            lambda at: torch.zeros(4).index_put((at,), torch.ones(2)),
        ):
            torch._dynamo.reset()
            self.compare(function, torch.tensor([1, -2]))
            for wrong in [0, 4], [-5, 0]:
                torch._dynamo.reset()
                compiled = torch.compile(function, backend="hidet")
                with self.assertRaisesRegex(Exception, "E07|index|out of"):
                    compiled(torch.tensor(wrong))

    def test_from_the_front(self):
        """Where PyTorch takes no place from the end, nor do we."""
        w = torch.arange(12.0).reshape(3, 4)
        row, rows = torch.ones(4), torch.ones(1, 4)
        for function in (
            lambda w, at: nn.functional.embedding(at, w),
            lambda w, at: w.index_select(0, at),
            lambda w, at: w.index_add(0, at, rows),
            lambda w, at: w.index_copy(0, at, rows),
            lambda w, at: w.gather(0, at.expand(1, 4)),
            lambda w, at: w[0].gather(0, at[0]),
            lambda w, at: w.scatter(0, at.expand(1, 4), rows),
            lambda w, at: w.scatter(0, at.expand(1, 2), 1.0),
            lambda w, at: w.scatter_add(0, at.expand(1, 4), rows),
            lambda w, at: row.scatter_reduce(0, at, row, "amax"),
        ):
            torch._dynamo.reset()
            self.compare(function, w, torch.tensor([2]))
            compiled = torch.compile(function, backend="hidet")
            for wrong in -1, -3, 4:
                at = torch.tensor([wrong])
                with self.assertRaises((IndexError, RuntimeError)) as own:
                    function(w, at)
                kinds = type(own.exception), hidet.InvalidError
                with self.assertRaises(kinds):
                    compiled(w, at)

    def test_complex(self):
        """Types that we have not stay PyTorch's."""

        def function(x):
            z = torch.fft.fft(x)
            return (z * z.conj()).real + 1

        self.compare(function, torch.randn(8))

    def test_random(self):
        """What draws numbers is PyTorch's."""

        def function(x):
            return torch.rand(4) * 0 + x * 2

        self.compare(function, torch.randn(4))

    def test_training(self):
        """Graphs that gradients are asked of are PyTorch's."""
        model = nn.Linear(4, 3)
        compiled = torch.compile(model, backend="hidet")
        x = torch.randn(2, 4)
        with (
            self.assertLogs("hidet.torch", logging.WARNING) as logs,
            Parts() as p,
        ):
            compiled(x).sum().backward()
        self.assertIn("training", logs.output[0])
        self.assertEqual(len(p.made), 0)
        own = torch.autograd.grad(model(x).sum(), model.weight)[0]
        torch.testing.assert_close(model.weight.grad, own)

    def test_inference_mode(self):
        model = nn.Linear(4, 3)
        compiled = torch.compile(model, backend="hidet")
        with torch.inference_mode():
            for _ in range(2):
                x = torch.randn(2, 4)
                torch.testing.assert_close(compiled(x), model(x))

    def test_nothing(self):
        """Tensors without elements or axes."""
        self.compare(lambda x: (x + 1).sum(0), torch.randn(0, 3))
        self.compare(lambda x: x * 2 + x.abs(), torch.tensor(-3.0))
        self.compare(
            lambda x, at: x.gather(0, at) + 1,
            torch.randn(5),
            torch.zeros(2, 0, dtype=torch.long),
        )

        def function(x):
            return torch.cat([torch.tensor([]), x])

        self.compare(function, torch.randn(3))

    def test_threads(self):
        """Of one size; of many, which are compiled beside other calls."""
        for sizes in 1, 6:
            with self.subTest(sizes=sizes):
                self.call_from_threads(sizes)

    def call_from_threads(self, sizes):
        torch._dynamo.reset()
        model = nn.Sequential(
            nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)
        ).eval()
        compiled = torch.compile(model, backend="hidet")
        with torch.no_grad():
            compiled(torch.randn(3, 4))
        faults = []

        def work():
            with torch.no_grad():
                for i in range(12):
                    x = torch.randn(3 + i % sizes, 4)
                    try:
                        torch.testing.assert_close(compiled(x), model(x))
                    except Exception as fault:
                        faults.append(fault)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])

    def test_one_thread_compiles(self):
        """What is compiled anew, for weights that changed and for other sizes,
        one thread makes for all that want it."""
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU()).eval()
        faults, made, engine = [], [], part.Engine

        def slow(*arguments):
            made.append(engine(*arguments))
            time.sleep(0.2)
            return made[-1]

        def work(ready, x):
            with torch.no_grad():
                ready.wait()
                try:
                    torch.testing.assert_close(compiled(x), model(x))
                except Exception as fault:
                    faults.append(fault)

        def run(x):
            ready = threading.Barrier(4)
            threads = [
                threading.Thread(target=work, args=(ready, x))
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        part.Engine = slow
        try:
            with Parts() as found, torch.no_grad():
                compiled = torch.compile(model, backend="hidet", dynamic=True)
                compiled(torch.randn(3, 4))
                model[0].weight.mul_(2)
                run(torch.randn(3, 4))
                counts = [(len(found.made), len(made))]
                run(torch.randn(5, 4))
                counts.append((len(found.made), len(made)))
        finally:
            part.Engine = engine
        self.assertEqual(faults, [])
        self.assertEqual(counts, [(1, 2), (2, 3)])

    def test_many_sizes(self):
        """Of many sets of sizes those are kept that came last; what is dropped
        leaves nothing, and is right when it comes again."""
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
        model = model.eval()
        sizes = [2, 3, 4, 2, 5, 6, 2, 3]  # 2 stays; 3 has been dropped.
        most, kept = backend.Compiled.MOST_SIZES, []
        backend.Compiled.MOST_SIZES = 3
        try:
            with Parts() as found, torch.no_grad():
                compiled = torch.compile(model, backend="hidet", dynamic=True)
                for size in sizes:
                    x = torch.randn(size, 4)
                    torch.testing.assert_close(compiled(x), model(x))
                    kept = [weakref.ref(p.built.engine) for p in found.made]
                self.assertEqual(len(found.made), 6)
                found.made.clear()
            gc.collect()
            alive = [ref() is not None for ref in kept]
            self.assertEqual(alive, [True, False, False, False, True, True])
        finally:
            backend.Compiled.MOST_SIZES = most

    def versions_of(self, function, inputs):
        """How many sets of sizes, models and different texts there are after
        calls with these, each right."""
        made, init = [], backend.Compiled.__init__

        def keep(this, *arguments):
            init(this, *arguments)
            made.append(this)

        backend.Compiled.__init__ = keep
        try:
            with torch.no_grad(), Parts() as found:
                compiled = torch.compile(
                    function, backend="hidet", dynamic=True
                )
                for given in inputs:
                    torch.testing.assert_close(
                        compiled(*given), function(*given)
                    )
        finally:
            backend.Compiled.__init__ = init
        (only,) = made
        texts = {p.text for p in found.made}
        return len(only.versions), len(only.models.made), len(texts)

    def test_one_model_for_all_sizes(self):
        """Twenty lengths are one text, one model and one copy of weights."""

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.Embedding(50, 16)
                self.places = nn.Embedding(64, 16)
                self.norm, self.qkv = nn.LayerNorm(16), nn.Linear(16, 48)
                self.out, self.up = nn.Linear(16, 16), nn.Linear(16, 32)
                self.down = nn.Linear(32, 16)

            def forward(self, x):
                b, n = x.shape
                h = self.words(x) + self.places(torch.arange(n))
                q, k, v = (
                    t.view(b, n, 2, 8).transpose(1, 2)
                    for t in self.qkv(self.norm(h)).chunk(3, -1)
                )
                a = nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=True
                )
                h = h + self.out(a.transpose(1, 2).reshape(b, n, 16))
                return h + self.down(nn.functional.gelu(self.up(h)))

        model = Block().eval()
        inputs = [(torch.randint(0, 50, (2, n)),) for n in range(5, 25)]
        self.assertEqual(self.versions_of(model, inputs), (20, 1, 1))

    def test_growing_cache(self):
        """Two sizes, one of which is made of the other; and one that keys are
        put into."""

        def step(past, new):
            keys = torch.cat([past, new], 1)
            return keys, torch.softmax(new @ keys.transpose(1, 2), -1) @ keys

        past, inputs = torch.randn(2, 3, 8), []
        for _ in range(6):
            inputs.append((past, torch.randn(2, 1, 8)))
            past = torch.cat(inputs[-1], 1)
        self.assertEqual(self.versions_of(step, inputs), (6, 1, 1))

        def put(cache, at, new):
            cache = cache.index_copy(1, at, new)
            return torch.softmax(new @ cache.transpose(1, 2), -1) @ cache

        inputs = [
            (torch.zeros(2, 9, 8), torch.arange(3, 3 + n), torch.randn(2, n, 8))
            for n in range(3, 7)
        ]
        self.assertEqual(self.versions_of(put, inputs), (4, 1, 1))

    def test_sizes_by_sizes(self):
        """Halves, products, and what depends on a size in another way has a
        text for each."""

        def function(x):
            n = x.shape[0]
            half = x[: n // 2] * 2
            return half, x.reshape(-1), torch.arange(n * 2), x.new_ones(n + 1)

        inputs = [(torch.randn(n, 6),) for n in range(4, 9)]
        self.assertEqual(self.versions_of(function, inputs), (5, 1, 1))

        def scaled(x):  # Floats of sizes are tensors for PyTorch here.
            return x * (2.0 / x.shape[0])

        inputs = [(torch.randn(n, 6),) for n in range(4, 9)]
        self.assertEqual(self.versions_of(scaled, inputs)[0], 5)
        self.assertEqual(backend.said, set())

        inputs = [(torch.randn(n),) for n in range(4, 9)]
        found = self.versions_of(lambda x: x.flip(0).cumsum(0) / len(x), inputs)
        self.assertEqual(found[0], 5)

    def test_refused_by_dimensions(self):
        """What is wrong by dimensions, which is a fault of ours, is said, and
        compiled by numbers."""
        write = text.size_text

        def broken(value, known):
            made = write(value, known)
            return made if made.isdigit() else f"{made} +"

        text.size_text = broken
        try:
            with self.assertLogs("hidet.torch", logging.WARNING) as logs:
                inputs = [(torch.randn(n, 4),) for n in range(3, 5)]
                found = self.versions_of(lambda x: x.exp() + 1, inputs)
        finally:
            text.size_text = write
        self.assertEqual(found, (2, 2, 2))
        self.assertIn("compiled for its sizes alone", logs.output[0])

    def test_whole(self):
        """What does not wait for PyTorch is one part, connected or not; what
        does is not in it."""

        def apart(x, y):
            return x.relu(), torch.zeros(3) + 1, y.sin().t()

        def between(x, y):
            return torch.searchsorted(x[0].sort().values, y) * 2, y.cos()

        given = torch.randn(4, 5), torch.randn(4, 5)
        for function, parts in (apart, 1), (between, 2):
            torch._dynamo.reset()
            with torch.no_grad(), Parts() as found:
                made = torch.compile(function, backend="hidet")(*given)
            self.assertEqual(len(found.made), parts)
            torch.testing.assert_close(made, function(*given))

    def test_numbers_for_symbols(self):
        """What nodes are by PyTorch's symbols is what they give for tensors of
        those sizes: types, shapes, strides and where they begin."""

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
                self.mix = nn.Linear(4, 8)

            def forward(self, x):
                y = self.conv(x).flatten(2).transpose(1, 2)
                z = self.mix(y)[:, 1:].unflatten(-1, (2, 4))
                a, b = z.transpose(1, 2).chunk(2, dim=-1)
                weights = (a @ b.mT).softmax(-1)
                weights = weights.tril().masked_fill(weights > 0.9, 0)
                top, at = weights.flatten(1).topk(2)
                return weights, top, at, x[:, :, ::2].sum(-1, keepdim=True)

        def describe(value):
            if isinstance(value, (list, tuple)):
                return list(map(describe, value))
            if not isinstance(value, torch.Tensor):
                return value
            place = value.stride(), value.storage_offset()
            return value.dtype, value.device, value.shape, *place

        checked = []
        with_sizes = backend.with_sizes

        def compare(graph, arguments):
            found = with_sizes(graph, arguments)
            value = sizes.Fakes.value
            sizes.Fakes.value = lambda *_: None
            try:
                expected = with_sizes(graph, arguments)
            finally:
                sizes.Fakes.value = value
            pairs = zip(found.graph.nodes, expected.graph.nodes, strict=True)
            for one, other in pairs:
                self.assertEqual(one.target, other.target)
                self.assertEqual(one.meta.get("sizes"), other.meta.get("sizes"))
                checked.append(describe(one.meta["val"]))
                self.assertEqual(checked[-1], describe(other.meta["val"]))
            return found

        network = Network().eval()
        inputs = [(torch.randn(n, 3, h, 10),) for n, h in ((2, 8), (3, 11))]
        backend.with_sizes = compare
        try:
            self.versions_of(network, inputs)
        finally:
            backend.with_sizes = with_sizes
        self.assertGreater(len(checked), 30)

    def test_size_as_a_word(self):
        """What wraps at 2^64 is as it is, where it does not."""
        n = sizes.Size(5, "n", frozenset(["n"]))
        self.assertEqual(((n - 1) % (1 << 64)).text, "(n - 1)")
        self.assertEqual((0 - n) % (1 << 64), (1 << 64) - 5)
        self.assertEqual((n % 3).text, "(n % 3)")

    def test_weights_of_several_models(self):
        """Where sizes have models of their own, fewer are kept."""
        most = backend.Compiled.MOST_BYTES
        backend.Compiled.MOST_BYTES = 1
        said = backend.sizes_of_value
        backend.sizes_of_value = lambda *_: None
        try:
            inputs = [(torch.randn(n, 4),) for n in range(3, 8)]
            found = self.versions_of(nn.Linear(4, 3).eval(), inputs)
        finally:
            backend.Compiled.MOST_BYTES = most
            backend.sizes_of_value = said
        self.assertEqual((found[0], found[2]), (2, 5))

    def test_dropped(self):
        """A model that nobody has any more leaves nothing of its own."""
        kept = []
        for _ in range(5):
            with Parts() as found, torch.no_grad():
                model = nn.Linear(4, 3).eval()
                torch.compile(model, backend="hidet")(torch.randn(2, 4))
            kept += [weakref.ref(p.built.engine) for p in found.made]
            del model, found
            torch._dynamo.reset()
        gc.collect()
        self.assertEqual([ref() for ref in kept], [None] * 5)

    def test_windows_that_are_longer(self):
        """Than what they are of, as PyTorch has them where sizes are rounded
        up."""
        for pool, x in (
            (nn.AvgPool2d(9, ceil_mode=True), torch.randn(1, 3, 2, 5)),
            (nn.AvgPool2d(9, padding=2, ceil_mode=True), torch.randn(1, 3, 4, 5)),
            (
                nn.AvgPool1d(7, padding=1, ceil_mode=True, count_include_pad=False),
                torch.randn(2, 3, 4),
            ),
            (nn.MaxPool2d(9, 2, ceil_mode=True), torch.randn(1, 3, 8, 9)),
        ):
            torch._dynamo.reset()
            (made,) = self.compare(pool.eval(), x)
            self.assertEqual(made.refused, "")
        torch._dynamo.reset()
        holes = nn.MaxPool2d(4, 3, dilation=3, ceil_mode=True).eval()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.compare(holes, torch.randn(1, 3, 8, 9), parts=0)

    def test_numbers_that_a_run_knows(self):
        """Elements of tensors as numbers: asserted, computed with, and given;
        as a size, they are PyTorch's with all that has it."""

        def asserts(x, n):
            torch._check(n.max().item() <= x.shape[0])
            return x.tanh() * 2

        def counts(x, n):
            return x.exp() * n[0].item() + 1, n.sum().item() + 2

        def sizes(x, n):
            size = n[1].item()
            torch._check(size >= 2)
            torch._check(size <= x.shape[0])
            return x.tanh().narrow(0, 0, size) * 2

        x, n = torch.randn(4, 3), torch.tensor([2, 3])
        config = torch._dynamo.config
        with config.patch(capture_scalar_outputs=True), torch.no_grad():
            for function in asserts, counts, sizes:
                torch._dynamo.reset()
                with Parts() as found:
                    run = torch.compile(
                        function, backend="hidet", fullgraph=True
                    )
                    for more in 0, 1:
                        made = run(x + more, n + more)
                        own = function(x + more, n + more)
                        torch.testing.assert_close(made, own)
                self.assertTrue(found.made)
                if function is asserts:
                    self.assertRaises(RuntimeError, run, x, n + 9)

    def test_fault_of_the_table(self):
        """A row that breaks is no reason to break a model."""
        op = torch.ops.aten.exp.default
        row = table.table()[op]

        def broken(*_):
            raise IndexError("row")

        table.table()[op] = broken
        try:
            with self.assertLogs("hidet.torch", logging.WARNING) as logs:
                self.compare(lambda x: x.exp() + 1, torch.randn(3))
        finally:
            table.table()[op] = row
        self.assertIn(
            "aten.exp.default runs in PyTorch: a fault", logs.output[0]
        )

    def test_refused_by_the_compiler(self):
        """What the table takes and the compiler does not runs in PyTorch; what
        the table says and is no graph is an error."""
        engine = part.Engine

        def run(kind):
            def refuse(*_):
                raise kind("not today")

            torch._dynamo.reset()
            part.Engine = refuse
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    self.compare(lambda x: x.exp() + 1, torch.randn(3))
            finally:
                part.Engine = engine
            return [str(w.message) for w in caught if "hidet" in str(w.message)]

        texts = run(hidet.UnsupportedError)
        self.assertEqual(len(texts), 1)
        self.assertRegex(texts[0], r"aten.exp.default.*not today")
        with self.assertRaisesRegex(Exception, "not today"):
            run(hidet.InvalidError)


class Folder(unittest.TestCase):
    """torch.compile keeps what it makes, and another process finds it."""

    PROGRAM = """
import hidet.torch, torch
torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU()).eval()
x = torch.randn(4, 8)
with torch.no_grad():
    y = torch.compile(m, backend="hidet")(x)
    torch.testing.assert_close(y, m(x), rtol=1e-4, atol=1e-4)
"""

    def kept(self, folder):
        subprocess.run(
            [sys.executable, "-c", self.PROGRAM],
            env={**os.environ, "HIDET_CACHE_DIR": folder},
            check=True,
        )
        return {
            p: p.stat().st_mtime_ns
            for p in pathlib.Path(folder).glob("??/*")
        }

    def test_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = self.kept(folder), self.kept(folder)
        self.assertTrue(first)
        self.assertEqual(first.keys(), second.keys())
        self.assertNotEqual(first, second)


class Options(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        hidet.torch.dynamo_config.reset()
        self.x = torch.randn(3)

    def run_with(self, **options):
        compiled = torch.compile(
            lambda x: x.exp() + 1, backend="hidet", **options
        )
        torch.testing.assert_close(compiled(self.x), self.x.exp() + 1)

    def test_config(self):
        hidet.torch.dynamo_config.use_tensor_core(True)
        hidet.torch.dynamo_config.search_space(2).parallel_build(False)
        hidet.torch.dynamo_config.use_cuda_graph(False)
        self.run_with()

    def test_modes(self):
        most = "max-autotune"
        for mode in "default", "reduce-overhead", most, most + "-no-cudagraphs":
            torch._dynamo.reset()
            self.run_with(mode=mode)

    def test_dump(self):
        with tempfile.TemporaryDirectory() as folder:
            hidet.torch.dynamo_config.dump_graph_ir(folder)
            self.run_with()
            text = (pathlib.Path(folder) / "graph_0.hir").read_text()
        self.assertIn("= exp(x1)", text)
        run = hidet.compile_text(text, device="ref")
        torch.testing.assert_close(
            torch.from_numpy(run(self.x.numpy()).copy()), self.x.exp() + 1
        )

    def test_wrong(self):
        config = hidet.torch.dynamo_config
        with self.assertRaisesRegex(
            hidet.UsageError, "search_space is 0, 1 or"
        ):
            config.search_space(3)
        with self.assertRaisesRegex(hidet.UnsupportedError, "use_fast_math"):
            config.use_fast_math()
        with self.assertRaisesRegex(Exception, "no option 'speed'"):
            self.run_with(options={"speed": 9})


if __name__ == "__main__":
    unittest.main()
