# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What choosing by what is expected costs, by what the candidates of f16 products
were measured to take on an H200 (bench/product_shapes.py --tune=16 sweep): the
chosen one over the best, of each; their geometric mean, and the worst.

usage: regret.py TABLE.json FOLDER MEAN WORST

Exits 1 where the mean or the worst is beyond what is given, or one of ten
chosen was not measured.
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys

table, folder = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])


def values_of(text):
    return dict(re.findall(r"(\w+) = (\d+)", text))


regrets, unknown = [], 0
for case in table["cases"]:
    m, n, k = case["m"], case["n"], case["k"]
    path = folder / "product.hir"
    path.write_text("graph main(x: f16[%d, %d], w: f16[%d, %d]) -> y {\n"
                    "  y: f16[%d, %d] = matmul(x, w) { tb = true }\n}\n" % (m, k, n, k, m, n))
    done = subprocess.run(["hidet-opt", "--target=sm_90a", "--expand", "--fuse",
                           "--schedule", "--explain", str(path)], text=True,
                          capture_output=True)
    name, values = re.search(r"schedule: \w+: (\w+)_tiles\[(.*?)\], the best of", done.stderr).groups()
    # The kernel has parameters beside those of a candidate.
    us = [us for choice, us in case["us"].items()
          if choice.startswith(name + "(") and values_of(choice).items() <= values_of(values).items()]
    if us:
        regrets.append((us[0] / min(case["us"].values()), (m, n, k)))
    unknown += not us
mean, worst = statistics.geometric_mean(r for r, _ in regrets), max(regrets)
print("%d products, %d not measured: geometric mean %.3f, worst %.3f %s"
      % (len(table["cases"]), unknown, mean, *worst))
sys.exit(mean > float(sys.argv[3]) or worst[0] > float(sys.argv[4])
         or unknown * 10 > len(table["cases"]))
