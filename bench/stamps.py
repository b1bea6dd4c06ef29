# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the time between kernels goes, by clocks read inside them: BERT's layers
for 128 tokens in f16 as the compiler schedules them, in one CUDA graph.

usage: stamps.py [--tools=DIR] [--device=cuda] [--layers=12] [--json=FILE]
                 [--load=TEMPLATE.hir]... [--text=FILE.hir]

The graph is compiled to a plan and kernels, as text; into that text go
statements that store the clocks of thread 0 of each block, in the launches of
the layer in the middle. A line a launch: cycles from the return of
griddepcontrol_wait() to the first chunk of a product, to the end of its sums and
to the end of the block (of the blocks the median, and the greatest), and
nanoseconds from the last block's end of the launch before to the wait's return.
The plan is recorded and replayed as it is when it is timed (hidet-run --bench,
whose outputs are the last replay's); that time, without stamps, is told, too.
What a template of products has no place for is left out. --text writes the
plan with its stamps, and runs nothing.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

TOKENS, WIDTH, WIDE, HEADS = 128, 768, 3072, 12
FIRST, SUMS, END = "first chunk", "sums", "end"
SLOTS = {FIRST: 2, SUMS: 3, END: 4}


# --- The graph ---

LAYER = """
  p{i}: f16[{m}, {qkv}] = matmul(x{i}, wq{i})
  pb{i}: f16[{m}, {qkv}] = add(p{i}, bq{i})
  pr{i}: f16[{m}, 3, {h}, 64] = reshape(pb{i})
  pt{i}: f16[3, {h}, {m}, 64] = transpose(pr{i}) {{ order = [1, 2, 0, 3] }}
  q{i}: f16[1, {h}, {m}, 64] = slice(pt{i}) {{ start = [0, 0, 0, 0], stride = [1, 1, 1, 1], size = [1, {h}, {m}, 64] }}
  k{i}: f16[1, {h}, {m}, 64] = slice(pt{i}) {{ start = [1, 0, 0, 0], stride = [1, 1, 1, 1], size = [1, {h}, {m}, 64] }}
  v{i}: f16[1, {h}, {m}, 64] = slice(pt{i}) {{ start = [2, 0, 0, 0], stride = [1, 1, 1, 1], size = [1, {h}, {m}, 64] }}
  s{i}: f32[1, {h}, {m}, {m}] = matmul(q{i}, k{i}) {{ tb = true, R = f32 }}
  ss{i}: f32[1, {h}, {m}, {m}] = mul(s{i}, scale)
  r{i}: f32[1, {h}, {m}, {m}] = softmax(ss{i}) {{ s = 3 }}
  rc{i}: f16[1, {h}, {m}, {m}] = cast(r{i})
  a{i}: f16[1, {h}, {m}, 64] = matmul(rc{i}, v{i})
  at{i}: f16[1, {m}, {h}, 64] = transpose(a{i}) {{ order = [0, 2, 1, 3] }}
  o{i}: f16[{m}, {n}] = reshape(at{i})
  d{i}: f16[{m}, {n}] = matmul(o{i}, wp{i})
  db{i}: f16[{m}, {n}] = add(d{i}, bp{i})
  dx{i}: f16[{m}, {n}] = add(db{i}, x{i})
  y{i}: f16[{m}, {n}] = layer_norm(dx{i}, g{i}, c{i}) {{ s = 1, epsilon = 1.0e-5, count = {n} }}
  up{i}: f16[{m}, {w}] = matmul(y{i}, wu{i})
  ub{i}: f16[{m}, {w}] = add(up{i}, bu{i})
  ug{i}: f16[{m}, {w}] = gelu(ub{i})
  e{i}: f16[{m}, {n}] = matmul(ug{i}, wd{i})
  eb{i}: f16[{m}, {n}] = add(e{i}, bd{i})
  ey{i}: f16[{m}, {n}] = add(eb{i}, y{i})
  x{next}: f16[{m}, {n}] = layer_norm(ey{i}, h{i}, j{i}) {{ s = 1, epsilon = 1.0e-5, count = {n} }}
"""
WEIGHTS = {"wq": [WIDTH, 3 * WIDTH], "bq": [3 * WIDTH], "wp": [WIDTH, WIDTH],
           "bp": [WIDTH], "g": [WIDTH], "c": [WIDTH], "wu": [WIDTH, WIDE],
           "bu": [WIDE], "wd": [WIDE, WIDTH], "bd": [WIDTH], "h": [WIDTH],
           "j": [WIDTH]}


def graph(layers):
    inputs = ["x0: f16[%d, %d]" % (TOKENS, WIDTH)] + [
        "%s%d: f16[%s]" % (name, i, ", ".join(map(str, shape)))
        for i in range(layers) for name, shape in WEIGHTS.items()]
    return "graph main(%s) -> x%d {\n  const scale: f32[] = 0.125%s}\n" % (
        ", ".join(inputs), layers, "".join(
            LAYER.format(i=i, next=i + 1, m=TOKENS, n=WIDTH, qkv=3 * WIDTH,
                         w=WIDE, h=HEADS) for i in range(layers)))


# --- The stamps ---

def stamp(indent, slot, clock, more=""):
    return "%sif thread == 0%s {\n%s  stamps[block, %d] = %s()\n%s}\n" % (
        indent, more, indent, slot, clock, indent)


def put(text, pattern, *stamps):
    """Stamps behind the first line that is like that."""
    found = re.search(r"(?m)^( *)%s\n" % pattern, text)
    if not found:
        return text, False
    return (text[:found.end()] + "".join(
        stamp(found[1], *each) for each in stamps) + text[found.end():]), True


def stamped(kernel):
    """The kernel with one parameter more, its blocks, and what it stamps."""
    grid = re.search(r"\) grid\((.*?)\) block\(", kernel)
    blocks = eval(grid[1].replace("/", "//"))
    kernel = kernel.replace(
        ") grid(", ", out stamps: u64[%d, 8]) grid(" % blocks, 1)
    kernel, waits = put(kernel, r"griddepcontrol_wait\(\)", (0, "globaltimer"),
                        (1, "clock64"))
    has = []
    at = kernel.find("register sum")
    if "wgmma" in kernel and at > kernel.find("griddepcontrol_wait") >= 0:
        head, tail = kernel[:at], kernel[at:]
        wait = r"mbarrier_wait\(full\[s\], phase\)"
        step = re.search(r"for (\w+) in [^{}]*\{\s*" + wait, tail)
        tail, first = put(tail, wait, (SLOTS[FIRST], "clock64",
                                       " && %s == 0" % step[1]))
        tail, sums = put(tail, r"wgmma_wait\(0, \d+, sum\[0, 0\]\)",
                         (SLOTS[SUMS], "clock64"))
        kernel, has = head + tail, [FIRST] * first + [SUMS] * sums
    end = kernel.rindex("\n}")
    kernel = (kernel[:end + 1] + stamp("  ", SLOTS[END], "clock64") +
              stamp("  ", 5, "globaltimer") + kernel[end + 1:])
    return kernel, blocks, (has + [END] if waits else [])


def stamp_plan(text, layers):
    """The text with stamps, and the launches that have them: name, output and
    what is stamped."""
    pieces = re.split(r"(?m)^(?=kernel |plan )", text)
    kernels, plan = {}, None
    for i, piece in enumerate(pieces):
        if piece.startswith("plan "):
            plan = i
        elif re.match(r"kernel \w+\(", piece):
            name = re.match(r"kernel (\w+)", piece)[1]
            pieces[i], *kernels[name] = stamped(piece)
    count = pieces[plan].count("\n  launch ")
    each = count // layers
    middle = range(layers // 2 * each, layers // 2 * each + each)
    launches, outputs, number = [], [], 0

    def change(found):
        nonlocal number
        name, chosen = found[1], number in middle
        blocks, has = kernels[name]
        output = "stamps_%d" % number if chosen else "unused_%s" % name
        declared = "out %s: u64[%d, 8]" % (output, blocks)
        if declared not in outputs:
            outputs.append(declared)
        if chosen:
            launches.append((name, output, has))
        number += 1
        return "launch %s(%s, %s)" % (name, found[2], output)

    body = re.sub(r"launch (\w+)\((.*?)\)", change, pieces[plan])
    pieces[plan] = body.replace(") {", ", %s) {" % ", ".join(outputs), 1)
    return "".join(pieces), launches


# --- What they say ---

def report(launches, read):
    rows, previous = [], None
    for name, output, has in launches:
        s = read(output).astype("i8")
        row = {"kernel": name, "blocks": len(s), "cycles": {}}
        for what in has:
            since = s[:, SLOTS[what]] - s[:, 1]
            row["cycles"][what] = [int(numpy.median(since)), int(since.max())]
        if has and previous is not None:
            row["ns_since_end_before"] = int(numpy.median(s[:, 0]) - previous)
        previous = s[:, 5].max()
        rows.append(row)
        print("%-46s %4d blocks, cycles from the wait: %s%s" % (
            name, len(s), ", ".join("%s %d (%d)" % (what, *row["cycles"][what])
                                    for what in has),
            "; %d ns after the last end before it" % row["ns_since_end_before"]
            if "ns_since_end_before" in row else ""), flush=True)
    products = [row for row in rows if FIRST in row["cycles"]]
    if products:
        between = [row["ns_since_end_before"] for row in products
                   if "ns_since_end_before" in row]
        print("products: at most %d cycles from the wait to the first chunk "
              "(medians), %s ns from the last end before to the wait's return"
              % (max(row["cycles"][FIRST][0] for row in products),
                 " ".join(map(str, between))))
    return rows


def run(*command):
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr[-3000:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--load", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("--text")
    options = parser.parse_args()
    tools = pathlib.Path(options.tools)
    load = ["--load=" + path for path in options.load]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "graph.hir").write_text(graph(options.layers))
        run(str(tools / "hidet-opt"), *load, "--target=sm_90a", "--rewrite",
            "--prepare", "--fuse", "--schedule", "--early-launches",
            str(folder / "graph.hir"), "-o", str(folder / "plan.hir"))
        text, launches = stamp_plan((folder / "plan.hir").read_text(),
                                    options.layers)
        if options.text:
            pathlib.Path(options.text).write_text(text)
            return
        (folder / "stamped.hir").write_text(text)
        json_file = folder / "bench.json"
        on = "--device=" + options.device
        run(str(tools / "hidet-run"), "-q", on, "--bench=5",
            str(folder / "stamped.hir"), *("--output=%s=@%s" % (output, folder / (output + ".npy"))
              for _, output, _ in launches))
        rows = report(launches, lambda output: numpy.load(
            folder / (output + ".npy")))
        if options.device == "cuda":
            run(str(tools / "hidet-run"), "-q", on, str(folder / "plan.hir"),
                "--bench=50", "--json=%s" % json_file)
            took = json.loads(json_file.read_text())["median_ms"]
            print("%d layers without stamps: %.4f ms" % (options.layers, took))
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
