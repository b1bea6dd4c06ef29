# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn.TransformerEncoderLayer outside of training: PyTorch has one operator for
it there, which none of its decompositions takes apart. Here it is in functions
that come to the table, attention whole where there is no mask."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional


def layer_of(attention: Callable) -> Callable:
    """What is called in the place of torch._transformer_encoder_layer_fwd."""

    def encoder_layer(
        source,
        embed_dim,
        num_heads,
        qkv_weight,
        qkv_bias,
        proj_weight,
        proj_bias,
        use_gelu,
        norm_first,
        eps,
        norm_weight_1,
        norm_bias_1,
        norm_weight_2,
        norm_bias_2,
        ffn_weight_1,
        ffn_bias_1,
        ffn_weight_2,
        ffn_bias_2,
        mask=None,
        mask_type=None,
    ):
        def norm(x, weight, bias):
            return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

        def attend(x):
            rows = functional.linear(x, qkv_weight, qkv_bias)
            heads = rows.unflatten(-1, (3, num_heads, -1)).permute(2, 0, 3, 1, 4)
            query, key, value = heads.unbind(0)
            if mask is None:
                mixed = attention(query, key, value)
            else:
                scores = masked(query, key, mask, mask_type)
                mixed = scores.softmax(-1) @ value
            mixed = mixed.transpose(1, 2).flatten(2)
            return functional.linear(mixed, proj_weight, proj_bias)

        def feed(x):
            inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
            inner = functional.gelu(inner) if use_gelu else inner.relu()
            return functional.linear(inner, ffn_weight_2, ffn_bias_2)

        first = norm_weight_1, norm_bias_1
        second = norm_weight_2, norm_bias_2
        if norm_first:
            x = source + attend(norm(source, *first))
            return x + feed(norm(x, *second))
        x = norm(source + attend(source), *first)
        return norm(x + feed(x), *second)

    return encoder_layer


def masked(
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor,
    mask_type: int | None,
) -> torch.Tensor:
    """Scores of keys, those left out infinitely low: what is not 0 in a mask of
    queries by keys (type 0), of each sequence's keys (1), or of all (2). A query
    without keys has no number, as PyTorch's own."""
    scores = (query * query.shape[-1] ** -0.5) @ key.mT
    if mask_type == 1:
        mask = mask[:, None, None, :]
    return scores.masked_fill(mask.to(torch.bool), -float("inf"))
