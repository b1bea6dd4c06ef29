# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts assign and call means what it means in Python."""

import itertools
import types
import unittest

import hidet
import numpy
from hidet.lang import (
    atomic_add,
    attr,
    bf16,
    f16,
    f32,
    i32,
    i64,
    release,
    thread,
    u32,
)


class Assignments(unittest.TestCase):
    def test_tuples(self):
        """All values come before the first assignment."""

        @hidet.script
        def fibonacci(x: i32[5], y: i32[3]):
            attr.cuda_block_dim = 1
            a, b = 0, 1
            for i in range(5):
                x[i] = a
                a, b = b, a + b
            x[0], x[4] = x[4], x[0]
            y[0], y[1], y[2] = 1, y[0], y[1]

        x, y = numpy.zeros(5, "i4"), numpy.array([7, 8, 9], "i4")
        fibonacci(x, y)
        self.assertEqual(x.tolist(), [3, 1, 1, 2, 0])
        self.assertEqual(y.tolist(), [1, 7, 8])

    def test_stated(self):
        """A variable whose type is written is assigned to like an element."""

        @hidet.script
        def counts(x: f32[4], y: i64[4], z: i64[4]):
            attr.cuda_block_dim = 1
            whole: i32 = 0
            total: i64 = 0
            for i in range(4):
                whole += x[i]
                total += y[i]
            z[0], z[1] = whole, total

        z = numpy.zeros(4, "i8")
        counts(
            numpy.array([1.5, 1.5, 1, 1], "f4"), numpy.full(4, 1 << 31, "i8"), z
        )
        self.assertEqual(z.tolist(), [4, 1 << 33, 0, 0])

    def test_common_types(self):
        """They do not depend on the order in which a set has its elements."""
        from hidet.scripting.terms import Term, common

        for kinds, kind in (
            (("i32", "u32"), "u32"),
            (("u8", "i32"), "i32"),
            (("i64", "u64", "i8"), "u64"),
            (("f16", "bf16"), "f32"),
            (("f16", "bf16", "f64"), "f64"),
            (("f16", "i64"), "f16"),
            (("bool", "i8"), "i8"),
        ):
            for order in itertools.permutations(kinds):
                self.assertEqual(common([Term("x", k) for k in order]), kind)

        @hidet.script
        def sums(x: f16[1], y: bf16[1], i: u32[1], j: i32[1], z: f32[2]):
            attr.cuda_block_dim = 1
            z[0] = x[0] + y[0]
            z[1] = 1 if i[0] > j[0] else 0

        import ml_dtypes

        z = numpy.zeros(2, "f4")
        sums(
            numpy.array([2048], "f2"),
            numpy.array([2**-12], ml_dtypes.bfloat16),
            numpy.array([5], "u4"),
            numpy.array([-1], "i4"),
            z,
        )
        self.assertEqual(z.tolist(), [2048 + 2**-12, 0])


class Calls(unittest.TestCase):
    def test_written(self):
        """By atomics, and by scripts that are given a tensor."""

        @hidet.script
        def count(at: i32, bins: i32["b"]):
            atomic_add(bins[at], 1, release)

        others = types.SimpleNamespace(count=count)

        @hidet.script
        def histogram(x: i32["n"], bins: i32["b"]):
            attr.cuda_block_dim = 64
            for i in range(thread, n, 64):  # noqa: F821
                others.count(x[i], bins)

        x = numpy.arange(100, dtype="i4") % 3
        bins = numpy.zeros(4, "i4")
        histogram(x, bins)
        self.assertEqual(bins.tolist(), [34, 33, 33, 0])

    def test_text(self):
        @hidet.script
        def says(x: f32[1], /, y: f32[1]):
            attr.cuda_block_dim = 1
            assert x[0] > 0, 'not\tabove\n"0"'
            y[0] = x[0]

        y = numpy.zeros(1, "f4")
        says(numpy.ones(1, "f4"), y)
        self.assertEqual(y[0], 1)
        with self.assertRaisesRegex(hidet.HidetError, 'not\tabove\n"0"'):
            says(y - 1, y)


if __name__ == "__main__":
    unittest.main()
