# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether what is chosen for products is what was measured to be fast, on an
H200 (bench/product_tiles.py, bench/template_products.py): at most a tenth slower
than the best. Not all is measured: one choice of the six may be of what is not.

usage: choices.py TABLE.json FOLDER PRODUCTS TEMPLATE [hidet-opt's options...]

PRODUCTS: how many the table has at least.
"""
import json
import pathlib
import re
import subprocess
import sys

SLOWER = 1.10
table, folder = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])
measured = {}
least, template = int(sys.argv[3]), sys.argv[4]
for case in table["cases"]:
    if "pin" in case and "n" in case:  # One of a chain of 128 rows.
        size = (128, case["n"], case["k"])
        key = tuple(sorted((name, int(value)) for name, value
                           in re.findall(r"(\w+) = (\d+)", case["pin"])))
    elif "product" in case and case["product"] != "both":
        m, k, n = case["m"], case["k"], case["n"]
        size = (m, n, k) if case["product"] == "up" else (m, k, n)
        key = tuple(sorted((name, value) for name, value in case.items() if name.isupper()))
    else:
        continue
    measured.setdefault(size, {})[key] = case["us"]

faults = unknown = 0
for (m, n, k), times in sorted(measured.items()):
    text = ("graph main(x: f16[%d, %d], w: f16[%d, %d]) -> y {\n"
            "  y: f32[%d, %d] = matmul(x, w)\n}\n" % (m, k, k, n, m, n))
    (folder / "product.hir").write_text(text)
    done = subprocess.run(["hidet-opt", "--target=sm_90a", "--expand", "--fuse",
                           "--schedule", "--explain", *sys.argv[5:],
                           str(folder / "product.hir")],
                          text=True, capture_output=True)
    chosen = re.search(r"%s_tiles\[(.*?)\], the best of" % template, done.stderr)
    values = re.findall(r"(\w+) = (\d+)", chosen.group(1)) if chosen else []
    key = tuple(sorted((name, int(value)) for name, value in values))
    best, us = min(times.values()), times.get(key)
    print("%s of %d measured: %s, %s us, the best %.2f"
          % ((m, n, k), len(times), dict(key), us, best))
    unknown += us is None
    faults += us is not None and us > best * SLOWER
print("%d products, %d chosen badly, %d not measured"
      % (len(measured), faults, unknown))
sys.exit(faults > 0 or unknown > 1 or len(measured) < least)
