# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether time and memory grow no faster than what is compiled.

For each dimension a module of SIZE and one of 10 * SIZE are made and given to
the tools. A line for each: processor time and peak memory of both, and the
larger over the smaller. Above --most (12) they are too much, and the exit
status is 1. Processor time, the least of --runs, less that of an empty module,
so that starting the tool does not hide what grows. With --instructions they are
counted, by valgrind, instead: slowly, but alike on a machine that is busy.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

# Below these a number says nothing.
LEAST_SECONDS = 0.02
LEAST_MIB = 16
LEAST_INSTRUCTIONS = 5e6


# --- Kernels ---

def kernel(body, params="inout a: f32[1024]"):
    return f"kernel k({params}) block(32) {{\n{body}}}\n"


def statements(n):
    return kernel("".join(f"  a[{i % 1024}] = {i % 7}.5\n" for i in range(n)))


def lets(n):
    body = "  let v0 = a[thread]\n"
    body += "".join(f"  let v{i + 1} = v{i} * 0.5\n" for i in range(n))
    return kernel(body + f"  a[thread] = v{n}\n")


def unrolled(n):
    return kernel(f"""  register s: f32 = 0
  for i in 0..{n} unroll {{
    s = s + a[i]
  }}
  a[thread] = s
""", f"inout a: f32[{n}]")


def unrolled_stores(n):
    return kernel(f"""  for i in 0..{n} unroll {{
    a[i % 1024] = f32(i)
  }}
""")


def conditions(n):
    return kernel("".join(f"""  if n > {i} {{
    a[{i % 1024}] = 1.0
  }}
""" for i in range(n)), "n: i32, inout a: f32[1024]")


def asserts(n):
    return kernel("".join(f"""  assert n > {i}, "small"
  a[n % {i % 1000 + 1}] = 1.0
""" for i in range(n)), "n: i32, inout a: f32[1024]")


def nested(n):
    # 50 deep, for the language has a bound of depth.
    text, depth = "", 50
    for block in range(n // depth):
        for d in range(depth):
            text += f"if n > {block + d} {{ \na[n % {d + 1}] = 1.0\n"
        text += "}\n" * depth
    return kernel(text, "n: i32, inout a: f32[1024]")


def loops(n):
    return kernel("".join(f"""  for i in 0..n / 100000 {{
    a[i] = {i % 9}.0
  }}
""" for i in range(n)), "n: i32, inout a: f32[1024]")


def functions(n):
    text = "fn g0(x: f32) -> f32 {\n  return x * 0.5\n}\n"
    for i in range(n):
        text += f"fn g{i + 1}(x: f32) -> f32 {{\n  return x + {i}.0\n}}\n"
    return text + kernel("".join(f"  a[{i % 1024}] = g{i}(1.0)\n"
                                 for i in range(n)))


def module_constants(n):
    text = "".join(f"const C{i} = {i}\n" for i in range(n))
    return text + kernel("".join(f"  a[C{i} % 1024] = 1.0\n"
                                 for i in range(n)))


def launches(n):
    text = kernel("  a[thread] = a[thread] + 1.0\n")
    text += "plan p(inout a: f32[1024]) {\n"
    return text + "  launch k(a)\n" * n + "}\n"


def workspaces(n):
    text = kernel("  b[thread] = a[thread] + 1.0\n",
                  "in a: f32[1024], out b: f32[1024]")
    text += "plan p(in a: f32[1024], out b: f32[1024]) {\n"
    for i in range(n):
        text += f"  workspace t{i}: f32[1024]\n"
        text += f"  launch k({'a' if i == 0 else f't{i - 1}'}, t{i})\n"
    return text + f"  launch k(t{n - 1}, b)\n}}\n"


# --- Graphs ---

def graph(params, outputs, lines):
    return f"graph main({params}) -> {outputs} {{\n{''.join(lines)}}}\n"


def chain(n):
    return graph("x: f32[64]", f"v{n}", ["  v0: f32[64] = exp(x)\n"] + [
        f"  v{i + 1}: f32[64] = exp(v{i})\n" for i in range(n)])


def products(n):
    return graph("x: f32[8, 8], w: f32[8, 8]", f"v{n}",
                 ["  v0: f32[8, 8] = exp(x)\n"] + [
                     f"  h{i}: f32[8, 8] = matmul(v{i}, w)\n"
                     f"  v{i + 1}: f32[8, 8] = relu(h{i})\n"
                     for i in range(n // 2)] +
                 [f"  v{n}: f32[8, 8] = add(v{n // 2}, x)\n"])


def residuals(n):
    return graph("x: f32[8, 8], w: f32[8, 8]", f"v{n // 4}",
                 ["  v0: f32[8, 8] = matmul(x, w)\n"] + [
                     f"  a{i}: f32[8, 8] = matmul(v{i}, w)\n"
                     f"  b{i}: f32[8, 8] = relu(a{i})\n"
                     f"  c{i}: f32[8, 8] = matmul(b{i}, w)\n"
                     f"  v{i + 1}: f32[8, 8] = add(c{i}, v{i})\n"
                     for i in range(n // 4)])


def norms(n):
    return graph("x: f32[8, 64, 1]", f"v{n // 5}", ["  v0 = exp(x)\n"] + [
        f"  m{i}: f32[8, 1] = reduce_max(v{i})\n"
        f"  r{i}: f32[8, 1, 1] = reshape(m{i})\n"
        f"  d{i}: f32[8, 64, 1] = sub(v{i}, r{i})\n"
        f"  e{i}: f32[8, 64, 1] = exp(d{i})\n"
        f"  v{i + 1}: f32[8, 64, 1] = mul(e{i}, d{i})\n"
        for i in range(n // 5)])


def wide(n):
    return graph("x: f32[64]", ", ".join(f"v{i}" for i in range(n)),
                 ["  h: f32[64] = exp(x)\n"] +
                 [f"  v{i}: f32[64] = exp(h)\n" for i in range(n)])


def constants(n):
    lines = [f"  const c{i}: f32[2] = [{i}.0, 1.0]\n" for i in range(n)]
    lines += ["  v0: f32[2] = exp(x)\n"]
    lines += [f"  v{i + 1}: f32[2] = {'maximum' if i % 2 else 'minimum'}(v{i}, c{i})\n"
              for i in range(n)]
    return graph("x: f32[2]", f"v{n}", lines)


def firings(n):
    lines = ["  v0: f32[64] = exp(x)\n"]
    lines += [f"  h{i}: f32[64] = neg(v{i})\n  v{i + 1}: f32[64] = neg(h{i})\n"
              for i in range(n // 2)]
    return graph("x: f32[64]", f"v{n // 2}", lines)


def graph_loops(n):
    lines = []
    for i in range(n // 10):
        lines.append(f"""  v{i + 1}: f32[8] = loop(v{i}, x) {{ steps = 9, states = 1, scanned = 0, body = graph(h: f32[8], x: f32[8]) -> g {{
    a: f32[8] = exp(h)
    b: f32[8] = exp(x)
    g: f32[8] = add(a, b)
  }} }}
""")
    return graph("x: f32[8], v0: f32[8]", f"v{n // 10}", lines)


def graph_inputs(n):
    names = ", ".join(f"x{i}: f32[8]" for i in range(n))
    return graph(names, f"v{n - 1}", ["  v0: f32[8] = exp(x0)\n"] + [
        f"  v{i}: f32[8] = add(v{i - 1}, x{i})\n" for i in range(1, n)])


def loop_body(n):
    lines = [f"    v{i + 1}: f32[64] = exp(v{i})\n" for i in range(n)]
    return graph("x: f32[64]", "y", [
        "  y: f32[64] = loop(x) { steps = 9, states = 1, scanned = 0, "
        f"body = graph(v0: f32[64]) -> v{n} {{\n", *lines, "  } }\n"])


def loop_steps(n):
    return graph("x: f32[64]", "y, z", [f"""  y: f32[64], z: f32[{n}, 64] = loop(x) {{ steps = {n}, states = 1, scanned = 0, body = graph(h: f32[64]) -> g, g {{
    g: f32[64] = exp(h)
  }} }}
"""])


def group(n):
    return graph("x: f32[64, 64]", f"v{n}",
                 ["  group {\n  anchor v0: f32[64, 64] = matmul(x, x)\n"] +
                 [f"  v{i + 1}: f32[64, 64] = exp(v{i})\n"
                  for i in range(n)] + ["  }\n"])


def task(name, n):
    text = f"task {name}(x: f32[..s]) -> y: f32[..s] {{\n"
    text += "  v0[..i] = x[..i]\n"
    text += "".join(f"  v{i + 1}[..i] = v{i}[..i] * 0.5\n" for i in range(n))
    return text + f"  y[..i] = v{n}[..i]\n}}\n"


def locals_of_task(n):  # A task has 500 names at most.
    return task("many", n // 250) + graph("x: f32[8]", "y", ["  y = many(x)\n"])


def tasks(n):
    count = n // 100
    text = "".join(task(f"t{i}", 96) for i in range(count))
    return text + graph("x: f32[8]", f"v{count}", ["  v0 = exp(x)\n"] + [
        f"  v{i + 1} = t{i}(v{i})\n" for i in range(count)])


def lowered(n):
    text = "fn g(x: f32) -> f32 {\n  let y = x * 2.0\n  return y + 1.0\n}\n"
    return text + kernel("".join(f"  a[{i % 1024}] = g(a[{i % 1000}])\n"
                                 for i in range(n)))


def numbers(n):
    listed = ", ".join(f"{i}.0" for i in range(n))
    return graph("x: f32[1]", "y",
                 [f"  const c: f32[{n}] = [{listed}]\n",
                  f"  y: f32[{n}] = add(x, c)\n"])


OPT, RUN = "hidet-opt", "hidet-run"
PTX = [OPT, "--emit=ptx", "--target=sm_90a", "-o", "/dev/null"]
LOWER = [OPT, "--lower", "-o", "/dev/null"]
PRINT = [OPT, "-o", "/dev/null"]
SIM = [RUN, "--device=sim", "-q", "--no-cache"]
SIM_N = SIM + ["--shape=n=1000000"]
REF = [RUN, "--device=ref", "-q"]
# What a model goes through, in its order.
PLAN = [OPT, "--target=sm_90a", "--expand", "--rewrite", "--fold-norms",
        "--fold-weights", "--choose-layouts", "--pair-products", "--fuse",
        "--schedule", "--early-launches", "-o", "/dev/null"]

DIMENSIONS = {
    "statements, text": (statements, PRINT),
    "statements, PTX": (statements, PTX),
    "statements, sim": (statements, SIM),
    "values, PTX": (lets, PTX),
    "values, sim": (lets, SIM),
    "unrolled iterations, PTX": (unrolled, PTX),
    "unrolled iterations, sim": (unrolled, SIM),
    "unrolled stores, PTX": (unrolled_stores, PTX),
    "unrolled stores, sim": (unrolled_stores, SIM),
    "conditions, PTX": (conditions, PTX),
    "conditions, sim": (conditions, SIM_N),
    "asserted facts, PTX": (asserts, PTX),
    "asserted facts, sim": (asserts, SIM_N),
    "nested conditions, PTX": (nested, PTX),
    "nested conditions, sim": (nested, SIM_N),
    "loops, PTX": (loops, PTX),
    "loops, sim": (loops, SIM_N),
    "functions, PTX": (functions, PTX),
    "functions, sim": (functions, SIM),
    "functions put in place, text": (lowered, LOWER),
    "module's constants, PTX": (module_constants, PTX),
    "launches, text": (launches, PRINT),
    "launches, sim": (launches, SIM),
    "workspaces, sim": (workspaces, SIM),
    "graph's chain, plan": (chain, PLAN),
    "graph's chain, sim": (chain, SIM),
    "graph's chain, ref": (chain, REF),
    "products, plan": (products, PLAN),
    "products, sim": (products, SIM),
    "residuals, plan": (residuals, PLAN),
    "norms, plan": (norms, PLAN),
    "graph's width, plan": (wide, PLAN),
    "graph's width, sim": (wide, SIM),
    "graph's constants, plan": (constants, PLAN),
    "graph's constants, sim": (constants, SIM),
    "rewrites' firings, plan": (firings, PLAN),
    "group's nodes, plan": (group, PLAN),
    "graph's loops, plan": (graph_loops, PLAN),
    "graph's inputs, plan": (graph_inputs, PLAN),
    "a loop's nodes, plan": (loop_body, PLAN),
    "a loop's steps, plan": (loop_steps, PLAN),
    "a loop's steps, sim": (loop_steps, SIM),
    "task's definitions, plan": (locals_of_task, PLAN),
    "task's definitions, ref": (locals_of_task, REF),
    "tasks, plan": (tasks, PLAN),
    "tasks, ref": (tasks, REF),
    "constant's elements, plan": (numbers, PLAN),
}



def empty(parts):
    if parts in (PLAN, REF):
        return chain(1)
    if parts == SIM_N:
        return kernel("  a[thread] = 1.0\n", "n: i32, inout a: f32[1024]")
    return kernel("  a[thread] = 1.0\n" if parts[0] == RUN else "")


# --- Measuring ---

def measure(command, timeout):
    """Seconds of processor time and MiB; None where it did not end well."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (timeout, timeout))
        os.execvp(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if status:
        return None
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def count(command, timeout):
    """Instructions, and no memory; None where it did not end well."""
    result = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no",
         "--cachegrind-out-file=/dev/null"] + command, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=50 * timeout)
    found = re.search(r"I +refs: +([0-9,]+)", result.stderr)
    if result.returncode or not found:
        return None
    return int(found[1].replace(",", "")), 0


def best(command, args):
    one = count if args.instructions else measure
    results = [one(command, args.timeout) for _ in range(args.runs)]
    if None in results:
        return None
    return tuple(min(values) for values in zip(*results))


def write(folder, text):
    path = os.path.join(folder, "module.hir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def command_of(tools, parts, path):
    return [str(pathlib.Path(tools) / parts[0])] + parts[1:] + [path]


def grows(small, large, args):
    """How much faster than nothing: large over small."""
    return large / max(small, LEAST_INSTRUCTIONS if args.instructions
                       else LEAST_SECONDS)


def dimension(name, args, folder, base):
    make, parts = DIMENSIONS[name]
    results = []
    for size in (args.size, 10 * args.size):
        path = write(folder, make(size))
        result = best(command_of(args.tools, parts, path), args)
        if result is None:
            return {"name": name, "failed": size}
        results.append(result)
    (s, small), (t, large) = results
    s0, small0 = base[tuple(parts)]
    return {"name": name, "seconds": [s, t], "mib": [small, large],
            "time": grows(s - s0, t - s0, args),
            "memory": (large - small0) / max(small - small0, LEAST_MIB)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--size", type=int, default=10000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--most", type=float, default=12)
    parser.add_argument("--timeout", type=int, default=300,
                        help="seconds of processor time")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("names", nargs="*", help="dimensions; default: all")
    args = parser.parse_args()
    names = [name for name in DIMENSIONS
             if not args.names or any(part in name for part in args.names)]
    rows, ok = [], True
    with tempfile.TemporaryDirectory() as folder:
        base = {tuple(parts): best(command_of(args.tools, parts,
                                              write(folder, empty(parts))),
                                   args)
                for parts in (DIMENSIONS[name][1] for name in names)}
        for name in names:
            row = dimension(name, args, folder, base)
            rows.append(row)
            if "failed" in row:
                print(f"{name:28} failed at {row['failed']}", flush=True)
                ok = False
                continue
            bad = row["time"] > args.most or row["memory"] > args.most
            ok &= not bad
            (s, t), (small, large) = row["seconds"], row["mib"]
            if args.instructions:
                print(f"{name:28} {s / 1e6:7.1f} {t / 1e6:8.1f} million "
                      f"{row['time']:6.1f} x{'  *' if bad else ''}", flush=True)
                continue
            print(f"{name:28} {s:7.2f} {t:8.2f} s {row['time']:6.1f} x"
                  f" {small:8.0f} {large:8.0f} MiB {row['memory']:6.1f} x"
                  f"{'  *' if bad else ''}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
