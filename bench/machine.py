# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a GPU takes for one load, barrier, copy or launch at a time, beside what
the table of machines has (lib/Schedule/Template/Machines.def), which is what it
takes among all those of a kernel: the ratio of two GPUs is what the table needs.

usage: machine.py [--tools=DIR] [--device=cuda] [--table=FILE] [--sm=90] [--json=FILE]

Kernels read the clock around many of the same: loads of which each says where
the next is, from the L2 cache and from memory behind a flush of the cache;
shuffles, exchanges of a number by shared memory among 2 to 32 warps, and what of
that is not issue; barriers of 8 blocks of a cluster, and exchanges of a number
among them; multiprocessors that clusters reach; copies of 16 bytes; what a block
reads of the L2 cache where all do, and of memory where none else does. Launches
of a graph: 160 against 32, of a warp each. One line a property: measured, the
table's number, their ratio. --device=sim: that it runs.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

import numpy

TABLE = pathlib.Path(__file__).resolve().parent.parent / "lib/Schedule/Template/Machines.def"
TIMES = 256  # Of whatever is timed, in a row.
FEW, MANY = 32, 160  # Launches.
CLUSTERS = (2, 4, 8, 16)  # Blocks.
NAPS = 300  # Microseconds that a block stays, about.
WARPS = (2, 4, 8, 16, 32)  # Of a block, that exchange a number.
MEET_ISSUE, SCHEDULERS = 14, 4  # RowsPrice.c: a warp issues so many, and two a warp.
RING = 8  # Boxes that the copy engine has under way.

CHASE = """kernel fill_{name}(out ring: i32[{size}]) grid({nodes} / 256) block(256) {{
  let i = block * 256 + thread
  ring[i * {stride}] = (i * 5 + 1) % {nodes} * {stride}
}}
kernel {name}(in ring: i32[{size}], out cycles: u64[1], out last: i32[1]) grid(1) block(1) {{
  register at: i32 = 0
  for i in 0..{warm} {{
    at = ring[at]
  }}
  let begun = clock64()
  for i in 0..{times} unroll(8) {{
    at = ring[at]
  }}
  last[0] = at
  cycles[0] = (clock64() - begun) / {times}
}}
"""

# What a block reads of all that there is, 16 bytes a thread at a time.
STREAM = """kernel {name}(in x: f32[{size}], out cycles: u64[{blocks}], out sums: f32[{blocks}, 1024])
  grid({blocks}) block(1024) {{
  register sum: f32[4] = 0
  barrier()
  let begun = clock64()
  for i in 0..{times} unroll(16) {{
    let read = x[((i * {blocks} + block) * 1024 + thread) * 4 % {size} +: 4]
    sum[0 +: 4] = sum[0 +: 4] + read
  }}
  sums[block, thread] = sum[0] + sum[1] + sum[2] + sum[3]
  barrier()
  if thread == 0 {{
    cycles[block] = clock64() - begun
  }}
}}
"""

# Likewise by the copy engine, boxes of 16 KiB, `ring` of them under way: those of
# a block, or, `shared`, the same ones for all blocks.
ENGINE = """kernel {name}(in x: f32[{rows}, 32], out cycles: u64[{blocks}], map from: x box(128, 32) swizzle(128))
  grid({blocks}) block(32) {{
  shared tile: f32[{ring}, 128, 32] layout(row, swizzle(128)) align(1024)
  shared full: mbarrier[{ring}]
  if thread == 0 {{
    for s in 0..{ring} {{
      mbarrier_init(full[s], 1)
    }}
    fence_mbarrier_init()
    let begun = clock64()
    for i in 0..{times} + {ring} {{
      if i >= {ring} {{
        mbarrier_wait(full[i % {ring}], (i / {ring} + 1) % 2)
      }}
      if i < {times} {{
        mbarrier_arrive_expect(full[i % {ring}], 16384)
        tma_load(tile[i % {ring}, 0, 0], from, full[i % {ring}], {at} * 128 % {rows}, 0)
      }}
    }}
    cycles[block] = clock64() - begun
  }}
}}
"""

FLUSH = """kernel flush(out x: f32[{size}]) grid({size} / 4096) block(1024) {{
  x[(block * 1024 + thread) * 4 +: 4] = f32x4(1.0)
}}
"""

SMALL = """kernel shuffles(out cycles: u64[1], out last: f32[32]) grid(1) block(32) {{
  register x: f32 = f32(thread)
  let begun = clock64()
  for i in 0..{times} unroll(8) {{
    x = x + shfl_xor(x, 16)
  }}
  last[thread] = x
  if thread == 0 {{
    cycles[0] = (clock64() - begun) / {times}
  }}
}}
kernel clusters(out cycles: u64[1]) grid(8) block(128) cluster(8) {{
  cluster_sync()
  let begun = clock64()
  for i in 0..{times} {{
    cluster_arrive()
    cluster_wait()
  }}
  if block == 0 && thread == 0 {{
    cycles[0] = (clock64() - begun) / {times}
  }}
}}
kernel exchanges(out cycles: u64[1], out last: f32[8]) grid(8) block(128) cluster(8) {{
  shared parts: f32[2, 8]
  register x: f32 = f32(thread)
  cluster_sync()
  let begun = clock64()
  for i in 0..{times} {{
    if thread == 0 {{
      for to in 0..8 {{
        store_remote(parts[i % 2, block], to, x)
      }}
    }}
    cluster_sync()
    register all: f32 = 0
    for from in 0..8 unroll {{
      all = all + parts[i % 2, from]
    }}
    x = all
  }}
  if thread == 0 {{
    last[block] = x
  }}
  if block == 0 && thread == 0 {{
    cycles[0] = (clock64() - begun) / {times}
  }}
}}
kernel copies(in x: f32[{copied}], out cycles: u64[1], out last: f32[128]) grid(1) block(32) {{
  shared there: f32[128]
  let begun = clock64()
  for i in 0..{times} unroll(8) {{
    cp_async(there[thread * 4], x[(i * 32 + thread) * 4], 16)
  }}
  let issued = clock64()
  cp_async_wait_all()
  last[thread] = there[thread * 4]
  if thread == 0 {{
    cycles[0] = (issued - begun) / {times}
  }}
}}
"""

MEET = """kernel meet_{warps}(out cycles: u64[1], out last: f32[{threads}]) grid(1) block({threads}) {{
  shared sums: f32[2, {warps}]
  register x: f32 = f32(thread)
  barrier()
  let begun = clock64()
  for i in 0..{times} {{
    if lane == 0 {{
      sums[i % 2, warp] = x
    }}
    barrier()
    register all: f32 = 0
    for w in 0..{warps} unroll {{
      all = all + sums[i % 2, w]
    }}
    x = all
  }}
  last[thread] = x
  if thread == 0 {{
    cycles[0] = (clock64() - begun) / {times}
  }}
}}
"""

# A multiprocessor has one block at a time, which stays for some time: those that
# have begun by then are as many as clusters of that size reach.
REACH = """kernel reach_{cluster}(out begun: u64[{blocks}]) grid({blocks}) block(32) cluster({cluster}) max_blocks(1) {{
  if thread == 0 {{
    begun[block] = globaltimer()
    for i in 0..{naps} {{
      nanosleep(1000)
    }}
  }}
}}
"""

LAUNCHES = """kernel count(inout x: f32[32]) grid(1) block(32) {{
  {wait}x[thread] = x[thread] + 1
}}
plan main(inout x: f32[32]) {{
{launches}
}}
"""


def plan(small, blocks):
    """The text of all that reads clocks, and of each output how long it is."""
    l2 = dict(name="l2", nodes=8192, stride=128, warm=8192, times=TIMES)
    far = dict(name="far", nodes=4096 if small else 131072,
               stride=64 if small else 2048, warm=0, times=TIMES)
    flushed = 1 << (16 if small else 26)
    lines, text, outputs = [], "", {}

    def launch(kernel, *given, **results):
        for name, (kind, *shape) in results.items():
            outputs[name] = "%s[%s]" % (kind, ", ".join(map(str, shape)))
        lines.append("  launch %s(%s)" % (kernel, ", ".join([*given, *results])))

    for ring in (l2, far):
        ring["size"] = ring["nodes"] * ring["stride"]
        text += CHASE.format(**ring)
        lines.append("  workspace ring_%(name)s: i32[%(size)d]" % ring)
        lines.append("  launch fill_%(name)s(ring_%(name)s)" % ring)
    text += FLUSH.format(size=flushed)
    lines += ["  workspace flushed: f32[%d]" % flushed, "  launch flush(flushed)"]
    launch("far", "ring_far", far_cycles=("u64", 1), far_last=("i32", 1))
    launch("l2", "ring_l2", l2_cycles=("u64", 1), l2_last=("i32", 1))
    # The end of what was flushed is in the cache, its beginning is not.
    for name, size, count in (("near", 1 << 14 if small else 1 << 21, blocks),
                              ("path", 1 << 15 if small else 1 << 22, 1)):
        text += STREAM.format(name=name, size=size, blocks=count, times=TIMES)
        lines.append("  view of_%s: f32[%d] = flushed@[%d]" % (
            name, size, 0 if name == "path" else flushed - size))
        launch(name, "of_" + name, **{name + "_cycles": ("u64", count),
                                      name + "_sums": ("f32", count, 1024)})
    size = 1 << 16 if small else 1 << 21
    lines.append("  view boxes: f32[%d, 32] = flushed@[%d]" % (size // 32, flushed - size))
    for name, at in (("engine", "(i * %d + block)" % blocks), ("engine_shared", "i")):
        text += ENGINE.format(name=name, rows=size // 32, blocks=blocks, times=TIMES,
                              ring=RING, at=at)
        launch(name, "boxes", **{name + "_cycles": ("u64", blocks)})
    text += SMALL.format(times=TIMES, copied=TIMES * 128)
    launch("shuffles", shuffle_cycles=("u64", 1), shuffle_last=("f32", 32))
    launch("clusters", cluster_cycles=("u64", 1))
    launch("exchanges", exchange_cycles=("u64", 1), exchange_last=("f32", 8))
    lines.append("  view copied: f32[%d] = flushed@[%d]" % (
        TIMES * 128, flushed - TIMES * 128))
    launch("copies", "copied", copy_cycles=("u64", 1), copy_last=("f32", 128))
    for warps in WARPS:
        text += MEET.format(warps=warps, threads=32 * warps, times=TIMES)
        launch("meet_%d" % warps, **{"meet_%d_cycles" % warps: ("u64", 1),
                                     "meet_%d_last" % warps: ("f32", 32 * warps)})
    for cluster in CLUSTERS:
        count = 2 * -(-blocks // 16) * 16
        text += REACH.format(cluster=cluster, blocks=count, naps=1 if small else NAPS)
        launch("reach_%d" % cluster, **{"reach_%d_cycles" % cluster: ("u64", count)})
    head = ", ".join("out %s: %s" % item for item in outputs.items())
    return text + "plan main(%s) {\n%s\n}\n" % (head, "\n".join(lines))


def run(options, path, *more):
    done = subprocess.run([str(pathlib.Path(options.tools) / "hidet-run"), "-q",
                           "--device=" + options.device, str(path), *more],
                          text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])


def clocks(options, folder):
    """Cycles and rates by the table's names."""
    path, small = folder / "clocks.hir", options.device != "cuda"
    path.write_text(plan(small, options.blocks))
    names = ["l2", "far", "near", "path", "engine", "engine_shared", "shuffle", "cluster",
             "exchange", "copy", *("meet_%d" % warps for warps in WARPS)]
    names += ["reach_%d" % cluster for cluster in CLUSTERS]
    run(options, path, *["--output=%s_cycles=@%s" % (name, folder / (name + ".npy"))
                         for name in names])
    arrays = {name: numpy.load(folder / (name + ".npy")) for name in names}
    took = {name: float(numpy.median(array)) for name, array in arrays.items()}
    reached = {cluster: int((array - array.min() < NAPS * 500).sum())
               for cluster in CLUSTERS for array in [arrays["reach_%d" % cluster]]}
    streamed = TIMES * 16384
    return {"l2_cycles": took["l2"], "memory_cycles": took["far"],
            "l2": streamed / took["near"],
            "l2 by the copy engine": streamed / took["engine"],
            "l2_shared": streamed / took["engine_shared"],
            "bytes from memory, alone": streamed / took["path"],
            "lane_cycles": took["shuffle"],
            **{"exchange of %d warps" % warps: took["meet_%d" % warps] for warps in WARPS},
            **{"beside issue": statistics.median(
                took["meet_%d" % warps] - warps * (MEET_ISSUE + 2 * warps) / SCHEDULERS
                for warps in WARPS)},
            "cluster_cycles": took["cluster"],
            "exchange_cycles": took["exchange"],
            "copy_issue": took["copy"],
            **{"reached by %d" % cluster: count for cluster, count in reached.items()}}


def launches(options, folder, early):
    """Microseconds of a launch more in a graph."""
    took = []
    for count in (FEW, MANY):
        path, report = folder / "launches.hir", folder / "report.json"
        path.write_text(LAUNCHES.format(
            wait="griddepcontrol_launch()\n  griddepcontrol_wait()\n  " if early else "",
            launches="\n".join(["  launch count(x)%s" % (" programmatic" if early else "")]
                               * count)))
        run(options, path, "--bench=20", "--json=%s" % report)
        took.append(json.loads(report.read_text())["median_ms"] * 1000)
    return (took[1] - took[0]) / (MANY - FEW)


def table_of(path, sm):
    """The numbers of Machines.def for an architecture."""
    order, found = [], {}
    for kind, text in re.findall(r"^HD_(MACHINE|ALIKE)\((.*?), +\"", path.read_text(), re.M):
        _, field, *values = [part.strip() for part in text.split(",")]
        order = [int(v) for v in values] if field == "sm" else order
        value = values[0] if kind == "ALIKE" else values[order.index(sm)]
        if re.fullmatch(r"[\d.]+", value):
            found[field] = float(value)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    parser.add_argument("--sm", type=int, default=90)
    parser.add_argument("--json")
    options = parser.parse_args()
    table = table_of(options.table, options.sm)
    options.blocks = int(table["count"]) if options.device == "cuda" else 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = clocks(options, folder)
        found["launch"] = launches(options, folder, False)
        found["launch, early"] = launches(options, folder, True)
    for field, value in found.items():
        known = table.get(field)
        print("%-24s %8.2f" % (field, value) +
              (" %8.2f %6.2f" % (known, value / known) if known else ""))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            [{"property": field, "measured": round(value, 3), "table": table.get(field)}
             for field, value in found.items()], indent=1) + "\n")


if __name__ == "__main__":
    main()
