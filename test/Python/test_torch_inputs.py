# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled model may be given that it was not compiled for, on the
simulator: the answer is PyTorch's, or an error."""

import copy
import gc
import sys
import threading
import unittest
import weakref
from unittest import mock

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

import hidet
import hidet.torch
from hidet.torch import backend, divide, engine, part, watched, weights
from torch import nn


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)
    ).eval()


class Inputs(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        backend.said.clear()
        hidet.torch.dynamo_config.reset()
        grad = torch.no_grad()
        grad.__enter__()
        self.addCleanup(grad.__exit__, None, None, None)

    def check(self, compiled, function, *inputs):
        made = compiled(*[x.clone() for x in inputs])
        torch.testing.assert_close(made, function(*inputs))

    def keep_built(self):
        """The parts that are built from now on, each time."""
        made = []
        build = part.Part.build

        def keep(this, tensors):
            made.append(this)
            return build(this, tensors)

        patch = mock.patch.object(part.Part, "build", keep)
        patch.start()
        self.addCleanup(patch.stop)
        return made

    def test_sizes_of_data(self):
        """What has one is PyTorch's, not what is before it, nor behind it where
        sizes are known again."""

        def choose(x, w):
            y = torch.tanh(x @ w)
            rows = y[y[:, 0] > 0]
            return torch.relu(rows.sum(0) @ w), rows * 2, (x + 1).nonzero()

        for dynamic in False, True:
            torch._dynamo.reset()
            backend.said.clear()
            compiled = torch.compile(
                choose, backend="hidet", fullgraph=True, dynamic=dynamic
            )
            with torch.no_grad():
                for n in (6, 6, 9) if dynamic else (6, 6):
                    given = torch.randn(n, 4), torch.randn(4, 4)
                    torch.testing.assert_close(compiled(*given), choose(*given))
            said = "".join(backend.said)
            for name in "index.Tensor", "mul.Tensor", "nonzero.default":
                reason = f"aten.{name} runs in PyTorch: its sizes depend on data"
                self.assertIn(reason, said)
            for name in "mm.default", "tanh", "relu", "add.Tensor":
                self.assertNotIn(f"aten.{name}", said)

    def test_other_types(self):
        def function(x):
            return x * 2 + x.abs()

        compiled = torch.compile(function, backend="hidet")
        for dtype in (
            torch.float32,
            torch.float16,
            torch.int64,
            torch.uint8,
            torch.bfloat16,
            torch.complex64,  # Runs in PyTorch.
            torch.float32,
        ):
            x = torch.arange(6).to(dtype)
            if dtype != torch.complex64:
                self.check(compiled, function, x)
            else:
                torch.testing.assert_close(compiled(x), function(x))

    def test_other_devices(self):
        """Those that we have not are PyTorch's."""
        model = network()
        compiled = torch.compile(model, backend="hidet")
        x = torch.randn(3, 16)
        self.check(compiled, model, x)
        with self.assertRaisesRegex(Exception, "device"):
            compiled(x.to("meta"))
        function = torch.compile(lambda x: x + 1, backend="hidet")
        self.assertEqual(function(x.to("meta")).device.type, "meta")
        self.check(compiled, model, x)

    def test_sizes_and_bounds(self):
        """Of buckets: 0, 1, 2, those at a bound and beside it, in any order."""
        model = network()
        compiled = torch.compile(
            model, backend="hidet", dynamic=True, options={"buckets": True}
        )
        for n in 5, 8, 9, 1, 16, 17, 2, 0, 3, 33, 5, 7:
            self.check(compiled, model, torch.randn(n, 16))

    def test_sizes_that_are_equal(self):
        """More sizes than a bucket is for, which are one as long as they are
        equal: an executable for all of them."""
        made = []
        init = engine.Engine.__init__

        def keep(this, model, *arguments):
            init(this, model, *arguments)
            made.append(model)

        def function(*xs):
            return [torch.tanh(x) + 1 for x in xs]

        compiled = torch.compile(
            function, backend="hidet", dynamic=True, options={"buckets": True}
        )
        with mock.patch.object(engine.Engine, "__init__", keep):
            for sizes in (range(5, 14), [20] * 9, [27] * 9, range(6, 15)):
                self.check(
                    compiled, function, *(torch.randn(n, 4) for n in sizes)
                )
        self.assertIs(made[1], made[2])
        self.assertIs(made[0], made[3])
        self.assertEqual(made[1].num_compiled, 1)

    def test_how_inputs_lie(self):
        """Expanded, overlapping, turned, with steps and from an odd address;
        by the same compiled code as one that is row-major."""

        def function(x):
            return x.softmax(-1), x.sum(0), x.T + 1

        compiled = torch.compile(function, backend="hidet")
        base = torch.randn(400)
        for x in (
            base[:48].view(6, 8),
            base[:8].expand(6, 8),
            base[:6, None].expand(6, 8),
            torch.as_strided(base, (6, 8), (1, 1)),
            torch.as_strided(base, (6, 8), (3, 2)),
            base[:48].view(8, 6).T,
            base[1:49].view(6, 8),
            base[:192].view(12, 16)[::2, ::2],
            base[:48].view(6, 8).flip(1),
        ):
            made = compiled(x)
            torch.testing.assert_close(made, function(x))
            torch.testing.assert_close(compiled(x), made)

    def test_weights_that_change(self):
        """What was packed or computed of weights in advance is not used for
        others; other models with the same code keep their own."""
        model, other = network(), network()
        compiled = torch.compile(model, backend="hidet")
        beside = torch.compile(other, backend="hidet")
        x = torch.randn(5, 16)
        moved = copy.deepcopy(model).half().float()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            with torch.enable_grad():
                model(x).square().sum().backward()
            optimizer.step()

        def assign():
            weights = {k: v + 1 for k, v in moved.state_dict().items()}
            model.load_state_dict(weights, assign=True)

        def move():
            model[0].weight.data = torch.randn(32, 16)

        self.check(beside, other, x)
        for change in (
            lambda: None,
            lambda: model[0].weight[3].mul_(-2),
            lambda: nn.init.normal_(model[3].bias),
            step,
            lambda: model.load_state_dict(moved.state_dict()),
            assign,
            move,
            lambda: model.double() and model.float(),
        ):
            change()
            self.check(compiled, model, x)
            self.check(beside, other, x)

    def test_weights_are_not_handed_over(self):
        """Dynamo hands over what is left, and a call asks for no more than
        whether weights have changed; also where the model is used twice, a
        weight is, and a result is an input's view."""

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
                self.second.weight = self.first.weight
                self.register_buffer("scale", torch.randn(8))

            def forward(self, x, y):
                return self.second(self.first(x).relu()) * self.scale + y, x[0]

        model = Net().eval()
        given = []
        call = weights.Bound.__call__

        def count(this, *arguments):
            given.append((len(arguments), this.quick is not None))
            return call(this, *arguments)

        x, y = torch.randn(3, 8), torch.randn(8)
        for function, quick in (
            (lambda x, y: model(x, y)[0], True),
            (model, False),
        ):
            torch._dynamo.reset()
            given.clear()
            compiled = torch.compile(function, backend="hidet")
            with mock.patch.object(weights.Bound, "__call__", count):
                for change in (
                    lambda: None,
                    lambda: None,
                    lambda: model.scale.mul_(2),
                    lambda: setattr(model.first.weight, "data", torch.eye(8)),
                    lambda: model.double() and model.float(),
                ):
                    change()
                    self.check(compiled, function, x, y)
            self.assertEqual({n for n, _ in given}, {2})
            # The buffer is another tensor at the end.
            self.assertEqual([was for _, was in given[1:4]], [quick] * 3)

    def test_weights_that_are_others(self):
        """Of modules with the same code, each compiled, and of one whose
        tensors are others at each call: so many are known, and no more."""
        layers = [nn.Linear(8, 8).eval() for _ in range(4)]
        compiled = [
            torch.compile(each.forward, backend="hidet") for each in layers
        ]
        made = []
        init = weights.Bound.__init__

        def keep(this, *arguments):
            init(this, *arguments)
            made.append(this)

        with mock.patch.object(weights.Bound, "__init__", keep):
            for _ in range(2):
                for function, layer in zip(compiled, layers):
                    self.check(function, layer, torch.randn(2, 8))
            self.assertEqual(len(made), weights.MOST_BOUND)
            torch._dynamo.reset()
            for _ in range(6):
                layers[0].weight = nn.Parameter(torch.randn(8, 8))
                self.check(compiled[0], layers[0], torch.randn(2, 8))
            self.assertEqual(len(made), 2 * weights.MOST_BOUND)

    def test_weights_that_nobody_has(self):
        """Of a model that has got others: nothing keeps them. Modules with the
        same code, whose turn it is again, are as right as they were."""
        model, other = network(), network()
        compiled = torch.compile(model, backend="hidet")
        beside = torch.compile(other, backend="hidet")
        x = torch.randn(5, 16)
        for _ in range(4):
            self.check(compiled, model, x)
            self.check(compiled, model, x)
            old = [weakref.ref(weight) for weight in model.parameters()]
            more = {k: v / 2 for k, v in model.state_dict().items()}
            model.load_state_dict(more, assign=True)
            self.check(compiled, model, x)
            self.check(beside, other, x)
            gc.collect()
            self.assertEqual([weight() for weight in old], [None] * len(old))

    def test_models_beside(self):
        """Each with the same code is built once, whichever was called last."""
        made = self.keep_built()
        x = torch.randn(5, 16)
        pairs = []
        for i in range(2):
            model = network()
            pairs.append((torch.compile(model, backend="hidet"), model))
            for _ in range(2):
                for compiled, each in pairs:
                    self.check(compiled, each, x)
            self.assertEqual(len(made), i + 1)

    def test_models_that_are_dropped(self):
        """Nothing is kept of them, and Dynamo compiles those that come later,
        with their weights bound as long as it can be."""
        x = torch.randn(5, 16)
        known, built = [], self.keep_built()
        for _ in range(12):
            model = network()
            compiled = torch.compile(model, backend="hidet")
            self.check(compiled, model, x)
            self.check(compiled, model, x)
            old = [weakref.ref(weight) for weight in model.parameters()]
            del model, compiled
            gc.collect()
            self.assertEqual([weight() for weight in old], [None] * len(old))
            # What has weights as inputs stays, for others.
            kept = [each.built.constants for each in built if each.built]
            self.assertFalse(any(kept))
            known.append(sum(map(len, weights.bound_of.values())))
        self.assertEqual(known, [0] * len(known))
        self.assertGreater(len(set(map(id, built))), weights.MOST_BOUND)

    def test_how_changes_are_seen(self):
        """By libhidet, which asks PyTorch's library, and by Python."""
        functions = watched.functions()
        self.assertIsNotNone(functions)

        def tensors():
            return nn.Parameter(torch.ones(3)), torch.ones(2, 2), torch.ones(5)

        for change in (
            lambda a, _b, _c: a.mul_(2),
            lambda _a, b, _c: b[1].zero_(),
            lambda a, _b, _c: setattr(a, "data", torch.ones(3)),
            lambda _a, _b, c: c.set_(torch.ones(5)),
            lambda _a, _b, c: c.untyped_storage().resize_(1 << 20),
        ):
            for found in functions, None:
                with mock.patch.object(watched, "functions", lambda: found):
                    given = tensors()
                    held = watched.watch(given)
                by_python = held.unchanged == held.by_python
                self.assertEqual(by_python, found is None)
                self.assertTrue(held.unchanged())
                self.assertTrue(held.unchanged())
                change(*given)
                self.assertFalse(held.unchanged())
        self.assertTrue(watched.watch(()).unchanged())

    def test_functions_that_say_something_else(self):
        """Of PyTorch's library: then Python asks."""
        for names in (
            ("no_such_function", watched.NAMES[1]),
            # Never another version, and never the address.
            (watched.NAMES[0], "aoti_torch_device_type_cpu"),
            ("aoti_torch_get_dim", watched.NAMES[1]),
        ):
            with mock.patch.object(watched, "NAMES", names):
                self.assertIsNone(watched.functions.__wrapped__())

    def test_weights_that_change_unseen(self):
        """Where they are no constants."""
        model = network()
        compiled = torch.compile(
            model, backend="hidet", options={"freeze": False}
        )
        x = torch.randn(5, 16)
        for _ in range(3):
            model[0].weight.data.mul_(-1.5)
            self.check(compiled, model, x)

    def test_threads(self):
        """Several models, sizes and changing weights, each of a thread."""
        faults = []
        # Drawn here: threads would draw from one generator in any order.
        models = [network() for _ in range(4)]

        def work(seed):
            # Where PyTorch's mark that somebody traces is a process's.
            torch._dynamo.config.error_on_nested_fx_trace = False
            with torch.no_grad():
                model = models[seed]
                compiled = torch.compile(model, backend="hidet")
                for i in range(8):
                    model[0].bias.add_(i % 3)
                    x = torch.full((2 + (seed + i) % 3, 16), float(seed))
                    try:
                        torch.testing.assert_close(compiled(x), model(x))
                    except Exception as fault:
                        faults.append(fault)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])

    def test_fails_in_the_middle(self):
        """PyTorch's own error, and the next call is right."""

        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.out = nn.Embedding(10, 4), nn.Linear(4, 3)

            def forward(self, at):
                return self.out(self.words(at)).softmax(-1)

        model = Words().eval()
        compiled = torch.compile(model, backend="hidet")
        self.check(compiled, model, torch.tensor([1, 2]))
        for wrong in [3, 10], [-1, 2]:
            with self.assertRaisesRegex(IndexError, "out of range"):
                compiled(torch.tensor(wrong))
            self.check(compiled, model, torch.tensor([9, 0]))

    def test_error_names_operators(self):
        """Where PyTorch has nothing to say of a failure of ours."""
        compiled = torch.compile(lambda x: x.exp() + 1, backend="hidet")
        x = torch.randn(3)
        compiled(x)
        call = part.Engine.__call__

        def broken(*_):
            raise hidet.InvalidError("error[E0708]: an index")

        part.Engine.__call__ = broken
        try:
            with self.assertRaisesRegex(
                hidet.InvalidError, r"E0708(.|\n)*aten\.add.*aten\.exp"
            ):
                compiled(x)
        finally:
            part.Engine.__call__ = call
        torch.testing.assert_close(compiled(x), x.exp() + 1)

    def test_between_that_fails(self):
        """What PyTorch runs between the parts raises what it raises."""

        def function(x):
            y = x * 2 + 1
            return torch.linalg.cholesky(y) * 2

        compiled = torch.compile(function, backend="hidet")
        self.check(compiled, function, 5 * torch.eye(3))
        self.assertIn("cholesky", "".join(divide.said))
        with self.assertRaisesRegex(torch.linalg.LinAlgError, "positive"):
            compiled(-torch.eye(3))


if __name__ == "__main__":
    unittest.main()
