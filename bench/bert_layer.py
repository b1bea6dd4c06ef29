# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT's layers for 128 tokens in f16, by the kernels of examples/bert_layer.hir
in one CUDA graph, beside PyTorch in f16 in one.

usage: bert_layer.py [--tools=DIR] [--json=FILE] [--layers=12] [--quick]
                     [--device=cuda] [--sizes=TOKENS,COLUMNS,BETWEEN]

Layers have weights of their own. First the result is compared with f64's, the
same bits are asked for three times, and so is the error of PyTorch's. Then tiles,
rings and triggers are tried, one kernel's after the other's, each in the whole
chain; --quick leaves that out. Last, where the time goes: cycles from
griddepcontrol_wait() to the first chunk, to the end of the products and to the
last store of the block in the middle, and nanoseconds from the last store of a
kernel to the wait's return in the next.

A line a case; a kernel's is: tile, split, ring, trigger. Microseconds are of the
chain: a recording of several runs, replayed, over their number. The chain begins
with x and its statistics in panels, as a layer leaves them; PyTorch's with x.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import bert  # noqa: E402
import measure  # noqa: E402

KERNELS = ("qkv", "attention", "proj", "up", "down")
REPLAYS = 100


# --- What is tried ---

def start():
    """The configuration that the search begins at."""
    early = {"early": True}
    return {"qkv": {"bn": 32, "ring": 6, **early},
            "attention": dict(early),
            "proj": {"bm": 64, "bn": 24, "s": 2, "push": False, "helpers": 1,
                     **early},
            "up": {"bn": 32, "ring": 6, **early},
            "down": {"bm": 128, "bn": 56, "s": 8, "push": True, "helpers": 0,
                     **early}}


# Of each kernel: what to change at once. What does not fit is left out.
ALTERNATIVES = {
    "down": [{"early": False}, {"helpers": 1}, {"bn": 40}, {"bn": 72},
             {"bm": 64, "bn": 56, "helpers": 1}, {"bm": 64, "bn": 56},
             {"s": 4, "bn": 24, "bm": 64, "helpers": 1}],
    "up": [{"early": False}, {"bn": 24}, {"bn": 48}, {"bn": 64}, {"ring": 4},
           {"ring": 12}],
    "qkv": [{"early": False}, {"bn": 24}, {"bn": 48}, {"bn": 64}, {"ring": 4},
            {"ring": 12}],
    "proj": [{"early": False}, {"bn": 32}, {"bn": 40}, {"bn": 48},
             {"helpers": 0}, {"push": True}, {"s": 4, "bn": 40, "push": True},
             {"s": 1, "bn": 16}],
    "attention": [{"early": False}],
}


def name_of(kernel, c):
    trigger = "early" if c["early"] else "products"
    if kernel == "attention":
        return "%s %s" % (kernel, trigger)
    if "ring" in c:
        return "%s 64x%d ring %d %s" % (kernel, c["bn"], c["ring"], trigger)
    return "%s %dx%d/%d%s%s %s" % (
        kernel, c["bm"], c["bn"], c["s"], " push" if c["push"] else "",
        " helper" if c["helpers"] else "", trigger)


# --- The plan ---

def panels(rows, columns):
    return "f16[%d, %d] layout(tile(%d, 64), swizzle(128))" % (
        rows, columns, rows)


def tiles(columns, c):
    return -(-columns // c["bn"])


def flag(value):
    return "true" if value else "false"


def normed(c, m, n, k, before, gelu):
    return ("normed_product[M = %d, N = %d, K = %d, PARTS = %d, PART = %d, "
            "GELU = %s, BN = %d, RING = %d, EARLY = %s]" % (
                m, n, k, tiles(k, before), before["bn"], flag(gelu), c["bn"],
                c["ring"], flag(c["early"])))


def residual(c, m, n, k, before):
    return ("residual_product[M = %d, N = %d, K = %d, PARTS = %d, PART = %d, "
            "BM = %d, BN = %d, S = %d, PUSH = %s, HELPERS = %d, EARLY = %s]" % (
                m, n, k, tiles(n, before), before["bn"], c["bm"], c["bn"],
                c["s"], flag(c["push"]), c["helpers"], flag(c["early"])))


def blocks(kernel, c, m, n, ff):
    if kernel == "attention":
        return m // 16 * (n // 64)
    if kernel in ("qkv", "up"):
        return m // 64 * ((3 * n if kernel == "qkv" else ff) // c["bn"])
    return m // c["bm"] * tiles(n, c) * c["s"]


def plan(layers, config, sizes, stamped=None):
    """The text of a plan of all layers; stamped: the number of the layer whose
    kernels write their times to outputs, by their names."""
    m, n, ff = sizes
    down, proj = tiles(n, config["down"]), tiles(n, config["proj"])
    x = panels(m, n)
    params = ["in x: " + x, "in parts: f32[%d, %d, 2]" % (down, m)]
    space = ["t_qkv: " + panels(m, 3 * n), "t_a: " + x, "t_x1: " + x,
             "t_parts: f32[%d, %d, 2]" % (proj, m), "t_h: " + panels(m, ff)]
    for side in range(2):
        space += ["x%d: %s" % (side, x),
                  "parts%d: f32[%d, %d, 2]" % (side, down, m)]
    lines = []
    for i in range(layers):
        for name, rows, k, pad in (("q", 3 * n, n, 3 * n),
                                   ("p", n, n, proj * config["proj"]["bn"]),
                                   ("u", ff, n, ff),
                                   ("d", n, ff, down * config["down"]["bn"])):
            params += ["in w%s%d: %s" % (name, i, panels(pad, k)),
                       "in v%s%d: f32[2, %d]" % (name, i, pad)]
        source = ("x", "parts") if i == 0 else (
            "x%d" % (i % 2), "parts%d" % (i % 2))
        target = ("y", "y_parts") if i == layers - 1 else (
            "x%d" % (1 - i % 2), "parts%d" % (1 - i % 2))
        calls = {
            "qkv": normed(config["qkv"], m, 3 * n, n, config["down"], False) +
            "(%s, %s, wq%d, vq%d, t_qkv" % (*source, i, i),
            "attention": "attention[M = %d, HEADS = %d, EARLY = %s](t_qkv, t_a"
            % (m, n // 64, flag(config["attention"]["early"])),
            "proj": residual(config["proj"], m, n, n, config["down"]) +
            "(t_a, %s, %s, wp%d, vp%d, t_x1, t_parts" % (*source, i, i),
            "up": normed(config["up"], m, ff, n, config["proj"], True) +
            "(t_x1, t_parts, wu%d, vu%d, t_h" % (i, i),
            "down": residual(config["down"], m, n, ff, config["proj"]) +
            "(t_h, t_x1, t_parts, wd%d, vd%d, %s, %s" % (i, i, *target)}
        for kernel in KERNELS:
            stamps = ""
            if stamped is not None:
                stamps = ", %s_%s" % (
                    "stamps" if i == stamped else "unused", kernel)
            lines.append("  launch %s%s) programmatic" % (
                calls[kernel], stamps))
    params += ["out y: " + x, "out y_parts: f32[%d, %d, 2]" % (down, m)]
    if stamped is not None:
        for kernel in KERNELS:
            shape = "u64[%d, 8]" % blocks(kernel, config[kernel], m, n, ff)
            params.append("out stamps_%s: %s" % (kernel, shape))
            space.append("unused_%s: %s" % (kernel, shape))
    return "plan main(%s) {\n%s\n%s\n}\n" % (
        ",\n    ".join(params), "\n".join("  workspace " + s for s in space),
        "\n".join(lines))


# --- Times inside the kernels ---

STAMP = ("  if thread == 0 {\n    stamps[block, %d] = %s\n  }\n")


def stamp(i, clock):
    return STAMP % (i, clock + "()")


def stamped_kernels(text):
    """The kernels with a parameter more: of each block the nanoseconds and
    cycles at the wait's return, the cycles at its first chunk and at the end of
    its products, and cycles and nanoseconds at its end."""
    out = []
    for piece in re.split(r"(?m)^(?=kernel |plan )", text):
        name = re.match(r"kernel (\w+)", piece)
        if not name:
            out.append(piece if not piece.startswith("plan ") else "")
            continue
        piece = piece.replace(
            ")\n  grid(", ",\n    out stamps: u64[%s, 8])\n  grid(" % {
                "attention": "M / 16 * HEADS",
                "normed_product": "M / 64 * (N / BN)",
                "residual_product": "M / BM * ceildiv(N, BN) * S"}[name[1]], 1)
        piece = piece.replace(
            "  griddepcontrol_wait()\n", "  griddepcontrol_wait()\n" +
            stamp(0, "globaltimer") + stamp(1, "clock64"), 1)
        if name[1] == "attention":
            piece = piece.replace(
                "  mbarrier_wait(full, 0)\n", "  mbarrier_wait(full, 0)\n" +
                stamp(2, "clock64"), 1)
        else:
            piece = piece.replace(
                "      mbarrier_wait(full[t], 0)\n",
                "      mbarrier_wait(full[t], 0)\n      if t == 0 {\n" +
                stamp(2, "clock64") + "      }\n", 1)
            piece = piece.replace(
                "    wgmma_wait(0, BN, sum[0, 0])\n",
                "    wgmma_wait(0, BN, sum[0, 0])\n" + stamp(3, "clock64"), 1)
        end = piece.rindex("\n}")
        # Its own stores, not those of other warps, which end about then.
        out.append(piece[:end + 1] + stamp(4, "clock64") +
                   stamp(5, "globaltimer") + piece[end + 1:])
    return "".join(out)


def say_stamps(stamps, config):
    """Lines, and the same as data."""
    data = {}
    previous_end = None
    for kernel in KERNELS:
        s = stamps[kernel].astype("i8")
        since = {what: s[:, i] - s[:, 1]
                 for i, what in ((2, "first_chunk"), (3, "products"),
                                 (4, "end"))
                 if kernel != "attention" or i != 3}
        row = {what: [int(np.median(v)), int(v.max())]
               for what, v in since.items()}
        row["wait_returns_ns"] = int(s[:, 0].max() - s[:, 0].min())
        row["runs_ns"] = int(s[:, 5].max() - s[:, 0].min())
        if previous_end is not None:
            row["boundary_ns"] = int(np.median(s[:, 0]) - previous_end)
        previous_end = s[:, 5].max()
        data[kernel] = row
        print("%-34s cycles from the wait: %s; %d ns to the last end%s" % (
            name_of(kernel, config[kernel]),
            ", ".join("%s %d (%d)" % (what.replace("_", " "), *row[what])
                      for what in since),
            row["runs_ns"],
            "; %d ns after the last end before it" % row["boundary_ns"]
            if "boundary_ns" in row else ""), flush=True)
    return data


# --- Runs ---

class Chain:
    """The layers, their files, and hidet-run."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.sizes = tuple(map(int, options.sizes.split(",")))
        m, n, ff = self.sizes
        rng = np.random.default_rng(1)
        self.x = rng.standard_normal((m, n), dtype=np.float32).astype("f2")
        self.layers = [bert.weights(rng, n, ff) for _ in range(options.layers)]
        self.saved = {}
        self.kernels = (ROOT / "examples" / "bert_layer.hir").read_text()
        np.save(self.folder / "x.npy", self.x)

    def expected(self):
        y = self.x
        for layer in self.layers:
            y = bert.apply(y, layer)
        return y

    def inputs(self, config):
        """hidet-run's options. Files depend on two tiles alone."""
        proj, down = config["proj"]["bn"], config["down"]["bn"]
        if "q" not in self.saved or self.saved["p"] != proj or \
                self.saved["d"] != down:
            for i, layer in enumerate(self.layers):
                for name, x in bert.folded(layer, proj, down).items():
                    unit = {"p": proj, "d": down}.get(name[1], 0)
                    if self.saved.get(name[1], -1) != unit:
                        np.save(self.folder / ("%s%d.npy" % (name, i)), x)
            self.saved = {"q": 0, "u": 0, "p": proj, "d": down}
            np.save(self.folder / "parts.npy", bert.statistics(self.x, down))
        names = ["x", "parts"] + [
            "%s%s%d" % (kind, name, i) for i in range(len(self.layers))
            for name in "qpud" for kind in "wv"]
        return ["--input=%s=@%s" % (name, self.folder / (name + ".npy"))
                for name in names]

    def run(self, config, more, stamped=None):
        """The report, or (None, what hidet-run said)."""
        text = self.kernels
        if stamped is not None:
            text = stamped_kernels(text)
        path, report = self.folder / "main.hir", self.folder / "report.json"
        path.write_text(text + plan(len(self.layers), config, self.sizes,
                                    stamped))
        report.unlink(missing_ok=True)
        command = [str(pathlib.Path(self.options.tools) / "hidet-run"),
                   str(path), "-q", "--entry=main",
                   "--device=" + self.options.device, "--json=%s" % report]
        done = subprocess.run(command + self.inputs(config) + more, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode != 0:
            return None, done.stdout
        return json.loads(report.read_text()), done.stdout

    def microseconds(self, config):
        report, said = self.run(config, ["--bench=%d" % REPLAYS])
        return (report["median_ms"] * 1e3, None) if report else (None, said)

    def result(self, config, more=()):
        path = self.folder / "y.npy"
        report, said = self.run(config, ["--output=y=@%s" % path, *more])
        return (np.load(path), None) if report else (None, said)

    def stamps(self, config):
        layer = len(self.layers) // 2
        files = {k: self.folder / ("stamps_%s.npy" % k) for k in KERNELS}
        report, said = self.run(
            config,
            ["--output=stamps_%s=@%s" % item for item in files.items()],
            stamped=layer)
        return ({k: np.load(f) for k, f in files.items()} if report
                else None), said


def error_of(y, expected):
    return float(np.linalg.norm(y.astype("f8") - expected) /
                 np.linalg.norm(expected))


def check(chain, config, expected):
    """The relative error, and whether three runs gave the same bits."""
    results = []
    for _ in range(3):
        y, said = chain.result(config)
        if y is None:
            return None, said
        results.append(y)
    same = all(np.array_equal(results[0].view("u2"), y.view("u2"))
               for y in results)
    return (error_of(results[0], expected), same), None


def search(chain, config, first):
    """Each kernel's alternatives in the chain, twice over what still gains."""
    tried = [{"config": config, "us": first}]
    best = first
    for turn in range(2):
        gained = False
        for kernel, alternatives in ALTERNATIVES.items():
            base = config[kernel]
            for change in alternatives:
                candidate = {**config[kernel], **change}
                if "early" in change and turn == 1:
                    candidate["early"] = not config[kernel]["early"]
                if candidate in (config[kernel], base):
                    continue
                other = {**config, kernel: candidate}
                if any(t["config"] == other for t in tried):
                    continue
                us, said = chain.microseconds(other)
                tried.append({"config": other, "us": us})
                if us is None:
                    reason = [line for line in said.splitlines()
                              if "error" in line or "note" in line]
                    tried[-1]["why"] = reason[0] if reason else said[-200:]
                    print("%-40s -        %s" % (name_of(kernel, candidate),
                                                tried[-1]["why"][-90:]),
                          flush=True)
                    continue
                better = us < best * 0.997
                print("%-40s %7.1f us%s" % (name_of(kernel, candidate), us,
                                            "  better" if better else ""),
                      flush=True)
                if better:
                    best, config, gained = us, other, True
        if not gained:
            break
    return config, best, tried


# --- PyTorch ---

def torch_chain(chain, replays=REPLAYS, runs=4):
    """Microseconds of a run, and its result."""
    import torch
    from torch.nn import functional as F
    torch.set_grad_enabled(False)
    m, n, _ = chain.sizes
    half = [{k: torch.from_numpy(np.asarray(v, dtype="f2")).cuda()
             for k, v in layer.items()} for layer in chain.layers]
    x = torch.from_numpy(chain.x).cuda()
    result = None

    def once():
        y = x
        for w in half:
            h = F.layer_norm(y, (n,), w["g0"], w["s0"], 1e-12)
            qkv = torch.addmm(w["bq"], h, w["wq"].t())
            q, k, v = (t.view(1, m, -1, 64).transpose(1, 2)
                       for t in qkv.split(n, 1))
            a = F.scaled_dot_product_attention(q, k, v)
            a = a.transpose(1, 2).reshape(m, n)
            y1 = h + torch.addmm(w["bp"], a, w["wp"].t())
            h1 = F.layer_norm(y1, (n,), w["g1"], w["s1"], 1e-12)
            u = F.gelu(torch.addmm(w["bu"], h1, w["wu"].t()))
            y = h1 + torch.addmm(w["bd"], u, w["wd"].t())
        return y

    def kept():
        nonlocal result
        result = once()

    ms = measure.replayed([kept] * runs, replays)
    return ms * 1e3, result.cpu().numpy()


# --- All of it ---

def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin",
                        help="folder of hidet-run")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", default="128,768,3072")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    case, config = {"layers": options.layers, "sizes": options.sizes}, start()
    k = int(options.sizes.split(",")[1]) // 64
    for kernel in ("qkv", "up"):
        config[kernel]["ring"] = min(config[kernel]["ring"], k)
    with tempfile.TemporaryDirectory() as folder:
        chain = Chain(options, folder)
        expected = chain.expected()
        checked, said = check(chain, config, expected)
        if not checked:
            sys.exit(said)
        case["error"], case["same_bits"] = checked
        if on_gpu:
            us, y = torch_chain(chain)
            case["torch_us"], case["torch_error"] = us, error_of(y, expected)
            print("PyTorch f16: %.1f us, error %.2e" % (us, case["torch_error"]),
                  flush=True)
        print("error %.2e, the same bits three times: %s" % checked, flush=True)
        good = math.isfinite(checked[0]) and checked[1] and checked[0] < 3e-3
        if on_gpu:
            first, said = chain.microseconds(config)
            if first is None:
                sys.exit(said)
            print("%-40s %7.1f us" % ("to begin with", first), flush=True)
            best = first
            if not options.quick:
                config, best, case["tried"] = search(chain, config, first)
                checked, said = check(chain, config, expected)
                good = good and checked and checked[1] and checked[0] < 3e-3
                case["best_error"] = checked[0] if checked else said
            case.update(first_us=first, us=best, config=config)
            print("best: %.1f us a run, %.2f a layer; %s" % (
                best, best / options.layers,
                "; ".join(name_of(k, config[k]) for k in KERNELS)), flush=True)
            stamps, said = chain.stamps(config)
            if stamps:
                case["stamps"] = say_stamps(stamps, config)
            else:
                print("no times inside the kernels:\n" + said)
        if options.json:
            measure.write(options.json, [case])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
