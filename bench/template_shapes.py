# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every template, on drawn shapes and by drawn candidates, against NumPy: odd
sizes, primes, 1s, all types of its head, neighbours fused into it.

usage: template_shapes.py [--tools=DIR] [--device=sim] [--count=300]
                          [--tool=all] [--seconds=N] [template...]

A line for each template, and one for each case that differs, which says how to
draw it again. On sim every case runs with --sanitize, where copies land as late
as they may and where they land as early. Blocks that stay for several tiles are
few, so that each has some. Exits 1 where a case is wrong. After --seconds no
more cases begin, and lines say how many there were.

--tool=NAME runs them on the GPU under compute-sanitizer's tool: cases of at
least four blocks, of which some are partial. initcheck does not see what the
TMA stores (sanitizer.py), so there results leave turned round, which no
template does by the TMA.
"""

import argparse
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy

import sanitizer
import template_cases
import template_matrices
import template_windows

TEMPLATES = pathlib.Path(__file__).resolve().parent.parent / "lib/Schedule/templates"
DRAW = {**template_cases.DRAW, **template_matrices.DRAW,
        "window": template_windows.draw_each}
CHUNK = 6  # Cases of a graph; of attentions and grouped ones, of one candidate.
BULK = ("product_wgmma", "product_windows", "product_scaled",
        "attention_tma")  # Stored by the TMA.
# What would be chosen for the products of few rows to a matrix.
UNGROUPED = ("product_rows", "product_few", "product_mma", "product_wgmma",
             "product_narrow", "rows_registers", "rows_again", "rows_shared",
             "rows_across")
ATTENTIONS = ("attention_mma", "attention_parts", "attention_wgmma", "attention_tma")


def read_tensor(path, wanted):
    value = numpy.load(path)
    if value.dtype == numpy.uint16 and wanted.dtype.kind == "f":  # bf16
        value = (value.astype(numpy.uint32) << 16).view(numpy.float32)
    return value


def excess(got, value, most):
    """The largest error over what is allowed; infinite where NaN, or infinity,
    is not what it should be."""
    if got.shape != value.shape or got.size == 0:
        return numpy.inf
    if got.dtype.kind in "iu":
        return 0 if numpy.array_equal(got, value) else numpy.inf
    got = got.astype(numpy.float64)
    same = (got == value) | (numpy.isnan(got) & numpy.isnan(value))
    with numpy.errstate(invalid="ignore", divide="ignore"):
        error = numpy.where(same, 0, numpy.abs(got - value) / most)
    return numpy.inf if numpy.isnan(error).any() else float(error.max())


class Runner:
    """What a process of the pool needs to know."""

    def __init__(self, options, templates):
        self.options, self.templates = options, templates
        self.until = time.monotonic() + options.seconds

    def draw(self, template, numbers, tool):
        """Cases, and the template's text for them."""
        seed, values = self.options.seed, None
        if not tool:
            rng = numpy.random.default_rng([seed, numbers[0] // CHUNK, 2])
            template = template.for_blocks(rng.integers(2, 6))
        text = template.for_any_size() if template.form == "product" else None
        if template.form == "attention":
            rng = numpy.random.default_rng([seed, numbers[0] // CHUNK, 1])
            while values is None:
                values = template.draw_fitting(rng)
                if not template_cases.draw_attention_sizes(rng, template, values):
                    values = None
            text = template.alone(values)
        if template.form == "grouped":
            values = template.draw(
                numpy.random.default_rng([seed, numbers[0] // CHUNK, 1]))
            text = template.alone(values)
        cases = []
        for number in numbers:
            rng = numpy.random.default_rng([seed, number])
            for _ in range(10000):
                case = template_cases.Case(number)
                draw = DRAW[template.form]
                if "maps {x," in template.head:
                    draw = template_windows.draw_images
                elif "reads {x}" in template.head:
                    draw = template_windows.draw_pixels
                draw(rng, case, template, *([values] if values else []))
                if self.serves(template, case, tool):
                    break
            else:
                raise SystemExit("%s: no case" % template.name)
            cases.append(case)
        return cases, text

    @staticmethod
    def serves(template, case, tool):
        return not tool or case.blocks >= 4 and case.partial and not (
            tool == "initcheck"
            and template.name in BULK
            and " across " not in case.says)

    def launch(self, template, cases, text, folder, mode):
        (folder / "case.hir").write_text(template_cases.text_of(cases))
        command = [os.path.join(self.options.tools, "hidet-run"),
                   str(folder / "case.hir"), "--device=" + self.options.device,
                   "--explain"]
        if mode and self.options.tool:
            command = [sanitizer.find(), "--tool=" + mode, "--error-exitcode=99",
                       *command]
        elif mode:
            command += ["--sanitize", "--async=" + mode, "--seed=3"]
        if text:
            (folder / "template.hir").write_text(text)
            command.append("--load=%s" % (folder / "template.hir"))
        if template.name in ATTENTIONS:
            command += ["--disable-template=" + other for other in ATTENTIONS
                        if other != template.name]
        if template.form == "grouped":
            command += ["--disable-template=" + other for other in UNGROUPED]
        for case in cases:
            for name, (value, _) in case.inputs.items():
                numpy.save(folder / (name + ".npy"), value)
                command.append("--input=%s=@%s" % (name, folder / (name + ".npy")))
            for name in case.outputs:
                command.append("--output=%s=@%s" % (name, folder / (name + ".npy")))
        try:
            done = subprocess.run(command, text=True, capture_output=True,
                                  timeout=self.options.timeout)
        except subprocess.TimeoutExpired:
            return "no end in %d s" % self.options.timeout
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "error" in line]
            said += [line for line in done.stdout.splitlines() if line[0] == "="]
            return "exit %d\n%s" % (done.returncode, "\n".join(said[:20]))
        if template.form == "attention" and done.stderr.count(
                "are one task over attention") < len(cases):
            return "several kernels"
        if template.form == "grouped" and done.stderr.count(
                ": grouped_order[") < len(cases):
            return "not by grouped products"
        return None

    def faults(self, template, cases, text, folder, mode):
        """Of each case that is wrong, what is."""
        why = self.launch(template, cases, text, folder, mode)
        if why and len(cases) == 1:
            return ["%s: case %d of seed %d (--first=%d --count=1): %s: %s" % (
                template.name, cases[0].number, self.options.seed,
                cases[0].number, cases[0].says, why)]
        if why:
            return [fault for case in cases for fault in
                    self.faults(template, [case], text, folder, mode)]
        found = []
        for case in cases:
            worst = max(
                (excess(read_tensor(folder / (name + ".npy"), value), value, most),
                 name) for name, (value, most) in case.outputs.items())
            if not worst[0] <= 1:
                found.append(
                    "%s: case %d of seed %d (--first=%d --count=1): %s: %s is %.2f "
                    "of what is allowed off" % (
                        template.name, case.number, self.options.seed,
                        case.number, case.says, worst[1], worst[0]))
        return found

    def __call__(self, job):
        name, numbers, mode = job
        template, start = self.templates[name], time.monotonic()
        if start > self.until:
            return name, 0, [], 0
        cases, text = self.draw(template, numbers,
                                mode if self.options.tool else None)
        with tempfile.TemporaryDirectory() as folder:
            found = self.faults(template, cases, text, pathlib.Path(folder), mode)
        return name, len(cases), found, time.monotonic() - start


def modes(options):
    """The ways that every case is run."""
    if options.tool:
        return sanitizer.TOOLS if "all" in options.tool else options.tool
    if options.device != "sim":
        return [None]
    return options.asynchronous or ["latest", "earliest"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--templates", type=pathlib.Path, default=TEMPLATES,
                        help="the folder that their texts are in")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--async", dest="asynchronous", action="append",
                        choices=["latest", "earliest"])
    parser.add_argument("--tool", action="append",
                        choices=sanitizer.TOOLS + ["all"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("names", nargs="*", metavar="template")
    options = parser.parse_args()
    if options.tool and not sanitizer.find():
        print("compute-sanitizer: not found (COMPUTE_SANITIZER names it)")
        return 1
    templates = template_cases.read_templates(sorted(options.templates.glob("*.hir")))
    names = options.names or list(templates)
    last = options.first + options.count
    chunks = [range(at, min(at + CHUNK - at % CHUNK, last))
              for at in range(options.first, last)
              if at == options.first or at % CHUNK == 0]
    jobs = [(name, list(chunk), mode) for name in names for chunk in chunks
            for mode in modes(options)]
    done = {name: [0, 0, 0.0, 0] for name in names}
    with multiprocessing.Pool(options.jobs) as pool:
        for name, count, found, seconds in pool.imap_unordered(
                Runner(options, templates), jobs):
            for fault in found:
                print(fault, flush=True)
            of = done[name]
            of[0], of[1], of[2] = of[0] + count, of[1] + len(found), of[2] + seconds
            of[3] += 1
            if of[3] == len(chunks) * len(modes(options)):
                print("%-16s %d of %d as NumPy says, %.0f s" % (
                    name, of[0] - of[1], of[0], of[2]), flush=True)
    return int(any(of[1] for of in done.values()))


if __name__ == "__main__":
    sys.exit(main())
