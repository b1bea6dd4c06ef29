# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels written in Python, on numpy's arrays, that is on the simulator."""

import inspect
import unittest

import hidet
import numpy
from hidet.lang import (
    attr,
    bf16,
    exp,
    f16,
    f32,
    i32,
    i64,
    lane,
    register_tensor,
    repeat,
    shared_tensor,
    shfl_xor,
    spatial,
    thread,
    unroll,
)
from hidet.lang.cuda import blockDim, blockIdx, syncthreads, threadIdx

N = 100


@hidet.script
def twice(x: f32) -> f32:
    return x * 2


@hidet.script
def scale(n: i32, x: f32["n"], y: f32["n"]):
    attr.cuda_grid_dim = (n + 63) // 64
    attr.cuda_block_dim = 64
    i = threadIdx.x + blockIdx.x * blockDim.x
    if i < n:
        y[i] = twice(x[i]) + 1


@hidet.script
def transpose(x: f32[8, 16], y: f32[16, 8]):
    attr.cuda_block_dim = 32
    tile = shared_tensor(f32, [8, 16])
    for i, j in (spatial(4, 8) * repeat(2, 2)).on(thread):
        tile[i, j] = x[i, j]
    syncthreads()
    for i, j in (repeat(4, 1) * spatial(4, 8)).on(thread):
        y[i, j] = tile[j, i]


@hidet.script
def collatz(start: i64[N], steps: i32[N]):
    attr.cuda_grid_dim = N
    attr.cuda_block_dim = 1
    n = start[blockIdx.x]
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
        if count >= 50:
            break
    steps[blockIdx.x] = count


@hidet.script
def row_softmax(x: f16["m", 32], y: f16["m", 32]):
    attr.cuda_grid_dim = m  # noqa: F821
    attr.cuda_block_dim = 32
    value = f32(x[blockIdx.x, lane])
    greatest = value
    for step in unroll(range(5)):
        greatest = max(greatest, shfl_xor(greatest, 1 << step))
    power = exp(value - greatest)
    total = power
    for step in unroll(range(5)):
        total += shfl_xor(total, 1 << step)
    y[blockIdx.x, lane] = f16(power / total)


def matmul(m, n, k):
    with hidet.script_module() as module:

        @hidet.script
        def kernel(a: f32[m, k], b: f32[k, n], c: f32[m, n]):
            attr.cuda_grid_dim = ((m + 3) // 4, (n + 3) // 4)
            attr.cuda_block_dim = (4, 4)
            i = threadIdx.x + blockIdx.x * blockDim.x
            j = threadIdx.y + blockIdx.y * blockDim.y
            if i < m and j < n:
                c[i, j] = 0.0
                for p in range(k):
                    c[i, j] += a[i, p] * b[p, j]

    return module.ir_module()


def random(*shape, dtype="f4"):
    return numpy.random.default_rng(0).standard_normal(shape).astype(dtype)


class Kernels(unittest.TestCase):
    def test_matmul(self):
        for m, n, k in (3, 5, 4), (8, 8, 1), (9, 2, 7):
            run = hidet.driver.build_ir_module(matmul(m, n, k))
            a, b, c = random(m, k), random(k, n), numpy.empty((m, n), "f4")
            run(a, b, c)
            numpy.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)

    def test_text(self):
        text = str(matmul(3, 5, 4))
        self.assertIn(
            "kernel kernel_(in a: f32[3, 4], in b: f32[4, 5], "
            "inout c: f32[3, 5]) grid(1, 2) block(4, 4) {",
            text,
        )
        self.assertIn("let i = thread.x + block.x * block_dim.x", text)
        self.assertIn("c[i, j] = c[i, j] + a[i, p] * b[p, j]", text)

    def test_sizes_of_tensors(self):
        for n in 1, 64, 130:
            x, y = random(n), numpy.zeros(n, "f4")
            scale(n, x, y)
            numpy.testing.assert_array_equal(y, x * 2 + 1)

    def test_mappings(self):
        x, y = random(8, 16), numpy.zeros((16, 8), "f4")
        transpose(x, y)
        numpy.testing.assert_array_equal(y, x.T)

    def test_loops(self):
        start = numpy.arange(1, N + 1)
        steps = numpy.zeros(N, "i4")
        collatz(start, steps)

        def count(n):
            i = 0
            while n != 1 and i < 50:
                n, i = (n // 2 if n % 2 == 0 else 3 * n + 1), i + 1
            return i

        self.assertEqual(steps.tolist(), [count(int(n)) for n in start])

    def test_warp(self):
        for m in 1, 5:
            x, y = random(m, 32, dtype="f2"), numpy.zeros((m, 32), "f2")
            row_softmax(x, y)
            e = numpy.exp(x.astype("f8") - x.max(1, keepdims=True))
            numpy.testing.assert_allclose(
                y, e / e.sum(1, keepdims=True), rtol=2e-3, atol=1e-6
            )

    def test_registers(self):
        @hidet.script
        def sums(x: f32[4, 8], y: f32[4]):
            attr.cuda_block_dim = 4
            part = register_tensor(f32, [2])
            for j in unroll(range(8)):
                part[j % 2] += x[thread, j]
            low, high = part[0], part[1]
            y[thread] = low if low > high else -high

        x, y = random(4, 8), numpy.zeros(4, "f4")
        sums(x, y)
        even, odd = x[:, ::2].sum(1), x[:, 1::2].sum(1)
        numpy.testing.assert_allclose(
            y, numpy.where(even > odd, even, -odd), rtol=1e-5, atol=1e-6
        )

    def test_conversions(self):
        @hidet.script
        def mixed(x: i32[5], y: f32[5], z: bf16[5]):
            attr.cuda_block_dim = 5
            h = x[thread] * 0.5
            y[thread] = h + x[thread]
            if not x[thread]:
                y[thread] = -1
            z[thread] = y[thread] / 4

        x, y = numpy.arange(5, dtype="i4"), numpy.zeros(5, "f4")
        import ml_dtypes

        z = numpy.zeros(5, ml_dtypes.bfloat16)
        mixed(x, y, z)
        expected = numpy.where(x == 0, -1, x * 1.5)
        numpy.testing.assert_array_equal(y, expected)
        numpy.testing.assert_array_equal(z.astype("f4"), expected / 4)

    def test_strides(self):
        x = random(2, 64)[:, ::2][0]
        y = numpy.zeros(32, "f4")
        scale(32, x, y)
        numpy.testing.assert_array_equal(y, x * 2 + 1)
        x = random(33)[1:]
        scale(32, x, y)
        numpy.testing.assert_array_equal(y, x * 2 + 1)


class Calls(unittest.TestCase):
    def test_neighbours(self):
        """Tensors side by side do not overlap."""
        both = numpy.zeros((2, 32), "f2")
        row_softmax(both[:1], both[1:])
        numpy.testing.assert_array_equal(both[1:], [[1 / 32] * 32])

    def test_numbers(self):
        """Any number of a float; of an integer no more than it holds."""

        @hidet.script
        def fill(k: i64, v: f32, y: f32[2], z: i64[2]):
            attr.cuda_block_dim = 2
            y[thread] = v
            z[thread] = k

        y, z = numpy.zeros(2, "f4"), numpy.zeros(2, "i8")
        for k, v in (7, numpy.nan), (-(2**63), numpy.inf), (2**63 - 1, 2):
            fill(k, v, y, z)
            numpy.testing.assert_array_equal(y, [v, v])
            self.assertEqual(z.tolist(), [k, k])
        for k in 2**63, 2**64 + 7, numpy.inf, numpy.nan:
            with self.assertRaisesRegex(hidet.UsageError, "'k' is i64, not"):
                fill(k, 0, y, z)

    def test_read_only(self):
        x, y = random(8), numpy.zeros(8, "f4")
        x.flags.writeable = False
        scale(8, x, y)
        numpy.testing.assert_array_equal(y, x * 2 + 1)
        with self.assertRaisesRegex(hidet.UsageError, "'y' is written, and"):
            scale(8, y, x)

    def test_wrong(self):
        x, y = random(8), numpy.zeros(8, "f4")
        for arguments, message in (
            ((8, x), r"scale\(n, x, y\) is given 2"),
            ((9, x, y), r"'x' is f32\[n\], not \[8\]; n is 9"),
            ((8, x, y.astype("f8")), r"'y' is f32\[n\], not of f64"),
            ((8, x.reshape(2, 4), y), r"'x' is f32\[n\], not of 2 axes"),
            ((8, y, y), "'x' and 'y' overlap"),
            ((8, x, random(16)[::2]), "'y' is written, and is not row-major"),
            ((8, x, numpy.zeros(9, "f4")[1:]), "'y' is written"),
            ((8.5, x, y), r"'n' is i32, not 8\.5"),
            ((8, 1.0, y), "'x' is a tensor, not float"),
        ):
            with self.assertRaisesRegex(hidet.UsageError, message):
                scale(*arguments)


class Wrong(unittest.TestCase):
    """Each error names the line that it is about."""

    def fails(self, function, message):
        lines, first = inspect.getsourcelines(function)
        at = next(i for i, text in enumerate(lines) if "# here" in text)
        with self.assertRaises(hidet.ScriptError) as caught:
            hidet.driver.build_ir_module(hidet.script(function).ir_module())
        text = str(caught.exception)
        self.assertIn(f"{__file__}:{first + at}:", text)
        self.assertRegex(text, message)

    def test_translation(self):
        def unknown(x: f32[4]):
            attr.cuda_block_dim = 4
            x[0] = nowhere  # here # noqa: F821

        def either(x: f32[4]):
            attr.cuda_block_dim = 4
            x[0] = x[1] or 5.0  # here

        def rank(x: f32[4, 4]):
            attr.cuda_block_dim = 4
            x[0] = 1.0  # here

        def divides(x: i32[4]):
            attr.cuda_block_dim = 4
            x[0] = x[1] / x[2]  # here

        def iterates(x: f32[4]):
            attr.cuda_block_dim = 4
            for v in x:  # here
                x[0] = v

        def calls(x: f32[4]):
            attr.cuda_block_dim = 4
            x[0] = len(x)  # here

        def raises(x: f32[4]):
            attr.cuda_block_dim = 4
            raise ValueError  # here

        def untyped(x):  # here
            attr.cuda_block_dim = 4

        def misses(x: f32[4]):
            attr.cuda_blocks = 4  # here

        def workers(x: f32[4]):
            attr.cuda_block_dim = 4
            for i in spatial(4):  # here
                x[i] = 0

        def real(x: f32[4]):
            attr.cuda_block_dim = 4
            total = 0
            for i in range(4):
                total += x[i]  # here
            x[0] = total

        def wide(x: i64[4]):
            attr.cuda_block_dim = 4
            total = 0
            for i in range(4):
                total += x[i]  # here
            x[0] = total

        def branches(x: f32[4]):
            attr.cuda_block_dim = 4
            if x[0] > 1:
                step = 1
            else:
                step = 0.5  # here
            x[0] = step

        def twice_called(x: i32[32]):
            attr.cuda_block_dim = 32
            if 0 <= shfl_xor(x[thread], 1) < 5:  # here
                x[thread] = 0

        def letters(x: f32[4]):
            attr.cuda_block_dim = 4
            größe = x[0]  # here
            x[1] = größe

        for function, message in (
            (real, "'total' began as i32, and f32 does not fit: total: f32 ="),
            (wide, "'total' began as i32, and i64 does not fit"),
            (branches, "'step' began as i32, and f32 does not fit"),
            (twice_called, r"shfl_xor\(x\[thread\], 1\) is called once"),
            (letters, "'größe' is not of ASCII's letters"),
            (unknown, "name 'nowhere' is not defined"),
            (either, "and, or of numbers"),
            (rank, "1 indices for 'x', which has 2 axes"),
            (divides, "/ of integers"),
            (iterates, r"range\(...\) or a task mapping"),
            (calls, "'len' is nothing that a script can call"),
            (raises, "a script has no Raise"),
            (untyped, "'x' has no type"),
            (misses, "no attr.cuda_blocks"),
            (workers, r"spatial\(4\) has 4 workers"),
        ):
            with self.subTest(function.__name__):
                self.fails(function, message)

    def test_compiler(self):
        """What the compiler finds is brought back to the Python line."""
        from hidet.lang import nothing_known

        def intrinsic(x: f32[4]):
            attr.cuda_block_dim = 4
            x[0] = nothing_known(x[1])  # here

        def bounds(x: f32[4]):
            attr.cuda_block_dim = 4
            x[0] = 1.0
            x[7] = 1.0  # here

        self.fails(intrinsic, r"error\[E0201\].*nothing_known")
        self.fails(bounds, r"error\[E0319\]")


if __name__ == "__main__":
    unittest.main()
