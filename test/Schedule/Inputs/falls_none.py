# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the library's templates to what their heads promise: on the graphs of
the tests that are named, for each target, no candidate is left out when more is
known of it. `--explain` names one with its values, a template without any.

falls_none.py FOLDER TEST...
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

TARGETS = ["sm_75", "sm_80", "sm_90a"]
# What is mostly the best, without which others have their turn.
FAVOURITES = ["product_mma", "attention_mma", "attention_parts", "attention_tma"]
OTHERS = [f"--disable-template={name}" for name in FAVOURITES]
LEFT_OUT = re.compile(r"schedule: \S+: (not \w+\(.*|.* is left out: .*)")
CHOSEN = re.compile(r"schedule: \S+: (\w+)\[.*, (?:the best of|as the text says)")


def parts_of(test):
    """The files that a test is split into, or itself."""
    parts = re.split(r"^//--- \S+\n", test.read_text(), flags=re.M)
    return parts[1:] or parts


def run(job):
    """What is left out, and what is chosen; None where it cannot be scheduled
    as it stands: other options make that of it, or it is wrong on purpose."""
    target, options, path = job
    done = subprocess.run(
        ["hidet-opt", f"--target={target}", "--expand", "--choose-layouts"]
        + ["--prepare", "--fuse", "--schedule", "--explain"]
        + options
        + [path, "-o", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode < 0 or done.returncode > 4:
        sys.exit(f"{target} {path}: exit {done.returncode}\n{done.stderr}")
    if done.returncode:
        return None
    return LEFT_OUT.findall(done.stderr), CHOSEN.findall(done.stderr)


def main():
    """Runs all of them."""
    folder = pathlib.Path(sys.argv[1])
    jobs = []
    for name in sys.argv[2:]:
        test = pathlib.Path(name)
        for n, text in enumerate(parts_of(test)):
            if not re.search(r"^graph ", text, re.M):
                continue
            path = folder / f"{test.parent.name}.{test.name}.{n}.hir"
            path.write_text(text)
            jobs += [(target, options, str(path)) for target in TARGETS for options in ([], OTHERS)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, jobs))
    chosen = set()
    for (target, _, path), result in zip(jobs, results):
        for left in result[0] if result else []:
            print(f"{target} {path}: {left}")
        chosen |= set(result[1] if result else [])
    count = sum(result is not None for result in results)
    print(f"{count} of {len(jobs)} scheduled, by {len(chosen)} kernels")
    print(*sorted(chosen))


main()
