# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Language models of transformers, small, as ONNX models with a cache that
grows, a token at a time: token for token as PyTorch does.

usage: decode.py [--device=sim] [--tokens=64] [--copy] [--json=FILE] [FAMILY...]
  FAMILY: of torch_generate.py; default: Llama GPT2 Qwen3
  --copy: the cache comes in and goes out with each token

A line each: whether all tokens are PyTorch's, times that it was compiled (for a
past of 0 and 1, then for each power of two from 4 on), milliseconds a token (median of
those without a compilation), what the process' memory grew by at each of these
in the last half. Exits 1 where tokens differ or it was compiled more often.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time
import warnings

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torch_generate  # noqa: E402

import hidet  # noqa: E402


class Step(torch.nn.Module):
    """One token, with the cache as tensors."""

    def __init__(self, model, layers):
        super().__init__()
        self.model = model
        self.layers = layers

    def forward(self, ids, *past):
        import transformers

        cache = transformers.DynamicCache()
        for i in range(self.layers):
            cache.update(past[2 * i], past[2 * i + 1], i)
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        found = [out.logits]
        for layer in out.past_key_values.layers:
            found += [layer.keys, layer.values]
        return tuple(found)


def make(family, tokens):
    """The model, with places for so many tokens."""
    kind, configuration, values, graphs = torch_generate.FAMILIES[family]
    places = "n_positions" if family == "GPT2" else "max_position_embeddings"
    torch_generate.FAMILIES[family] = (
        kind,
        configuration,
        dict(values, **{places: tokens + 8}),
        graphs,
    )
    return torch_generate.make(family)[0]


def export(model, path):
    """The names of the cache's tensors, and their shape without a past."""
    config = model.config
    heads = (
        getattr(config, "num_key_value_heads", None)
        or config.num_attention_heads
    )
    layers = config.num_hidden_layers
    size = (
        getattr(config, "head_dim", None)
        or config.hidden_size // config.num_attention_heads
    )
    names = [f"{i}.{what}" for i in range(layers) for what in ("key", "value")]
    past = [torch.randn(1, heads, 5, size) for _ in names]
    length = torch.export.Dim("past", min=2, max=config.max_position_embeddings)
    torch.onnx.export(
        Step(model, layers).eval(),
        (torch.tensor([[3]]), *past),
        str(path),
        dynamo=True,
        verbose=False,
        dynamic_shapes=({}, tuple({2: length} for _ in past)),
        input_names=["ids"] + ["past." + name for name in names],
        output_names=["logits"] + ["present." + name for name in names],
    )
    return names, (1, heads, 0, size)


def resident():
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4


def decode(family, device, tokens, copies):
    model = make(family, tokens)
    start = torch.tensor([[3]])
    with torch.no_grad():
        own = model.generate(start, max_new_tokens=tokens, do_sample=False)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        names, shape = export(model, path)
        one = {"past." + name: "present." + name for name in names}
        step = hidet.from_onnx(
            path,
            device,
            buckets={"past": ()},
            inouts=None if copies else one,
        )
        ids, times, grown = [3], [], []
        past = {name: numpy.zeros(shape, numpy.float32) for name in one}
        for i in range(tokens):
            compiled, before = step.num_compiled, resident()
            begin = time.perf_counter()
            found = step(numpy.array([ids[-1:]]), **past)
            if step.num_compiled == compiled:
                times.append(time.perf_counter() - begin)
                grown.append(resident() - before)
            past = dict(zip(one, found[1:])) if copies else {}
            logits = found[0] if copies else found
            ids.append(int(logits[0, -1].argmax()))
    most = 2 + max(1, (tokens - 2).bit_length() - 1)
    last = grown[len(grown) // 2 :]
    return {
        "family": family,
        "right": ids == own[0].tolist(),
        "compiled": step.num_compiled,
        "most": most,
        "ms": statistics.median(times) * 1e3 if times else None,
        "grown_kb": sum(last) / max(1, len(last)),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="sim")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--copy", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for family in options.families or ["Llama", "GPT2", "Qwen3"]:
        row = decode(family, options.device, options.tokens, options.copy)
        rows.append(row)
        row["fine"] = row["right"] and row["compiled"] <= row["most"]
        print(
            f"{family:10} {'ok' if row['fine'] else 'FAILS'} "
            f"tokens {'as PyTorch' if row['right'] else 'differ'}, compiled "
            f"{row['compiled']} of {row['most']}, {row['ms']:.3f} ms a token, "
            f"memory grew by {row['grown_kb']:.1f} KB a token",
            flush=True,
        )
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 0 if all(row["fine"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
