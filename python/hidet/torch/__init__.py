# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hidet for PyTorch: the backend "hidet" of torch.compile. Importing it makes
the backend known where no entry point has."""

from __future__ import annotations

import torch
import torch._dynamo

from hidet.torch.backend import hidet_backend
from hidet.torch.config import dynamo_config

__all__ = ["dynamo_config", "hidet_backend"]

if "hidet" not in torch._dynamo.list_backends(exclude_tags=()):
    torch._dynamo.register_backend(hidet_backend, name="hidet")
