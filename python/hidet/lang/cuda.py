# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUDA's names of what a launch gives, and of barriers."""

from hidet.lang.words import Launch, Word

threadIdx = Launch("thread")
blockIdx = Launch("block")
blockDim = Launch("block_dim")
gridDim = Launch("grid_dim")
syncthreads = Word("barrier")
syncwarp = Word("warp_sync")
