# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One element of each operand gives one of the result."""

from __future__ import annotations

from hidet.torch.operators.call import NARROW, Call, holds
from hidet.torch.text import Unsupported, Value


def unary(task: str, **fixed: object):
    """A task of floats; integers become floats, as PyTorch says."""

    def function(c: Call, x: Value, *_: object) -> Value:
        if c.type[0] not in "fb" or c.type == "bool":
            raise Unsupported(f"{task} of {c.type}")
        return c.unary(task, c.cast(x, c.type), **fixed)

    return function


def rounding(task: str):
    """Integers are what they are."""

    def function(c: Call, x: Value, *_: object) -> Value:
        return c.unary(task, x) if x.is_float else x

    return function


def round_decimals(c: Call, x: Value, decimals: int = 0) -> Value:
    if not x.is_float:
        return x
    if decimals:
        raise Unsupported("round to decimals")
    return c.unary("round", x)


def number(task: str, integer: str | None = None):
    """A task of numbers, with another one for integers."""

    def function(c: Call, x: Value, *_: object) -> Value:
        if x.type == "bool":
            raise Unsupported(f"{task} of bool")
        return c.unary(task if x.is_float else integer or task, x)

    return function


def sign(c: Call, x: Value) -> Value:
    if x.type == "bool":
        return x
    return c.unary("sign_zero" if x.is_float else "sign", x)


def absolute(c: Call, x: Value) -> Value:
    if x.type in ("bool", "u8"):
        return x
    return c.unary("abs" if x.is_float else "abs_integer", x)


def logical_not(c: Call, x: Value) -> Value:
    return c.unary("not", c.cast(x, "bool"))


def bitwise_not(c: Call, x: Value) -> Value:
    return c.unary("not" if x.type == "bool" else "bitwise_not", x)


def is_nan(c: Call, x: Value) -> Value:
    if not x.is_float:
        return c.full(False, "bool", x.shape)
    return c.unary("is_nan", x, "bool")


def is_inf(sign: str = ""):
    def function(c: Call, x: Value) -> Value:
        if not x.is_float:
            return c.full(False, "bool", x.shape)
        ways = {
            "": {},
            "+": {"detect_negative": 0},
            "-": {"detect_positive": 0},
        }
        return c.unary("is_inf", x, "bool", **ways[sign])

    return function


LOGICAL = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}
WITH_NUMBER = {
    "add": "add_number",
    "sub": "add_number",
    "mul": "mul_number",
    "div": "div_number",
}


def arithmetic(c: Call, task: str, a: object, b: object) -> Value:
    """In the result's type; a number that a narrow type does not hold takes
    part as it is."""
    kind = c.type
    if kind == "bool":
        if task not in LOGICAL:
            raise Unsupported(f"{task} of bool")
        return c.binary(LOGICAL[task], c.operand(a, kind), c.operand(b, kind))
    if kind in NARROW and not isinstance(b, Value) and not holds(kind, b):
        if task in WITH_NUMBER:
            x = c.operand(a, kind)
            value = -float(b) if task == "sub" else float(b)
            return c.unary(WITH_NUMBER[task], x, number=value)
    x, y = c.operand(a, kind), c.operand(b, kind)
    if task == "div" and x.rank and not isinstance(b, Value) and holds(kind, b):
        # A power of two divides as its reciprocal multiplies.
        inverse = 1 / b if b else 0
        if inverse and holds(kind, inverse) and holds("f32", 1 / inverse):
            return c.binary("mul", x, c.constant(inverse, kind))
    return c.binary(task, x, y)


def binary(task: str):
    def function(c: Call, a: object, b: object) -> Value:
        return arithmetic(c, task, a, b)

    return function


def scaled(task: str, turned: bool = False):
    """a + alpha b, a - alpha b; turned: b - alpha a."""

    def function(c: Call, a: object, b: object, alpha: float = 1) -> Value:
        if turned:
            a, b = b, a
        if c.type == "bool" and task == "sub":
            raise Unsupported("sub of bool")
        if alpha == 1:
            return arithmetic(c, task, a, b)
        if not isinstance(b, Value):
            return arithmetic(c, task, a, b * alpha)
        kind = c.type
        if kind in NARROW or (kind[0] in "fb" and isinstance(alpha, float)):
            factor = float(alpha if task == "add" else -alpha)
            x, y = c.operand(a, kind), c.cast(b, kind)
            return c.node("add_scaled", [x, y], alpha=factor)
        return arithmetic(
            c,
            task,
            a,
            c.binary("mul", c.cast(b, kind), c.constant(alpha, kind)),
        )

    return function


def divide_mode(c: Call, a: object, b: object, rounding_mode=None) -> Value:
    kind = c.type
    if rounding_mode is None:
        return arithmetic(c, "div", a, b)
    x, y = c.operand(a, kind), c.operand(b, kind)
    if rounding_mode == "floor":
        whole = "floor_divide" if x.is_float else "floor_divide_integer"
    else:
        whole = "trunc_divide" if x.is_float else "div"
    return c.binary(whole, x, y)


def floor_divide(c: Call, a: object, b: object) -> Value:
    return divide_mode(c, a, b, "floor")


def by_kind(floats: str, integers: str | None):
    """A task for floats, another for integers."""

    def function(c: Call, a: object, b: object) -> Value:
        x, y = c.operand(a, c.type), c.operand(b, c.type)
        task = floats if x.is_float else integers
        if not task or c.type == "bool":
            raise Unsupported(f"{floats} of {c.type}")
        return c.binary(task, x, y)

    return function


def power_number(c: Call, x: Value, exponent: float) -> Value:
    kind = c.type
    x = c.cast(x, kind)
    if not x.is_float:
        if kind == "bool" or not float(exponent).is_integer():
            raise Unsupported("this power of integers")
        return c.binary("pow_integer", x, c.constant(int(exponent), kind))
    if exponent == 1:
        return x
    if exponent == 2:
        return c.binary("mul", x, x)
    if exponent == 3:
        return c.binary("mul", c.binary("mul", x, x), x)
    if exponent == 0.5:
        return c.unary("sqrt", x)
    if exponent == -1:
        return c.unary("reciprocal", x)
    if exponent == -0.5:
        return c.unary("rsqrt", x)
    return c.unary("pow_number", x, number=float(exponent))


def number_power(c: Call, base: float, x: Value) -> Value:
    x = c.cast(x, c.type)
    if not x.is_float:
        if c.type == "bool":
            raise Unsupported("power of bool")
        return c.binary("pow_integer", c.constant(base, c.type), x)
    return c.unary("number_pow", x, number=float(base))


def power(c: Call, a: Value, b: Value) -> Value:
    x, y = c.cast(a, c.type), c.cast(b, c.type)
    if c.type == "bool":
        raise Unsupported("power of bool")
    return c.binary("pow" if x.is_float else "pow_integer", x, y)


def compare(task: str):
    def function(c: Call, a: object, b: object) -> Value:
        kind = c.promote(a, b)
        if kind == "bool" and task not in ("equal", "not_equal"):
            kind = "u8"
        x, y = c.operand(a, kind), c.operand(b, kind)
        if task == "not_equal":
            return c.unary("not", c.binary("equal", x, y, "bool"))
        return c.binary(task, x, y, "bool")

    return function


def logical(task: str):
    def function(c: Call, a: Value, b: Value) -> Value:
        return c.binary(task, c.cast(a, "bool"), c.cast(b, "bool"))

    return function


def bitwise(task: str):
    def function(c: Call, a: object, b: object) -> Value:
        x, y = c.operand(a, c.type), c.operand(b, c.type)
        return c.binary(task if c.type == "bool" else f"bitwise_{task}", x, y)

    return function


def where(c: Call, condition: Value, a: object, b: object) -> Value:
    x, y = c.operand(a, c.type), c.operand(b, c.type)
    return c.node("where", [c.cast(condition, "bool"), x, y])


def masked_fill(c: Call, x: Value, mask: Value, value: object) -> Value:
    return where(c, mask, value, x)


def clamp(c: Call, x: Value, low: object = None, high: object = None) -> Value:
    """NaN stays; where low is above high, high."""
    kind = c.type
    if kind == "bool":
        raise Unsupported("clamp of bool")
    x = c.cast(x, kind)
    for task, bound in ("maximum", low), ("minimum", high):
        if bound is None:
            continue
        if not isinstance(bound, Value) and not x.is_float:
            bound = min(max(bound, -(1 << 62)), 1 << 62)
        x = c.binary(task, x, c.operand(bound, kind))
    return x


def clamp_max(c: Call, x: Value, high: object) -> Value:
    return clamp(c, x, None, high)


def gelu(c: Call, x: Value, approximate: str = "none") -> Value:
    return c.unary("gelu_tanh" if approximate == "tanh" else "gelu", x)


def leaky_relu(c: Call, x: Value, slope: float = 0.01) -> Value:
    return c.unary("leaky_relu", x, alpha=float(slope))


def prelu(c: Call, x: Value, weight: Value) -> Value:
    if weight.size > 1 and x.rank > 1:
        weight = c.reshape(weight, (weight.size,) + (1,) * (x.rank - 2))
    elif x.rank == 0:
        weight = c.reshape(weight, ())
    return c.binary("prelu", x, weight)


def elu(c: Call, x: Value, alpha=1.0, scale=1.0, input_scale=1.0) -> Value:
    return c.unary(
        "elu_scaled",
        x,
        alpha=float(alpha),
        scale=float(scale),
        input_scale=float(input_scale),
    )


def celu(c: Call, x: Value, alpha: float = 1.0) -> Value:
    return elu(c, x, alpha, 1.0, 1.0 / alpha)


def hardtanh(c: Call, x: Value, low: float = -1.0, high: float = 1.0) -> Value:
    return clamp(c, x, low, high)


def softplus(
    c: Call, x: Value, beta: float = 1.0, threshold: float = 20.0
) -> Value:
    return c.unary(
        "softplus_beta", x, beta=float(beta), threshold=float(threshold)
    )


def threshold(c: Call, x: Value, bound: float, value: float) -> Value:
    if not x.is_float:
        raise Unsupported("threshold of integers")
    return c.unary("threshold", x, threshold=float(bound), value=float(value))


def hardshrink(c: Call, x: Value, lambd: float = 0.5) -> Value:
    return c.unary("hard_shrink", x, lambd=float(lambd))


def softshrink(c: Call, x: Value, lambd: float = 0.5) -> Value:
    return c.unary("shrink", x, bias=float(lambd), lambd=float(lambd))


def log_sigmoid(c: Call, x: Value) -> list[Value | None]:
    if 1 in c.used:
        raise Unsupported("what log_sigmoid keeps for its derivative")
    return [c.unary("log_sigmoid", x), None]


def addcmul(task: str):
    """x + value * (a task b)"""

    def function(
        c: Call, x: Value, a: Value, b: Value, value: float = 1
    ) -> Value:
        kind = c.type
        if kind == "bool" or (kind[0] not in "fb" and task == "div"):
            raise Unsupported(f"addc{task} of {kind}")
        wide = "f32" if kind in NARROW else kind
        x, a, b = (c.cast(v, wide) for v in (x, a, b))
        product = c.binary(task, a, b)
        if value != 1:
            product = c.binary("mul", product, c.constant(value, wide))
        return c.cast(c.binary("add", x, product), kind)

    return function


def lerp(c: Call, start: Value, end: Value, weight: object) -> Value:
    kind = c.type
    wide = "f32" if kind in NARROW else kind
    a, b, w = (c.operand(v, wide) for v in (start, end, weight))
    return c.cast(
        c.binary("add", a, c.binary("mul", c.binary("sub", b, a), w)), kind
    )


def convert(c: Call, x: Value, *_: object) -> Value:
    return c.cast(x, c.type)


def same(c: Call, x: Value, *_: object) -> Value:
    return x
