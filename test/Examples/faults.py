# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults planted in Hopper's example kernels, each of which the simulator's
checks must find and name.

usage: faults.py [--tools=DIR]

A row of FAULTS takes one line out of a kernel or changes one. The kernel then
runs under --sanitize, with asynchronous effects at the latest and at the
earliest moment; it must end with exit 3, and the error that the row names must
be among those that it reports. Without a fault there must be none.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))
import run  # noqa: E402

SIZES = {"matmul_wgmma": (300, 264, 400), "rms_norm_cluster": (3, 1237),
         "copy_tma": (200, 520), "bert_layer": (128, 256, 512)}
# Few blocks, so that each walks around its ring.
SMALLER = {"copy_tma": ("min(4 * device.sms, ", "min(2, ")}

# kernel, what is wrong, text, what stands there instead, error, what it says
# (a regular expression)
FAULTS = [
    ("matmul_wgmma", "products that do not wait for their operands",
     "        mbarrier_wait(full[s], phase)\n", "",
     "E0705", "a bulk copy"),
    ("matmul_wgmma", "the other phase is waited for",
     "mbarrier_wait(full[s], phase)", "mbarrier_wait(full[s], phase ^ 1)",
     "E0705", "a bulk copy"),
    ("matmul_wgmma", "loads that wait for a phase that never comes",
     "mbarrier_wait(empty[s], phase ^ 1)", "mbarrier_wait(empty[s], phase)",
     "E0706", "mbarrier 'empty'"),
    ("matmul_wgmma", "loads that do not wait for a free stage",
     "          mbarrier_wait(empty[s], phase ^ 1)\n", "",
     "E0704", "mbarrier 'full'"),
    ("matmul_wgmma", "fewer bytes expected than come",
     "(BM + BN) * BK * 2)", "BM * BK * 2)",
     "E0705", "bulk copy|phase of mbarrier 'full'"),
    ("matmul_wgmma", "more bytes expected than come",
     "(BM + BN) * BK * 2)", "(BM + BN) * BK * 2 + 16)",
     "E0706", "mbarrier"),
    ("matmul_wgmma", "sums that are used before they are there",
     "      wgmma_wait(0, BN, sum[0, 0])\n", "",
     "E0705", "wgmma_wait"),
    ("matmul_wgmma", "a stage that is freed while products read it",
     "        wgmma_wait(1, BN, sum[0, 0])\n", "",
     "E0705", "may still be reading"),
    ("matmul_wgmma", "a stage that is freed a step too early",
     "if t > 0 && id < 2 {\n"
     "          mbarrier_arrive_remote_relaxed(empty[ring_before(STAGES, s)]",
     "if id < 2 {\n"
     "          mbarrier_arrive_remote_relaxed(empty[s]",
     "E0705", "may still be reading"),
    ("matmul_wgmma", "products without a fence",
     "        wgmma_fence()\n", "",
     "E0711", "wgmma_fence"),
    ("matmul_wgmma", "a block that ends while the other copies into it",
     "  cluster_sync()\n}", "}",
     "E0714", "may have ended"),
    ("matmul_wgmma", "a cluster that does not wait for its barriers",
     "  cluster_sync()\n  if warpgroup == 0", "  if warpgroup == 0",
     "E0704", "no mbarrier"),
    ("matmul_wgmma", "a box that is not in the tensor",
     " + cluster * BM, m - 1)", " + cluster * BM, m + 500)",
     "E0701", "map 'map_a'"),
    ("rms_norm_cluster", "a sum that is read before it is there",
     "  cluster_sync()\n  // Lanes 0", "  // Lanes 0",
     "E070", "'warps'"),
    ("rms_norm_cluster", "a block that ends while its sum is read",
     "  cluster_wait() // Nobody ends while its sums are read.\n", "",
     "E0714", "may have ended"),
    ("copy_tma", "a tile stored before it has been loaded",
     "        mbarrier_wait(full[j % STAGES], j / STAGES % 2)\n", "",
     "E0705", "a bulk copy"),
    ("copy_tma", "a tile loaded over one that is being stored",
     "bulk_wait_read(STAGES - AHEAD - 1)", "bulk_wait_read(STAGES - AHEAD)",
     "E0705", "bulk_wait_read"),
    ("bert_layer", "a chunk of the ring that is filled while products read it",
     "        wgmma_wait(1, BN, sum[0, 0])\n", "",
     "E0705", "may still be reading"),
    ("bert_layer", "statistics that are used before all are there",
     "  if !EARLY {\n    griddepcontrol_launch()\n  }\n  barrier()\n\n  for at",
     "  barrier_sync(1 + warpgroup, 128)\n\n  for at",
     "E070", "'norm'|'tile'"),
    ("bert_layer", "sums that are used before they have come",
     "  mbarrier_wait(landed, 0)\n", "",
     "E0705", "a store_async_remote into|a bulk copy into"),
    ("bert_layer", "sums that are pushed without a fence between the proxies",
     "      fence_proxy_async()\n", "",
     "E0711", "fence_proxy_async"),
    ("bert_layer", "sums that are pushed before all have been written",
     "      barrier_sync(1, 2 * BM)\n", "",
     "E070", "'part'"),
    ("bert_layer", "a block that ends while its sums are copied",
     "    cluster_wait() // Nobody ends while its sums are being copied.\n", "",
     "E0714", "may have ended"),
    ("bert_layer", "fewer bytes expected than are sent",
     "mbarrier_arrive_expect(landed, (PUSH ? BM - own : BM) * BN * 4)",
     "mbarrier_arrive_expect(landed, own * BN * 4)",
     "E070", "mbarrier 'landed'|into block"),
    ("bert_layer", "a barrier of another block that may not be there yet",
     "    wgmma_wait(0, BN, sum[0, 0])\n    cluster_wait()\n",
     "    wgmma_wait(0, BN, sum[0, 0])\n",
     "E07", "'landed'|cluster's barrier"),
]

# Likewise in what the pass lower-points makes of a kernel's fusion points.
LOWERED = [
    ("matmul_wgmma", "a tile stored without a fence between the proxies",
     "        fence_proxy_async()\n", "",
     "E0711", "fence_proxy_async"),
    ("matmul_wgmma", "a tile stored before all have written it",
     "        fence_proxy_async()\n        barrier_sync(warpgroup, 128)\n",
     "        fence_proxy_async()\n",
     "E070", "'leaving'"),
    ("matmul_wgmma", "a tile overwritten while it is stored",
     "          bulk_wait_read(1)\n", "          bulk_wait_read(2)\n",
     "E0705", "bulk_wait_read"),
    ("matmul_wgmma", "a block that ends while its tile is stored",
     "  bulk_wait(0)\n", "",
     "E0705", "bulk_wait_read"),
]


def lowered(tools, name):
    return subprocess.run(
        [os.path.join(tools, "hidet-opt"), "--lower-points",
         str(EXAMPLES / (name + ".hir"))],
        check=True, text=True, stdout=subprocess.PIPE).stdout


def broken(name, text, old, new):
    for before, after in [(old, new), SMALLER.get(name, ("", ""))]:
        if before and text.count(before) != 1:
            sys.exit("%s.hir has %d times:\n%s" % (
                name, text.count(before), before))
        text = text.replace(before, after) if before else text
    return text


def findings(tool, name, text, moment):
    """The exit code, and the errors, each one line."""
    with tempfile.TemporaryDirectory() as folder:
        run.FOLDER = pathlib.Path(folder)
        (run.FOLDER / (name + ".hir")).write_text(text)
        command = run.command_line(tool, name, SIZES[name], "sim", folder)
        done = subprocess.run(
            command + ["--sanitize", "--seed=1", "--async=" + moment],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, [line for line in done.stdout.splitlines()
                             if "error[" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="")
    tools = parser.parse_args().tools
    tool = os.path.join(tools, "hidet-run")
    texts = {name: (EXAMPLES / (name + ".hir")).read_text() for name in SIZES}
    missed = 0
    for name in SIZES:
        for moment in ("latest", "earliest"):
            status, errors = findings(
                tool, name, broken(name, texts[name], "", ""), moment)
            missed += status != 0
            print("%-16s %-55s %-8s %s" % (
                name, "nothing", moment, "nothing" if not status else errors))
    for fault in FAULTS + LOWERED:
        name, what, old, new, code, words = fault
        text = texts[name] if fault in FAULTS else lowered(tools, name)
        text = broken(name, text, old, new)
        for moment in ("latest", "earliest"):
            status, errors = findings(tool, name, text, moment)
            found = status == 3 and any(
                "error[" + code in e and re.search(words, e) for e in errors)
            missed += not found
            print("%-16s %-55s %-8s %s" % (
                name, what, moment, "found" if found else "MISSED"))
            if not found:
                print("  exit %d, wanted %s: %s\n  %s" % (
                    status, code, words, "\n  ".join(errors)))
    print("%d faults planted twice, %d wrong answers" % (
        len(FAULTS + LOWERED), missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
