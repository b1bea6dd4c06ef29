# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of PyTorch said by others of PyTorch's, which the table has: for
those that PyTorch's own decompositions leave whole. NotImplemented: it stays as
it is. Right as they stand for any device, so for what PyTorch itself runs, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from hidet.torch.overloads import ByOverload

aten = torch.ops.aten
APART = ByOverload()
of = APART.of

# Elements between: a part that is refused is PyTorch's, which makes them all.
MOST_ELEMENTS = 1 << 26


def count(n: int, like: Tensor) -> Tensor:
    return torch.arange(n, device=like.device)


# What is in memory that nobody has written is anybody's to say.
@of(aten.empty.memory_format)
def empty(size: Sequence[int], **options: object) -> object:
    if options.get("memory_format") not in (None, torch.contiguous_format):
        return NotImplemented
    options.pop("memory_format", None)
    return torch.zeros(size, **options)


@of(aten.empty_permuted.default)
def empty_permuted(
    size: Sequence[int], order: Sequence[int], **options: object
) -> object:
    if list(order) != list(range(len(size))):
        return NotImplemented
    return torch.zeros(size, **options)


@of(aten.ldexp.Tensor)
def ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    return x * torch.pow(2.0, exponent)


@of(aten.addbmm.default)
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta=1, alpha=1) -> Tensor:
    # One product, over all that is summed.
    rows = a.transpose(0, 1).reshape(a.shape[1], -1)
    columns = b.reshape(-1, b.shape[2])
    return torch.addmm(x, rows, columns, beta=beta, alpha=alpha)


@of(aten.histc.default)
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> object:
    if not min < max or not math.isfinite(max - min):
        return NotImplemented  # Of the smallest and the largest of the data.
    flat = x.reshape(-1)
    if flat.numel() * bins > MOST_ELEMENTS:
        return NotImplemented
    if x.is_floating_point():
        at = ((flat - min) / (max - min) * bins).floor()
    else:
        if min != int(min) or max != int(max):
            return NotImplemented
        at = (flat.long() - int(min)) * bins // (int(max) - int(min))
    at = torch.where(flat == max, bins - 1, at)
    inside = (flat >= min) & (flat <= max)
    found = (at[:, None] == count(bins, x)) & inside[:, None]
    return found.sum(0).to(x.dtype)


@of(aten.bucketize.Tensor)
def bucketize(
    x: Tensor, bounds: Tensor, *, out_int32: bool = False, right: bool = False
) -> object:
    """How many bounds are behind; behind all of them is what is no number."""
    if x.numel() * bounds.numel() > MOST_ELEMENTS:
        return NotImplemented
    x = x.unsqueeze(-1)
    behind = ~(bounds > x) if right else ~(bounds >= x)
    return behind.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


@of(aten._cdist_forward.default)
def cdist(a: Tensor, b: Tensor, p: float, mode: int | None) -> object:
    if a.numel() * b.shape[-2] > MOST_ELEMENTS:
        return NotImplemented
    far = (a.unsqueeze(-2) - b.unsqueeze(-3)).abs()
    if p == 0:
        return (far != 0).sum(-1).to(a.dtype)
    if math.isinf(p):
        return far.amax(-1) if a.shape[-1] else far.sum(-1)
    if p == 1:
        return far.sum(-1)
    if p == 2:
        return far.square().sum(-1).sqrt()
    return far.pow(p).sum(-1).pow(1 / p)


@of(aten.masked_scatter.default)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> object:
    if not source.numel():
        return NotImplemented
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    x, mask = x.expand(shape), mask.expand(shape)
    at = mask.reshape(-1).long().cumsum(0) - 1
    # Where it is not asked for, any element may be read.
    at = torch.where(mask.reshape(-1), at, 0)
    taken = source.reshape(-1).index_select(0, at).reshape(shape)
    return torch.where(mask, taken, x)


@of(aten.diagonal_scatter.default)
def diagonal_scatter(
    x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> object:
    if not source.numel():
        return NotImplemented
    turned = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = (count(n, x) for n in turned.shape[-2:])
    at = (rows + min(offset, 0)).clamp(0, source.shape[-1] - 1)
    made = torch.where(
        rows[:, None] + offset == columns,
        source.index_select(-1, at).unsqueeze(-1),
        turned,
    )
    return made.movedim((-2, -1), (dim1, dim2))


@of(aten.scatter_reduce.two)
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str,
    *, include_self: bool = True,
) -> object:  # fmt: skip
    """A mean, and such as leave out what is there."""
    if include_self and reduce != "mean" or not index.numel():
        return NotImplemented
    if not include_self:
        x = x.scatter(dim, index, neutral(reduce, x.dtype))
    if reduce != "mean":
        return x.scatter_reduce(dim, index, source, reduce)
    total = x.scatter_add(dim, index, source)
    ones = torch.ones_like(index, dtype=torch.int64)
    told = torch.full_like(x, int(include_self), dtype=torch.int64)
    # One where nobody comes, whose own element that is.
    told = told.scatter_add(dim, index, ones).clamp(min=1)
    if not x.is_floating_point():
        return torch.div(total, told, rounding_mode="floor")
    return total / told


def neutral(reduce: str, dtype: torch.dtype) -> float:
    if reduce in ("prod", "mean", "sum"):
        return 1 if reduce == "prod" else 0
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    if dtype == torch.bool:
        return reduce == "amin"
    ends = torch.iinfo(dtype)
    return ends.min if reduce == "amax" else ends.max


@of(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    weight: Tensor, index: Tensor, offsets: Tensor, scale_grad=False, mode=0,
    sparse=False, weights=None, include_last=False, padding=-1,
) -> object:  # fmt: skip
    """Rows of sums or means; nobody but a backward asks for more."""
    n, bags = index.shape[0], offsets.shape[0] - int(include_last)
    if mode > 1 or not n or not bags:
        return NotImplemented
    offsets = offsets.long()
    begun = offsets.new_zeros(n + 1)
    begun = begun.index_add(0, offsets[:bags], torch.ones_like(offsets[:bags]))
    bag = begun[:n].cumsum(0) - 1
    narrow = weight.dtype in (torch.float16, torch.bfloat16)
    rows = weight.index_select(0, index)
    rows = rows.float() if narrow else rows
    if weights is not None:
        rows = rows * weights[:, None]
    kept = torch.ones_like(bag)
    if padding >= 0:
        kept = (index != padding).long()
        rows = torch.where(kept[:, None] != 0, rows, 0)
    made = rows.new_zeros(bags, weight.shape[1]).index_add(0, bag, rows)
    told = begun.new_zeros(bags).index_add(0, bag, kept)
    if mode == 1:
        made = made / told.clamp(min=1)[:, None]
    return made.to(weight.dtype), bag, told, told


@of(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(x: Tensor, size: Sequence[int]) -> object:
    """Windows are as long as the longest: what is behind one's end is its last
    element again."""
    h, w = x.shape[-2:]
    if not x.numel() or not all(size):
        return NotImplemented
    if not all(isinstance(n, int) for n in (h, w)):
        return NotImplemented
    rows, columns = (windows(n, m, x) for n, m in zip((h, w), size))
    places = rows[:, None, :, None] * w + columns[None, :, None, :]
    places = places.reshape(*size, -1)
    flat = x.reshape(*x.shape[:-2], h * w)
    found = flat.index_select(-1, places.reshape(-1))
    found = found.reshape(*x.shape[:-2], *places.shape)
    first = found.argmax(-1, keepdim=True)
    at = places.expand(found.shape).gather(-1, first).squeeze(-1)
    return found.amax(-1), at


def windows(n: int, m: int, like: Tensor) -> Tensor:
    """Of n elements those of each of m windows."""
    ends = [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
    longest = max(end - start for start, end in ends)
    each = count(m, like)
    start = each * n // m
    last = -(-(each + 1) * n // m) - 1
    inside = start[:, None] + count(longest, like)
    return torch.minimum(inside, last[:, None])
