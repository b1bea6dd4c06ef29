# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of PyTorch that we take: for each overload, the function of
operators/ that says what it is. What is not here runs in PyTorch, or is
decomposed by PyTorch into what is here (`decompositions`).

    "aten overload": function, or function(of what)

By family; in a family by name.
"""

from __future__ import annotations

import functools

import torch

from hidet.torch import attention  # noqa: F401 (its operator has a row)
from hidet.torch.apart import APART
from hidet.torch.operators import (
    elementwise as e,
    norms as n,
    places as g,
    products as p,
    reductions as r,
    shapes as s,
    windows as w,
)

# fmt: off
ROWS = {
    # Elementwise, one operand
    "abs":                      e.absolute,
    "acos":                     e.unary("acos"),
    "acosh":                    e.unary("acosh"),
    "alias":                    e.same,
    "asin":                     e.unary("asin"),
    "asinh":                    e.unary("asinh"),
    "atan":                     e.unary("atan"),
    "atanh":                    e.unary("atanh"),
    "bitwise_not":              e.bitwise_not,
    "ceil":                     e.rounding("ceil"),
    "celu":                     e.celu,
    "clone":                    e.same,
    "contiguous":               e.same,
    "cos":                      e.unary("cos"),
    "cosh":                     e.unary("cosh"),
    "detach":                   e.same,
    "elu":                      e.elu,
    "erf":                      e.unary("erf"),
    "erfc":                     e.unary("erfc"),
    "exp":                      e.unary("exp"),
    "exp2":                     e.unary("exp2"),
    "expm1":                    e.unary("expm1"),
    "floor":                    e.rounding("floor"),
    "frac":                     e.unary("frac"),
    "gelu":                     e.gelu,
    "hardshrink":               e.hardshrink,
    "hardsigmoid":              e.unary("hard_sigmoid", alpha=1 / 6),
    "hardswish":                e.unary("hard_swish"),
    "hardtanh":                 e.hardtanh,
    "isinf":                    e.is_inf(),
    "isnan":                    e.is_nan,
    "isneginf":                 e.is_inf("-"),
    "isposinf":                 e.is_inf("+"),
    "leaky_relu":               e.leaky_relu,
    "lift_fresh_copy":          e.same,
    "log":                      e.unary("log"),
    "log10":                    e.unary("log10"),
    "log1p":                    e.unary("log1p"),
    "log2":                     e.unary("log2"),
    "log_sigmoid_forward":      e.log_sigmoid,
    "logical_not":              e.logical_not,
    "mish":                     e.unary("mish"),
    "neg":                      e.number("neg"),
    "positive":                 e.same,
    "reciprocal":               e.unary("reciprocal"),
    "relu":                     e.number("relu"),
    "relu6":                    lambda c, x: e.clamp(c, x, 0, 6),
    "round":                    e.round_decimals,
    "round.decimals":           e.round_decimals,
    "rsqrt":                    e.unary("rsqrt"),
    "sgn":                      e.sign,
    "sigmoid":                  e.unary("sigmoid"),
    "sign":                     e.sign,
    "silu":                     e.unary("swish"),
    "sin":                      e.unary("sin"),
    "sinh":                     e.unary("sinh"),
    "softplus":                 e.softplus,
    "softshrink":               e.softshrink,
    "sqrt":                     e.unary("sqrt"),
    "square":                   lambda c, x: e.power_number(c, x, 2),
    "tan":                      e.unary("tan"),
    "tanh":                     e.unary("tanh"),
    "threshold":                e.threshold,
    "trunc":                    e.rounding("trunc"),

    # Conversions
    "_to_copy":                 e.convert,
    "copy":                     lambda c, x, u, *_: c.expand(c.cast(u, c.type), c.shape),
    "prims::convert_element_type": e.convert,

    # Elementwise, several operands
    "__lshift__.Scalar":        e.by_kind("", "shift_left"),
    "__rshift__.Scalar":        e.by_kind("", "shift_right"),
    "add.Scalar":               e.scaled("add"),
    "add.Tensor":               e.scaled("add"),
    "addcdiv":                  e.addcmul("div"),
    "addcmul":                  e.addcmul("mul"),
    "atan2":                    e.by_kind("atan2", None),
    "bitwise_and.Scalar":       e.bitwise("and"),
    "bitwise_and.Tensor":       e.bitwise("and"),
    "bitwise_left_shift.Tensor": e.by_kind("", "shift_left"),
    "bitwise_or.Scalar":        e.bitwise("or"),
    "bitwise_or.Tensor":        e.bitwise("or"),
    "bitwise_right_shift.Tensor": e.by_kind("", "shift_right"),
    "bitwise_xor.Scalar":       e.bitwise("xor"),
    "bitwise_xor.Tensor":       e.bitwise("xor"),
    "clamp":                    e.clamp,
    "clamp.Tensor":             e.clamp,
    "clamp_max":                e.clamp_max,
    "clamp_max.Tensor":         e.clamp_max,
    "clamp_min":                e.clamp,
    "clamp_min.Tensor":         e.clamp,
    "copysign.Scalar":          e.by_kind("copysign", None),
    "copysign.Tensor":          e.by_kind("copysign", None),
    "div.Scalar":               e.binary("div"),
    "div.Scalar_mode":          e.divide_mode,
    "div.Tensor":               e.binary("div"),
    "div.Tensor_mode":          e.divide_mode,
    "eq.Scalar":                e.compare("equal"),
    "eq.Tensor":                e.compare("equal"),
    "floor_divide":             e.floor_divide,
    "fmax":                     e.by_kind("fmax", "fmax"),
    "fmin":                     e.by_kind("fmin", "fmin"),
    "fmod.Scalar":              e.by_kind("fmod", "fmod_integer"),
    "fmod.Tensor":              e.by_kind("fmod", "fmod_integer"),
    "ge.Scalar":                e.compare("greater_equal"),
    "ge.Tensor":                e.compare("greater_equal"),
    "gt.Scalar":                e.compare("greater"),
    "gt.Tensor":                e.compare("greater"),
    "hypot":                    e.by_kind("hypot", None),
    "le.Scalar":                e.compare("less_equal"),
    "le.Tensor":                e.compare("less_equal"),
    "lerp.Scalar":              e.lerp,
    "lerp.Tensor":              e.lerp,
    "logaddexp":                e.by_kind("logaddexp", None),
    "logical_and":              e.logical("and"),
    "logical_or":               e.logical("or"),
    "logical_xor":              e.logical("xor"),
    "lt.Scalar":                e.compare("less"),
    "lt.Tensor":                e.compare("less"),
    "masked_fill.Scalar":       e.masked_fill,
    "masked_fill.Tensor":       e.masked_fill,
    "maximum":                  e.binary("maximum"),
    "minimum":                  e.binary("minimum"),
    "mul.Scalar":               e.binary("mul"),
    "mul.Tensor":               e.binary("mul"),
    "ne.Scalar":                e.compare("not_equal"),
    "ne.Tensor":                e.compare("not_equal"),
    "pow.Scalar":               e.number_power,
    "pow.Tensor_Scalar":        e.power_number,
    "pow.Tensor_Tensor":        e.power,
    "_prelu_kernel":            e.prelu,
    "remainder.Scalar":         e.by_kind("remainder", "mod_integer"),
    "remainder.Scalar_Tensor":  e.by_kind("remainder", "mod_integer"),
    "remainder.Tensor":         e.by_kind("remainder", "mod_integer"),
    "rsub.Scalar":              e.scaled("sub", turned=True),
    "rsub.Tensor":              e.scaled("sub", turned=True),
    "sub.Scalar":               e.scaled("sub"),
    "sub.Tensor":               e.scaled("sub"),
    "true_divide.Scalar":       e.binary("div"),
    "true_divide.Tensor":       e.binary("div"),
    "where.self":               e.where,
    "where.Scalar":             e.where,
    "where.ScalarOther":        e.where,
    "where.ScalarSelf":         e.where,
    "xlogy.Scalar_Other":       e.by_kind("xlogy", None),
    "xlogy.Scalar_Self":        e.by_kind("xlogy", None),
    "xlogy.Tensor":             e.by_kind("xlogy", None),

    # Tensors from numbers
    "arange":                   s.arange_end,
    "arange.start":             s.arange_start,
    "arange.start_step":        s.arange,
    "eye":                      s.eye,
    "eye.m":                    s.eye,
    "fill.Scalar":              s.fill,
    "fill.Tensor":              s.fill,
    "full":                     s.full,
    "full_like":                s.full_like,
    "new_full":                 lambda c, x, size, value, *_: s.full(c, size, value),
    "new_ones":                 s.filled(1),
    "new_zeros":                s.filled(0),
    "ones":                     s.filled(1),
    "ones_like":                s.filled(1),
    "scalar_tensor":            s.scalar_tensor,
    "zeros":                    s.filled(0),
    "zeros_like":               s.filled(0),

    # Shapes
    "_reshape_alias":           s.view,
    "_unsafe_view":             s.view,
    "as_strided":               s.as_strided,
    "cat":                      s.cat,
    "constant_pad_nd":          s.pad("constant"),
    "diagonal":                 s.diagonal,
    "diagonal_copy":            s.diagonal,
    "expand":                   s.expand,
    "flip":                     s.flip,
    "permute":                  s.permute,
    "pixel_shuffle":            w.pixel_shuffle,
    "reflection_pad1d":         s.pad("reflect"),
    "reflection_pad2d":         s.pad("reflect"),
    "reflection_pad3d":         s.pad("reflect"),
    "repeat":                   s.repeat,
    "replication_pad1d":        s.pad("edge"),
    "replication_pad2d":        s.pad("edge"),
    "replication_pad3d":        s.pad("edge"),
    "reshape":                  s.view,
    "roll":                     s.roll,
    "select.int":               s.select,
    "select_scatter":           s.select_scatter,
    "slice.Tensor":             s.slice_,
    "slice_scatter":            s.slice_scatter,
    "split.Tensor":             s.split,
    "split_with_sizes":         s.split,
    "squeeze":                  s.view,
    "squeeze.dim":              s.view,
    "squeeze.dims":             s.view,
    "stack":                    s.stack,
    "t":                        s.turn,
    "transpose.int":            s.transpose,
    "tril":                     s.triangle(0),
    "triu":                     s.triangle(1),
    "unbind.int":               s.unbind,
    "unfold":                   s.unfold,
    "unsqueeze":                s.view,
    "view":                     s.view,

    # Places
    "argsort":                  g.argsort,
    "embedding":                g.embedding,
    "gather":                   g.gather,
    "index.Tensor":             g.index_tensor,
    "index_add":                g.index_add,
    "index_copy":               g.index_copy,
    "index_fill.int_Scalar":    g.index_fill,
    "index_fill.int_Tensor":    g.index_fill,
    "index_put":                g.index_put,
    "index_select":             g.index_select,
    "scatter.reduce":           g.scatter(),
    "scatter.src":              g.scatter(),
    "scatter.value":            g.scatter(),
    "scatter.value_reduce":     g.scatter(),
    "scatter_add":              g.scatter("add"),
    "scatter_reduce.two":       g.scatter_reduce,
    "sort":                     g.sort,
    "sort.stable":              g.sort_stable,
    "topk":                     g.topk,

    # Reductions and scans
    "all":                      r.truth("min"),
    "all.dim":                  r.truth("min"),
    "all.dims":                 r.truth("min"),
    "amax":                     r.extreme("max"),
    "amin":                     r.extreme("min"),
    "any":                      r.truth("max"),
    "any.dim":                  r.truth("max"),
    "any.dims":                 r.truth("max"),
    "argmax":                   r.place("max"),
    "argmin":                   r.place("min"),
    "count_nonzero":            r.count_nonzero,
    "count_nonzero.dim_IntList": r.count_nonzero,
    "cumprod":                  r.scan("cumprod"),
    "cumsum":                   r.scan("cumsum"),
    "linalg_vector_norm":       r.vector_norm,
    "logsumexp":                r.logsumexp,
    "max":                      r.extreme_all("max"),
    "max.dim":                  r.extreme_dim("max"),
    "mean":                     r.reduction_all("reduce_mean", floats_only=True),
    "mean.dim":                 r.reduction("reduce_mean", floats_only=True),
    "min":                      r.extreme_all("min"),
    "min.dim":                  r.extreme_dim("min"),
    "prod":                     r.reduction_all("reduce_prod"),
    "prod.dim_int":             r.reduction("reduce_prod"),
    "std.correction":           r.variance(root=True),
    "sum":                      r.reduction_all("reduce_sum"),
    "sum.dim_IntList":          r.reduction("reduce_sum"),
    "var.correction":           r.variance(root=False),
    "var_mean.correction":      r.variance_mean,

    # Products
    "_scaled_dot_product_cudnn_attention": p.attention_cudnn,
    "_scaled_dot_product_efficient_attention": p.attention_efficient,
    "_scaled_dot_product_flash_attention": p.attention_flash,
    "_scaled_dot_product_flash_attention_for_cpu": p.attention_flash_cpu,
    "_scaled_dot_product_fused_attention_overrideable": p.attention_any,
    "addmm":                    p.add_product,
    "addmv":                    p.add_product,
    "baddbmm":                  p.add_product,
    "bmm":                      p.matmul,
    "convolution":              p.convolution,
    "_grouped_mm":              p.grouped,
    "dot":                      p.vector_product,
    "linear":                   p.linear,
    "mm":                       p.matmul,
    "mv":                       p.vector_product,
    "outer":                    p.outer,
    "vdot":                     p.vector_product,
    "hidet::attention":         p.attention_whole,
    "transformers::grouped_mm_fallback": p.grouped,

    # Normalization and softmax
    "_fused_rms_norm":          n.rms_norm,
    "_log_softmax":             n.softmax("log_softmax"),
    "_native_batch_norm_legit.no_stats": n.batch_norm_no_stats,
    "_native_batch_norm_legit_no_training": n.batch_norm,
    "_safe_softmax":            lambda c, x, dim, *_: n.softmax("softmax", True)(c, x, dim),
    "_softmax":                 n.softmax("softmax"),
    "native_group_norm":        n.group_norm,
    "native_layer_norm":        n.layer_norm,

    # Windows and interpolation
    "_adaptive_avg_pool2d":     w.adaptive_average(2),
    "_adaptive_avg_pool3d":     w.adaptive_average(3),
    "_upsample_nearest_exact1d": w.nearest(1, exact=True),
    "_upsample_nearest_exact1d.vec": w.nearest_vec(1, exact=True),
    "_upsample_nearest_exact2d": w.nearest(2, exact=True),
    "_upsample_nearest_exact2d.vec": w.nearest_vec(2, exact=True),
    "adaptive_avg_pool1d":      w.adaptive_average(1),
    "avg_pool1d":               w.average_pool(1),
    "avg_pool2d":               w.average_pool(2),
    "avg_pool3d":               w.average_pool(3),
    "grid_sampler_2d":          w.grid_sample,
    "max_pool1d":               w.max_pool_plain(1),
    "max_pool2d":               w.max_pool_plain(2),
    "max_pool2d_with_indices":  w.max_pool(2),
    "max_pool3d_with_indices":  w.max_pool(3),
    "upsample_bicubic2d":       w.cubic,
    "upsample_bicubic2d.vec":   w.cubic_vec,
    "upsample_bilinear2d":      w.linear(2),
    "upsample_bilinear2d.vec":  w.linear_vec(2),
    "upsample_linear1d":        w.linear(1),
    "upsample_linear1d.vec":    w.linear_vec(1),
    "upsample_nearest1d":       w.nearest(1),
    "upsample_nearest1d.vec":   w.nearest_vec(1),
    "upsample_nearest2d":       w.nearest(2),
    "upsample_nearest2d.vec":   w.nearest_vec(2),
    "upsample_nearest3d":       w.nearest(3),
    "upsample_nearest3d.vec":   w.nearest_vec(3),
    "upsample_trilinear3d":     w.linear(3),
    "upsample_trilinear3d.vec": w.linear_vec(3),
}
# fmt: on


def find_overload(name: str) -> torch._ops.OpOverload | None:
    """The operator of a row; None where this PyTorch has it not."""
    space, _, rest = name.rpartition("::")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(torch.ops, space or "aten"), packet, None)
    return getattr(found, overload or "default", None)


# Of libraries whose operators are there once they are imported.
FOREIGN = {name for name in ROWS if name.startswith("transformers::")}


@functools.cache
def rows_found() -> dict:
    found = {find_overload(name): ROWS[name] for name in ROWS.keys() - FOREIGN}
    found.pop(None, None)
    return found


def table() -> dict:
    """By overload."""
    found = rows_found()
    for name in FOREIGN:
        overload = find_overload(name)
        if overload is not None:
            found.setdefault(overload, ROWS[name])
    return found


@functools.cache
def decompositions() -> dict:
    """Those of PyTorch and ours for what the table has not. What the table has
    stays whole, but for what ours take apart of it."""
    from torch._decomp import core_aten_decompositions

    found = {**core_aten_decompositions(), **APART}
    return {
        op: way
        for op, way in found.items()
        if op in APART or op not in table()
    }
