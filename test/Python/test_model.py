# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hidet.from_onnx() and hidet.compile_text(): numpy in, numpy out."""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

import hidet
from hidet.model import as_buffer
from hidet.runtime import Device, Frozen, Module, Session

DIGITS = pathlib.Path(__file__).parents[2] / "examples" / "digits"
SUM = """
graph main(x: f32[n, 8], y: f32[8]) -> sum, same {
  sum = onnx13.Add(x, y)
  same = onnx13.Equal(x, y)
}
"""


GROWS = """
graph main(past: f32[2, p, 4], x: f32[2, 1, 4]) -> sum, present {
  const axis: i64[1] = [1]
  present = onnx13.Concat(past, x) { axis = 1 }
  sum = onnx13.ReduceSum(present, axis) { keepdims = 0 }
}
"""


def in_threads(work, count):
    """Calls work(0) to work(count - 1), each on a thread of its own."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Folder(unittest.TestCase):
    """Where HIDET_CACHE_DIR says, what is made is kept for other processes."""

    PROGRAM = (
        "import hidet, numpy\n"
        f"m = hidet.compile_text({SUM!r}, device='sim')\n"
        "x = numpy.arange(24, dtype='f4').reshape(3, 8)\n"
        "assert (m(x, x[1])[0] == x + x[1]).all()\n"
    )

    def run_in(self, folder, **size):
        return subprocess.run(
            [sys.executable, "-c", self.PROGRAM],
            env={**os.environ, "HIDET_CACHE_DIR": str(folder), **size},
            capture_output=True,
            text=True,
        )

    def kept(self, folder):
        return {
            p: p.stat().st_mtime_ns
            for p in pathlib.Path(folder).glob("??/*")
        }

    def test_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_in(folder).returncode, 0)
            first = self.kept(folder)
            self.assertTrue(first)
            self.assertEqual(self.run_in(folder).returncode, 0)
            second = self.kept(folder)
            # Nothing is new, and the plan was asked for again.
            self.assertEqual(first.keys(), second.keys())
            self.assertNotEqual(first, second)

    def test_size(self):
        with tempfile.TemporaryDirectory() as folder:
            none = self.run_in(folder, HIDET_CACHE_SIZE="0")
            self.assertEqual((none.returncode, none.stderr), (0, ""))
            self.assertFalse(self.kept(folder))
            bad = self.run_in(folder, HIDET_CACHE_SIZE="much")
            self.assertIn("HIDET_CACHE_SIZE", bad.stderr)
            self.assertIn("UsageError", bad.stderr)

    def test_nowhere(self):
        """A home that cannot be written is no reason not to run."""
        self.assertEqual(self.run_in("/dev/null/none").stderr, "")


class Caches(unittest.TestCase):
    def test_grows(self):
        """What is left out of a call is what the last one left, on the device;
        integers have exact sums."""
        model = hidet.compile_text(
            GROWS,
            device="sim",
            buckets={"p": (4, 16)},
            inouts={"past": "present"},
        )
        rows = numpy.arange(160, dtype=numpy.float32).reshape(20, 2, 1, 4)
        with self.assertRaises(hidet.UsageError):
            model(x=rows[0])
        for i, x in enumerate(rows[:16]):
            start = {} if i else {"past": numpy.zeros((2, 0, 4), "f4")}
            total = model(x=x, **start)
            numpy.testing.assert_array_equal(total, rows[: i + 1, :, 0].sum(0))
        numpy.testing.assert_array_equal(
            model.read("present"),
            numpy.concatenate(list(rows[:16]), axis=1),
        )
        self.assertEqual(model.num_compiled, 4)  # 0, 1, to 4, to 16.
        past = numpy.concatenate(list(rows[:7]), axis=1)
        numpy.testing.assert_array_equal(
            model(past, rows[7]), rows[:8, :, 0].sum(0)
        )


class Outputs(unittest.TestCase):
    def test_twice(self):
        """One output twice is two results."""
        model = hidet.compile_text(
            "graph main(x: f32[4]) -> y, y {\n  y = onnx13.Relu(x)\n}", "sim"
        )
        x = numpy.array([-1, 0, 1, 2], "f4")
        for y in (results := model(x)):
            numpy.testing.assert_array_equal(y, numpy.maximum(x, 0))
        self.assertEqual(len(results), 2)


class Onnx(unittest.TestCase):
    def test_digits(self):
        """A trained network gives what numpy computed of it."""
        for device in "sim", "ref":
            model = hidet.from_onnx(DIGITS / "model.onnx", device=device)
            images = numpy.load(DIGITS / "images.npy")
            expected = numpy.load(DIGITS / "expected.npy")
            numpy.testing.assert_allclose(
                model(images), expected, rtol=1e-4, atol=1e-6
            )

    def test_saved(self):
        """One file, loaded and not compiled, gives the same bits."""
        images = numpy.load(DIGITS / "images.npy")[:4]
        model = hidet.load(DIGITS / "model.onnx", device="sim")
        expected = model(images)
        self.assertEqual(model.num_compiled, 1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "digits.hidet"
            model.save(path)
            loaded = hidet.load(path, device="sim")
            anew = hidet.load(path, device="sim", trusted=False)
            for other, compiled in (loaded, 0), (anew, 1):
                numpy.testing.assert_array_equal(other(images), expected)
                self.assertEqual(other.num_compiled, compiled)
            with self.assertRaises(hidet.UsageError):
                hidet.load(path, device="ref").save(path)

    def test_absent(self):
        with self.assertRaisesRegex(hidet.HidetError, "nowhere.onnx"):
            hidet.from_onnx("nowhere.onnx", device="sim")


class Text(unittest.TestCase):
    def setUp(self):
        rng = numpy.random.default_rng(0)
        self.x = rng.standard_normal((3, 8), numpy.float32)
        self.y = self.x[1].copy()
        self.model = hidet.compile_text(SUM, device="sim")

    def test_results(self):
        total, same = self.model(self.x, y=self.y)
        numpy.testing.assert_array_equal(total, self.x + self.y)
        numpy.testing.assert_array_equal(same, self.x == self.y)

    def test_strides(self):
        """What does not lie row-major is read in its own order."""
        x = numpy.asfortranarray(self.x)
        total, _ = self.model(x[::-1], self.y)
        numpy.testing.assert_array_equal(total, self.x[::-1] + self.y)

    def test_other_shapes(self):
        for rows in 1, 0, 5:
            x = numpy.resize(self.x, (rows, 8))
            total, _ = self.model(x, self.y)
            numpy.testing.assert_array_equal(total, x + self.y)

    def test_results_stay(self):
        """A later run does not change what an earlier one gave."""
        first, _ = self.model(self.x, self.y)
        self.model(2 * self.x, self.y)
        numpy.testing.assert_array_equal(first, self.x + self.y)

    def test_threads(self):
        def work(factor):
            for _ in range(20):
                total, _ = self.model(factor * self.x, self.y)
                expected = numpy.float32(factor) * self.x + self.y
                same.append(numpy.array_equal(total, expected))

        same = []
        in_threads(work, 4)
        self.assertEqual(same, [True] * 80)

    def test_sessions(self):
        """Sessions of one model, each on a thread, with shapes that are new."""
        module = Module.parse(SUM)
        model, device = Frozen(module), Device(module.context, "sim")

        def work(rows):
            session = Session(model, device)
            for n in rows, 5, rows, 9:
                x = numpy.resize(self.x, (n, 8)) + numpy.float32(rows)
                total = session.run(
                    [as_buffer(x), as_buffer(self.y)], [None, None]
                )[0]
                made = numpy.frombuffer(total.owner, "f4").reshape(n, 8)
                same.append(numpy.array_equal(made, x + self.y))

        same = []
        in_threads(work, 4)
        self.assertEqual(same, [True] * 16)

    def test_values(self):
        self.assertEqual(
            repr(self.model),
            "<hidet.Model (x: f32[?, 8], y: f32[8]) -> "
            "sum: ?[..], same: ?[..] on sim>",
        )

    def test_wrong_calls(self):
        for arrays, named, message in (
            ((self.x,), {}, "input 'y' is not given"),
            ((self.x, self.y, self.y), {}, "3 arrays for 2 inputs"),
            ((self.x,), {"z": self.y}, "no input 'z'; there are x, y"),
            ((self.x,), {"x": self.y}, "input 'x' is given twice"),
            ((self.x.astype("f8"), self.y), {}, "x.*f64"),
            ((self.x[:, :7], self.y), {}, r"x.*\[3, 7\]"),
            ((self.x.astype("c8"), self.y), {}, "complex64"),
        ):
            with self.assertRaisesRegex(hidet.UsageError, message):
                self.model(*arrays, **named)

    def test_wrong_text(self):
        with self.assertRaisesRegex(
            hidet.InvalidError, r"mine.hir:1:34: .*nope"
        ):
            hidet.compile_text(
                "graph main(x: f32[3]) -> y { y = nope(x) }", name="mine.hir"
            )
        with self.assertRaisesRegex(hidet.UnsupportedError, "RandomNormal"):
            hidet.compile_text(
                "graph main() -> y {\n  y = onnx13.RandomNormal()"
                " { shape = [2] }\n}",
                device="sim",
            )()

    def test_many(self):
        """What is dropped is given back."""
        for _ in range(50):
            model = hidet.compile_text(SUM, device="sim")
            model(self.x, self.y)


class Tools(unittest.TestCase):
    def run_tool(self, *words):
        return subprocess.run(
            [sys.executable, "-m", "hidet", *words],
            capture_output=True,
            text=True,
        )

    def test_tools(self):
        done = self.run_tool("opt", "--version")
        self.assertRegex(done.stdout, r"^hidet-opt \d")
        done = self.run_tool("run", str(DIGITS / "model.onnx"), "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_tool("run", "nowhere.onnx")
        self.assertIn("nowhere.onnx", done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def test_usage(self):
        for words in (), ("walk",):
            done = self.run_tool(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: python -m hidet", done.stdout)


class Library(unittest.TestCase):
    def load(self, path):
        code = "from hidet._library import library; library()"
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "HIDET_LIBRARY": str(path)},
            capture_output=True,
            text=True,
        ).stderr

    def test_absent(self):
        self.assertIn(
            "looked at /nowhere/libhidet.so", self.load("/nowhere/libhidet.so")
        )

    def test_other(self):
        """A library that is not ours, or of another version."""
        other = next(pathlib.Path("/lib").glob("*/libm.so.6"), None)
        if other is None:
            self.skipTest("no /lib/*/libm.so.6")
        self.assertIn("libm.so.6 is of another version", self.load(other))


if __name__ == "__main__":
    unittest.main()
