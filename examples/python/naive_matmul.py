# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel written in Python, as a function of PyTorch.

usage: naive_matmul.py [--device=cuda|cpu]

On the CPU's tensors it runs on the simulator.
"""

import sys

import hidet
import torch


def matmul(m_size, n_size, k_size):
    from hidet.lang import attr, f32
    from hidet.lang.cuda import blockDim, blockIdx, threadIdx

    with hidet.script_module() as script_module:

        @hidet.script
        def matmul(
            a: f32[m_size, k_size],
            b: f32[k_size, n_size],
            c: f32[m_size, n_size],
        ):
            attr.cuda_grid_dim = ((m_size + 31) // 32, (n_size + 31) // 32)
            attr.cuda_block_dim = (32, 32)
            i = threadIdx.x + blockIdx.x * blockDim.x
            j = threadIdx.y + blockIdx.y * blockDim.y
            if i < m_size and j < n_size:
                c[i, j] = 0.0
                for k in range(k_size):
                    c[i, j] += a[i, k] * b[k, j]

    ir_module = script_module.ir_module()
    func = hidet.driver.build_ir_module(ir_module)
    return func


class NaiveMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        m, k = a.shape
        k, n = b.shape
        c = torch.empty([m, n], dtype=a.dtype, device=a.device)
        func = matmul(m, n, k)
        func(a, b, c)
        return c


def main(device):
    a = torch.randn([3, 4], device=device)
    b = torch.randn([4, 5], device=device)
    c = NaiveMatmul.apply(a, b)
    torch.testing.assert_close(c, torch.matmul(a, b))
    print(c)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for argument in sys.argv[1:]:
        device = argument.removeprefix("--device=")
    main(device)
