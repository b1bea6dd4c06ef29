# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as one operator of ours.

PyTorch takes its scaled_dot_product_attention apart while it traces, and which
way depends on the device, the types and what can be fused there. So calls of it
in Dynamo's graph become calls of `hidet::attention`, which is the same to
PyTorch, and comes whole to the table.
"""

from __future__ import annotations

import types

import torch
from torch import fx

from hidet.torch.encoder import layer_of

SCHEMA = (
    "attention(Tensor query, Tensor key, Tensor value, Tensor? mask, "
    "bool causal, float? scale, bool grouped) -> Tensor"
)
CALLS = (
    torch.nn.functional.scaled_dot_product_attention,
    torch.ops.aten.scaled_dot_product_attention.default,
)
SINGLE = (torch.float32, torch.float16, torch.bfloat16)  # Of autocast.
NAMES = "query key value attn_mask dropout_p is_causal scale enable_gqa".split()
DEFAULTS = {
    "attn_mask": None,
    "dropout_p": 0.0,
    "is_causal": False,
    "scale": None,
    "enable_gqa": False,
}


def compute(query, key, value, mask, causal, scale, grouped):
    """PyTorch's own, where the table has refused."""
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, 0.0, causal, scale=scale, enable_gqa=grouped
    )


def describe(query, key, value, mask, causal, scale, grouped):
    """The result's type and shape. PyTorch's does not ask whether there is a
    value for each key; here two symbols for one size become one."""
    torch._check(key.shape[-2] == value.shape[-2])
    if mask is not None and mask.dim() and mask.shape[-1] != 1:
        torch._check(mask.shape[-1] == key.shape[-2])
    return compute(query, key, value, mask, causal, scale, grouped)


def cast_first(device: str):
    """What autocast makes of a call: its operands are narrow ones."""
    keys = torch._C.DispatchKeySet(
        getattr(torch._C.DispatchKey, f"Autocast{device.upper()}")
    )

    def call(query, key, value, mask, causal, scale, grouped):
        dtype = torch.get_autocast_dtype(device)
        given = [
            t.to(dtype) if t is not None and t.dtype in SINGLE else t
            for t in (query, key, value, mask)
        ]
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return ATTENTION(*given, causal, scale, grouped)

    return call


def register() -> torch.library.Library:
    """`hidet::attention`, which has no gradients. It ends with the library."""
    library = torch.library.Library("hidet", "FRAGMENT")
    library.define(SCHEMA, tags=torch.Tag.pt2_compliant_tag)
    for key in "CPU", "CUDA":
        library.impl("attention", compute, key)
    torch.library.register_fake("hidet::attention", describe, lib=library)
    for device in "cpu", "cuda":
        key = f"Autocast{device.upper()}"
        library.impl("attention", cast_first(device), key)
    return library


LIBRARY = register()
ATTENTION = torch.ops.hidet.attention.default


def wants_gradients(inputs: list) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(t, torch.Tensor) and t.requires_grad for t in inputs
    )


def read_call(args: tuple, kwargs: dict) -> tuple | None:
    """Our operator's arguments; None where a call says more than it has."""
    given = {**DEFAULTS, **dict(zip(NAMES, args)), **kwargs}
    if set(given) != set(NAMES) or given["dropout_p"] != 0:
        return None
    flags = given["is_causal"], given["enable_gqa"]
    scale = given["scale"]
    if not all(isinstance(f, bool) for f in flags):
        return None
    if scale is not None and not isinstance(scale, (int, float)):
        return None
    operands = [given[n] for n in NAMES[:4]]
    return (*operands, flags[0], scale, flags[1])


def attention_or_own(*args, **kwargs):
    """In the place of PyTorch's, inside a function of PyTorch's own."""
    given = read_call(args, kwargs)
    if given is None:
        return torch.nn.functional.scaled_dot_product_attention(*args, **kwargs)
    return ATTENTION(*given)


def with_own(function: types.FunctionType) -> types.FunctionType:
    """The same function, for which that name means ours."""
    names = dict(function.__globals__)
    names["scaled_dot_product_attention"] = attention_or_own
    made = types.FunctionType(
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# What Dynamo leaves whole, though it calls attention.
CALLERS = {
    function: with_own(function)
    for function in (torch.nn.functional.multi_head_attention_forward,)
}
for whole in (
    torch._transformer_encoder_layer_fwd,
    torch.ops.aten._transformer_encoder_layer_fwd.default,
):
    CALLERS[whole] = layer_of(attention_or_own)


def keep_attention(module: torch.nn.Module, inputs: list) -> None:
    """In a graph of Dynamo's that is for inference alone."""
    if wants_gradients([*inputs, *module.parameters()]):
        return
    for part in module.modules():
        if not isinstance(part, fx.GraphModule):
            continue
        changed = False
        for node in part.graph.nodes:
            if node.target in CALLERS:
                node.target, changed = CALLERS[node.target], True
            if node.target not in CALLS:
                continue
            given = read_call(node.args, node.kwargs)
            if given is not None:
                node.target, node.args, node.kwargs = ATTENTION, given, {}
                changed = True
        if changed:
            part.recompile()
