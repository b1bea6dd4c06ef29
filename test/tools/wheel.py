# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A wheel of scripts/wheel.sh in fresh environments: its size, then in each the
backend by its name alone, the tools, and the programs of examples/python with
device=cpu, started elsewhere and with nothing of this checkout around them.

usage: wheel.py WHEEL ENVIRONMENT...

An ENVIRONMENT is what pip is to install in a fresh one beside the wheel, as
"torch==2.14.1 torchvision", or the folder of one that is there, which then has
the wheel, too. Exit 1: something fails, 77: none is given.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEGABYTES = 20

# torch.compile finds the backend by what the wheel says of itself.
BACKEND = """
import sys, torch
y = torch.compile(lambda x: torch.relu(x) * 2, backend="hidet")
with torch.no_grad():
    assert y(torch.tensor([-1.0, 3.0])).tolist() == [0, 6]
assert "hidet" in sys.modules
print("torch", torch.__version__)
"""
REPORT = """
import hidet, numpy
model = hidet.compile_text("graph main(x: f32[n]) -> y { y = relu(x) }")
hidet.report(model, "report.html", numpy.ones(5, "float32"))
print(len(open("report.html").read()), "characters")
"""
PROGRAMS = {
    "the backend": ["-c", BACKEND],
    "hidet opt": ["-m", "hidet", "opt", "--version"],
    "hidet run": ["-m", "hidet", "run", "--version"],
    "a report": ["-c", REPORT],
    "naive_matmul.py": ["naive_matmul.py", "--device=cpu"],
    "resnet.py": ["resnet.py", "--device=cpu"],
}


def contents(wheel):
    """Says what is wrong with the file itself."""
    size = wheel.stat().st_size
    print("%s: %.2f MB" % (wheel.name, size / 1e6))
    if size > MEGABYTES * 1e6:
        yield "it is larger than %d MB" % MEGABYTES
    names = zipfile.ZipFile(wheel).namelist()
    libraries = [name for name in names if ".so" in name]
    if libraries != ["hidet/lib/libhidet.so.0"]:
        yield "its libraries are %s" % libraries
    for name in names:
        if not name.startswith(("hidet/", "hidet-")) or "__pycache__" in name:
            yield "%s is in it" % name


def clean_environment(folder):
    kept = ("PATH", "LANG", "SSL_CERT_FILE")
    return {
        **{name: text for name, text in os.environ.items() if name in kept},
        "HOME": str(folder),
        "HIDET_CACHE_DIR": str(folder / "cache"),
        "TMPDIR": str(folder),
    }


def make_environment(what, wheel, folder):
    """Its Python, or CalledProcessError: pip says what it cannot install."""
    place = pathlib.Path(what)
    if not (place / "bin" / "python").exists():
        place = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        pip = [place / "bin" / "pip", "install", "-q", *what.split()]
        subprocess.run(pip, check=True)
    pip = [place / "bin" / "pip", "install", "-q"]
    subprocess.run(pip + ["--force-reinstall", "--no-deps", wheel], check=True)
    subprocess.run(pip + [wheel], check=True)  # What it needs.
    return place.resolve() / "bin" / "python"


def try_environment(what, wheel, folder):
    try:
        python = make_environment(what, wheel, folder)
    except subprocess.CalledProcessError as error:
        yield "%s: %s" % (what, error)
        return
    for path in (ROOT / "examples" / "python").glob("*.py"):
        shutil.copy(path, folder)
    for name, arguments in PROGRAMS.items():
        run = subprocess.run(
            [python, *arguments], cwd=folder, env=clean_environment(folder),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        last = run.stdout.strip().splitlines()[-1:] or [""]
        print("  %s: %s: exit %d: %s" % (what, name, run.returncode, last[0]))
        if run.returncode:
            yield "%s: %s fails:\n%s" % (what, name, run.stdout)


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 77
    wheel = pathlib.Path(sys.argv[1]).resolve()
    found = list(contents(wheel))
    for what in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            found += try_environment(what, wheel, pathlib.Path(folder))
    print("\n".join(found) or "a wheel that runs")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
