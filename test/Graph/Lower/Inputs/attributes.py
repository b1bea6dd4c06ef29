# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds Attributes.def against the schemas of the onnx that is installed: each
version of an operator of Operators.def has the attributes that its schema has.

usage: attributes.py FOLDER (lib/Graph/ONNX)
"""
import pathlib
import re
import sys

import onnx.defs

folder = pathlib.Path(sys.argv[1])
DOMAINS = {"": "onnx", "ai.onnx.ml": "ml", "ai.onnx.preview": "preview",
           "ai.onnx.preview.training": "training"}
# What a later onnx than this one has given a version that there was already.
LATER = {("onnx", "Attention"): {"left_window_size", "right_window_size"}}

first, rows = {}, {}
for domain, op, since in re.findall(r'^HD_ONNX\("(\w+)", *"(\w+)", *(\d+)',
                                    (folder / "Operators.def").read_text(), re.M):
    first[domain, op] = min(int(since), first.get((domain, op), 1000))
for domain, op, since, names in re.findall(
        r'^HD_ONNX_ATTRIBUTES\("(\w+)", *"(\w+)", *(\d+), *"([\w ]*)"\)$',
        (folder / "Attributes.def").read_text(), re.M):
    rows.setdefault((domain, op), {})[int(since)] = set(names.split())
assert set(rows) <= set(first), set(rows) - set(first)


def known(key, version):
    since = [v for v in rows.get(key, {}) if v <= version]
    return rows[key][max(since)] if since else set()


schemas = onnx.defs.get_all_schemas_with_history()
versions = {}
for schema in schemas:
    versions.setdefault((schema.domain, schema.name), []).append(schema.since_version)
compared = 0
for schema in schemas:
    key = DOMAINS.get(schema.domain), schema.name
    if key not in first:
        continue
    newer = [v for v in versions[schema.domain, schema.name] if v > schema.since_version]
    last = min(newer, default=28) - 1
    for version in range(max(schema.since_version, first[key]), last + 1):
        have, wanted = known(key, version), set(schema.attributes)
        assert wanted <= have <= wanted | LATER.get(key, set()), (key, version, have ^ wanted)
        compared += 1
assert compared > 1000
print("the same")
