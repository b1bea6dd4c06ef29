# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recognises handwritten digits with hidet-run, and draws them.

usage: run.py [--tools=DIR] [--device=auto|ref|sim|cuda] [--count=N]
              [--from=N] [--all]

model.onnx was trained by train.py beside it; images.npy are those that it
never saw. Draws N of them, each with the digit that the network takes it for
and how sure it is; says how many of all images it takes for what they are; and
compares the probabilities with those that numpy computed when it was trained.
Exits with hidet-run's code: 1 where they differ. --all draws every image.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent
SHADES = " ░▒▓█"
PLAIN_SHADES = " .+#@"
DARKEST = 16
PER_ROW = 4


def recognise(options):
    """hidet-run's exit code, its report, and the probabilities."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "probability.npy")
        report = os.path.join(folder, "report.json")
        code = subprocess.run([
            os.path.join(options.tools, "hidet-run"),
            str(FOLDER / "model.onnx"), "--device=" + options.device, "-q",
            "--input=image=@%s" % (FOLDER / "images.npy"),
            "--output=probability=@" + output,
            "--expected=probability=@%s" % (FOLDER / "expected.npy"),
            "--rtol=1e-4", "--atol=1e-5", "--json=" + report]).returncode
        if not os.path.exists(output):
            return code, {}, None
        return code, json.loads(pathlib.Path(report).read_text()), np.load(
            output)


def picture(image):
    """A digit's rows of text, two letters a pixel, since letters are tall."""
    shades = SHADES
    try:
        shades.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        shades = PLAIN_SHADES
    steps = np.rint(image / DARKEST * (len(shades) - 1)).astype(int)
    return ["".join(2 * shades[step] for step in row) for row in steps]


def draw(images, labels, probabilities):
    """In rows: the pictures, and below each what it is taken for."""
    for start in range(0, len(images), PER_ROW):
        group = range(start, min(start + PER_ROW, len(images)))
        for lines in zip(*(picture(images[i][0]) for i in group)):
            print("   ".join(lines).rstrip())
        captions = []
        for i in group:
            digit = probabilities[i].argmax()
            caption = "%d  %.1f %%" % (digit, 100 * probabilities[i][digit])
            if digit != labels[i]:
                caption += ", is %d" % labels[i]
            captions.append("%-16s" % caption)
        print("   ".join(captions).rstrip() + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--from", type=int, default=30, dest="first")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    code, report, probabilities = recognise(options)
    if probabilities is None:
        return code
    images = np.load(FOLDER / "images.npy")
    labels = np.load(FOLDER / "labels.npy")
    shown = slice(None) if options.all else slice(
        options.first, options.first + options.count)
    draw(images[shown], labels[shown], probabilities[shown])
    right = (probabilities.argmax(1) == labels).sum()
    print("%d of %d digits recognised, on %s" % (
        right, len(labels), report.get("device", options.device)))
    if code == 0:
        print("The probabilities are those that numpy computed.")
    return code


if __name__ == "__main__":
    sys.exit(main())
