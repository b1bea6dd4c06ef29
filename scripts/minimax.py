# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The polynomials of the math library (lib/IR/library/math_*.hir).

usage: minimax.py [--check] [name...]      (needs mpmath)

Prints each polynomial's coefficients, highest first, and its error, absolute
in what the row's weight makes of it. --check says which are not in the library.

A polynomial P for g on [a, b] makes max |P(x) - g(x)| w(x) small: by Remez'
exchange where that converges, else by Lawson's reweighted least squares.
Coefficients are rounded to the type one after another, lowest first, the rest
being fitted again each time.
"""

import pathlib
import sys

import mpmath as mp

mp.mp.prec = 240
TINY = mp.mpf("1e-20")


def remez(g, a, b, degree, weight, fixed):
    exponents = [e for e in range(degree + 1) if e not in fixed]
    n = len(exponents)

    def rest(x):
        return g(x) - sum(c * x**e for e, c in fixed.items())

    def chebyshev(i, of):
        return (a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * mp.mpf(i) / of)

    points = [chebyshev(2 * i + 1, 2 * n + 2) for i in range(n + 1)]
    grid = [chebyshev(i, 40 * n) for i in range(40 * n + 1)]
    for _ in range(12):
        system = mp.matrix(n + 1, n + 1)
        for r, x in enumerate(points):
            for c, e in enumerate(exponents):
                system[r, c] = x**e
            system[r, n] = (-1)**r / weight(x)
        solution = mp.lu_solve(system, mp.matrix([rest(x) for x in points]))
        found = list(zip(exponents, solution[:n]))
        errors = [(sum(c * x**e for e, c in found) - rest(x)) * weight(x)
                  for x in grid]
        extrema, i = [], 0
        while i < len(errors):  # the largest of each run of one sign
            j = i
            while j < len(errors) and (errors[j] >= 0) == (errors[i] >= 0):
                j += 1
            extrema.append(max(range(i, j), key=lambda k: abs(errors[k])))
            i = j
        while len(extrema) > n + 1:
            first, last = abs(errors[extrema[0]]), abs(errors[extrema[-1]])
            extrema.pop(0 if first < last else -1)
        if len(extrema) < n + 1:
            break
        points = [grid[k] for k in extrema]
        sizes = [abs(errors[k]) for k in extrema]
        if max(sizes) / min(sizes) < 1.0005:
            break
    return {**fixed, **dict(found)}, max(map(abs, errors))


def lawson(g, a, b, degree, weight, fixed, rounds):
    exponents = [e for e in range(degree + 1) if e not in fixed]
    n = len(exponents)
    count = 8 * n + 8
    xs = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * mp.mpf(2 * i + 1) /
                                             (2 * count))
          for i in range(count)]
    ys = [g(x) - sum(c * x**e for e, c in fixed.items()) for x in xs]
    ws = [mp.mpf(weight(x)) for x in xs]
    powers = [[x**e for e in exponents] for x in xs]
    shares, best = [mp.mpf(1) / count] * count, None
    for _ in range(rounds):
        k = [s * w * w for s, w in zip(shares, ws)]
        normal, right = mp.matrix(n, n), mp.matrix(n, 1)
        for i in range(n):
            right[i] = mp.fsum(k[r] * powers[r][i] * ys[r]
                               for r in range(count))
            for j in range(i, n):
                normal[i, j] = normal[j, i] = mp.fsum(
                    k[r] * powers[r][i] * powers[r][j] for r in range(count))
        c = mp.lu_solve(normal, right)
        errors = [abs(mp.fsum(c[j] * powers[r][j] for j in range(n)) - ys[r]) *
                  ws[r] for r in range(count)]
        largest = max(errors)
        if best is None or largest < best[1]:
            best = ([c[j] for j in range(n)], largest)
        shares = [s * (e / largest + mp.mpf("1e-4"))
                  for s, e in zip(shares, errors)]
        total = mp.fsum(shares)
        shares = [s / total for s in shares]
    return {**fixed, **dict(zip(exponents, best[0]))}, best[1]


def rounded(x, bits):
    if x == 0:
        return mp.mpf(0)
    mantissa, exponent = mp.frexp(mp.mpf(x))
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def fit(solve, g, a, b, degree, weight, bits, fixed):
    """Coefficients by exponent, rounded, and the error."""
    fixed = dict(fixed)
    todo = [e for e in range(degree + 1) if e not in fixed]
    found, error = solve(g, a, b, degree, weight, fixed)
    for e in todo[:-1]:
        fixed[e] = rounded(found[e], bits)
        found, error = solve(g, a, b, degree, weight, fixed)
    found[todo[-1]] = rounded(found[todo[-1]], bits)
    return found, error


def least_squares(rounds):
    def solve(*arguments):
        return lawson(*arguments, rounds)
    return solve


def tail(f, order, head, limit):
    """(f(x) - head(x)) / x^order, limit at 0."""
    return lambda x: (f(x) - head(x)) / x**order if abs(x) > TINY else limit


def odd(f, limit):
    """q of f(x) = x + x^3 q(x^2)."""
    def q(s):
        x = mp.sqrt(s)
        return (f(x) - x) / x**3 if s > TINY else limit
    return q


def floor_of(least, weight):
    return lambda x: max(weight(x), mp.mpf(least))


THIRD, HALF = mp.mpf(1) / 3, mp.mpf(1) / 2
LN2_HALF = mp.log(2) / 2 * mp.mpf("1.002")
EIGHTH = (mp.pi / 4 * mp.mpf("1.003"))**2
L16, L12, L8 = (least_squares(n) for n in (16, 12, 8))


def log1p_q(x):  # log(1 + x) = x - x^2 / 2 + x^3 q
    return (mp.log1p(x) - x + x**2 / 2) / x**3 if abs(x) > mp.mpf("1e-15") \
        else THIRD


def cos_q(s):  # cos(x) = 1 - s / 2 + s^2 q, s = x^2
    x = mp.sqrt(s)
    return (mp.cos(x) - 1 + s / 2) / s**2 if s > mp.mpf("1e-10") \
        else mp.mpf(1) / 24


def erf_q(s):  # erf(x) = x + x q
    x = mp.sqrt(s)
    return mp.erf(x) / x - 1 if s > TINY else 2 / mp.sqrt(mp.pi) - 1


def atanh_q(s):  # atanh(x) = x + x^3 / 3 + x^5 q
    x = mp.sqrt(s)
    return ((mp.atanh(x) - x) / x**3 - THIRD) / s if s > mp.mpf("1e-12") \
        else mp.mpf(1) / 5


def log_q(z):  # log(1 + f) = 2 s + s^3 q(s^2), s = f / (2 + f)
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / s**3 if z > TINY else 2 * THIRD


def over(f):
    return lambda x: 1 / f(x)


def power2(x):
    return mp.mpf(2)**x


def at_least(least):
    return lambda s: s if s > mp.mpf(least) else mp.mpf(least)


def around(center):
    def near(t):
        return mp.log(mp.erfc(t + center))

    def weight(t):
        return mp.erfc(t + center) / mp.erf(t + center)
    return near, weight


def erfcx_over(scale, c, center):
    """r P(r - center) = erfc(a) e^(a^2) for r = 1 / (a / scale + c)."""
    def p(v):
        a = (1 / (v + center) - c) * scale
        return mp.erfc(a) * mp.exp(a * a) / (v + center)
    return p


def kept_in_f16(p):
    """What an error of p is to x 2^p, over the least normal f16 below that."""
    def weight(x):
        y = x * mp.mpf(2)**p(x)
        return mp.log(2) * y / max(y, mp.mpf(2)**-14)
    return weight


def GELU_P(x):  # gelu(-x) = -x 2^p
    return mp.log(mp.erfc(x / mp.sqrt(2)) / 2, 2)


def GELU_TANH_P(x):  # likewise of gelu_tanh
    z = 2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
    return -mp.log(1 + mp.exp(z), 2)


S = floor_of("1e-10", lambda s: s)
ERFCX = erfcx_over(1, 2, mp.mpf("0.212890625"))
GELU = erfcx_over(1 / mp.sqrt(2), mp.mpf("2.75"), mp.mpf("0.15625"))
# name: solver, g, a, b, degree, weight, bits, fixed coefficients
ROWS = {
    "exp f32": (remez, mp.exp, -LN2_HALF, LN2_HALF, 6, over(mp.exp), 24,
                {0: 1, 1: 1}),
    "exp2 f32": (remez, power2, -HALF, HALF, 6, over(power2), 24, {0: 1}),
    "expm1 f32": (L12, tail(mp.expm1, 2, lambda x: x, HALF), -LN2_HALF,
                  LN2_HALF, 5, abs, 24, {}),
    "log f32": (L12, log1p_q, -THIRD, THIRD, 8, lambda x: x**2, 24, {}),
    "log1p f32": (L12, log1p_q, -HALF / 2, HALF, 7, lambda x: x**2, 24, {}),
    "sin f32": (remez, odd(mp.sin, -mp.mpf(1) / 6), mp.mpf(0), EIGHTH, 3, S,
                24, {}),
    "cos f32": (remez, cos_q, mp.mpf(0), EIGHTH, 2,
                floor_of("1e-10", lambda s: s * s), 24, {}),
    "tan f32": (remez, odd(mp.tan, THIRD), mp.mpf(0), EIGHTH, 6, S, 24, {}),
    "asin f32": (remez, odd(mp.asin, mp.mpf(1) / 6), mp.mpf(0),
                 mp.mpf("0.2501"), 5, S, 24, {}),
    "atan f32": (remez, odd(mp.atan, -THIRD), mp.mpf(0), mp.mpf(1), 7,
                 lambda s: max(s**1.5 / mp.atan(mp.sqrt(s)), mp.mpf("1e-10"))
                 if s else mp.mpf("1e-10"), 24, {}),
    "tanh f32": (remez, odd(mp.tanh, -THIRD), mp.mpf(0), mp.mpf("0.55")**2, 4,
                 S, 24, {}),
    "sinh f32": (remez, odd(mp.sinh, mp.mpf(1) / 6), mp.mpf(0), mp.mpf(1), 3,
                 S, 24, {}),
    "erf f32": (remez, erf_q, mp.mpf(0), mp.mpf("0.9219")**2, 6,
                lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)) if s
                else mp.mpf(".886"), 24, {}),
    "erfc f32": (remez, lambda x: mp.log(mp.erfc(x)), mp.mpf("0.9219"),
                 mp.mpf("3.93"), 7, lambda x: mp.erfc(x) / mp.erf(x), 24, {}),
    "erfcx f32": (L16, ERFCX, 1 / mp.mpf("12.3") - mp.mpf("0.212890625"),
                  HALF - mp.mpf("0.212890625"), 10, over(ERFCX), 24, {}),
    "gelu f32": (L16, GELU, 1 / mp.mpf("17.35") - mp.mpf("0.15625"),
                 1 / mp.mpf("2.75") - mp.mpf("0.15625"), 10, over(GELU), 24,
                 {}),
    "tanh coarse": (remez, odd(mp.tanh, -THIRD), mp.mpf(0), mp.mpf("0.0625"),
                    1, S, 24, {}),
    "erf coarse": (remez, lambda x: mp.log(mp.erfc(x), 2), HALF, mp.mpf(4), 5,
                   lambda x: mp.erfc(x) / mp.erf(x), 24, {}),
    "erf coarse, near 0": (remez, lambda s: 1 + erf_q(s), mp.mpf(0), HALF / 2,
                           3, over(lambda s: 1 + erf_q(s)), 24, {}),
    "gelu coarse": (least_squares(40), GELU_P, mp.mpf(0), mp.mpf(6), 5,
                    kept_in_f16(GELU_P), 24, {}),
    "gelu_tanh coarse": (least_squares(40), GELU_TANH_P, mp.mpf(0), mp.mpf(6),
                         7, kept_in_f16(GELU_TANH_P), 24, {}),
    "pow f32": (L12, atanh_q, mp.mpf(0), mp.mpf("0.04"), 3,
                lambda s: s * s if s > mp.mpf("1e-3") else mp.mpf("1e-6"), 24,
                {}),
    "exp f64": (L8, tail(mp.exp, 2, lambda x: 1 + x, HALF), -LN2_HALF,
                LN2_HALF, 10,
                lambda x: x * x if abs(x) > .01 else mp.mpf("1e-4"), 53,
                {0: HALF}),
    "exp2 f64": (L8, tail(power2, 1, lambda x: 1, mp.log(2)), -HALF, HALF, 10,
                 abs, 53, {}),
    "log f64": (L8, log_q, mp.mpf(0), mp.mpf("0.1717")**2, 6,
                at_least("1e-5"), 53, {}),
    "pow f64": (L8, atanh_q, mp.mpf(0), mp.mpf("0.17158")**2, 6,
                at_least("1e-4"), 53, {}),
    "sin f64": (L8, odd(mp.sin, -mp.mpf(1) / 6), mp.mpf(0), EIGHTH, 5,
                at_least("1e-3"), 53, {}),
    "cos f64": (L8, cos_q, mp.mpf(0), EIGHTH, 5,
                lambda s: s * s if s > .01 else mp.mpf("1e-4"), 53, {}),
    "tanh f64": (L8, odd(mp.tanh, -THIRD), mp.mpf(0), mp.mpf("0.551")**2, 11,
                 at_least("1e-3"), 53, {}),
    "erf f64": (L8, erf_q, mp.mpf(0), mp.mpf(1), 11, lambda s: 1, 53, {}),
    "erfc f64, to 2.5": (L8, around(1.75)[0], mp.mpf("-.75"), mp.mpf(".75"),
                         14, around(1.75)[1], 53, {}),
    "erfc f64, to 6": (L8, around(4.25)[0], mp.mpf("-1.75"), mp.mpf("1.75"),
                       13, around(4.25)[1], 53, {}),
}


def main():
    check = "--check" in sys.argv
    names = [n for n in sys.argv[1:] if n != "--check"] or list(ROWS)
    library = pathlib.Path(__file__).resolve().parent.parent / "lib/IR/library"
    text = "".join(p.read_text() for p in library.glob("math_*.hir"))
    missing = 0
    for name in names:
        solve, g, a, b, degree, weight, bits, fixed = ROWS[name]
        found, error = fit(solve, g, a, b, degree, weight, bits, fixed)
        print("%s: 2^%.1f" % (name, mp.log(error, 2)))
        for e in sorted(found, reverse=True):
            digits = "%.9g" if bits == 24 else "%.17g"
            number = digits % float(rounded(found[e], bits))
            lost = check and e not in fixed and number not in text
            missing += lost
            print("  x^%-2d %s%s" % (e, number,
                                     "  not in the library" if lost else ""))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
