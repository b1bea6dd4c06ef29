# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token's step of a Llama of 1 B in f16, with a static cache of 2,048 rows of
which 1,000 are in use, by torch.compile with the backend and with Inductor, each
in one CUDA graph; or what comes before the first: all tokens of a prompt at once,
of which the last one's logits are asked for. Logits are held against those of
PyTorch's own operators, as part of the largest.

usage: decode.py [--json=FILE] [--batches=1,16,64] [--prompts=2048,8192]
           [--layers=16] [--rows=2048] [--used=1000] [--replays=50]
           [--no-inductor] [--device=cuda|cpu]
  --prompts: tokens of prompts, batch 1, instead; a cache of as many rows
  --device=cpu: a tiny Llama on the simulator: answers alone

One line a case: milliseconds, the share of the device copy's bandwidth that the
weights come to, Inductor's. Cases compile beside each other; when all have, they
are timed one after the other. Weights are random. HIDET_LIBRARY names the library where it is
not installed.
"""
import argparse
import statistics
import sys

import measure

LARGE = dict(hidden_size=2048, intermediate_size=8192, num_attention_heads=32,
             num_key_value_heads=8, vocab_size=128256)
SMALL = dict(hidden_size=64, intermediate_size=128, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=128)


def make_model(options, rows):
    import torch
    sys.path[:0] = [str(measure.ROOT / "scripts"), str(measure.ROOT / "python")]
    import export_models
    import transformers
    export_models.torchvision_models()  # transformers imports it, too.
    torch.manual_seed(0)
    small = options.device == "cpu"
    config = transformers.LlamaConfig(
        **(SMALL if small else LARGE), num_hidden_layers=options.layers,
        max_position_embeddings=rows, tie_word_embeddings=True)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if small else torch.float16)
    with torch.device(options.device):
        model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(before)
    return model


class Step:
    """The next tokens of each sequence at once, and their CUDA graph."""

    def __init__(self, forward, model, options, case):
        import torch
        import transformers
        batch, tokens, rows, self.used = case
        self.cache = transformers.StaticCache(config=model.config,
                                              max_cache_len=rows)
        shape = (2, batch, model.config.num_key_value_heads, rows,
                 model.config.head_dim)
        drawn = torch.Generator(options.device).manual_seed(1)
        for layer in self.cache.layers:
            whole = torch.randn(shape, generator=drawn, device=options.device,
                                dtype=model.dtype)
            layer.lazy_initialization(whole[0], whole[1])
            layer.keys.copy_(whole[0])
            layer.values.copy_(whole[1])
        self.forward, self.graph = forward, None
        self.at_once = 10 if tokens == 1 else 1
        self.tokens = (torch.arange(batch * tokens, device=options.device) * 7 + 17
                       ).reshape(batch, tokens) % model.config.vocab_size
        self.logits = self.call()

    def rewind(self):
        for layer in self.cache.layers:
            layer.cumulative_length.fill_(self.used)

    def call(self):
        self.rewind()
        return self.advance()

    def advance(self):
        return self.forward(input_ids=self.tokens, past_key_values=self.cache,
                            use_cache=True, logits_to_keep=1).logits

    def capture(self):
        import torch
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(2):
                self.call()
        torch.cuda.synchronize()
        self.rewind()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=side):
            self.logits = self.advance()

    def answer(self):
        if self.graph:
            self.rewind()
            self.graph.replay()
        else:
            self.logits = self.call()
        return self.logits.float().cpu()

    def ms(self, replays):
        """The median of so many, tokens' steps some back to back."""
        import torch
        times = []
        for turn in range(replays // self.at_once + 1):
            self.rewind()
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(self.at_once):
                self.graph.replay()
            end.record()
            end.synchronize()
            if turn:
                times.append(begin.elapsed_time(end) / self.at_once)
        return statistics.median(times)


def copy_rate():
    """Bytes a millisecond, read and written together."""
    import torch
    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    return 2 * source.numel() / measure.replayed([lambda: target.copy_(source)])


def measured(options, case, ready, lock):
    import torch
    model = make_model(options, case[2])
    import hidet.torch  # noqa: F401  The backend.
    from hidet.torch import backend
    expected = Step(model, model, options, case).answer()
    found, ran = {"batch": case[0], "tokens": case[1]}, []
    backend.watchers.append(ran.append)
    steps = {"ours": Step(torch.compile(model, backend="hidet"), model, options,
                          case)}
    backend.watchers.clear()
    found["parts"] = sum(len(version.parts) for version in ran)
    found["left"] = sorted({name for version in ran for name in version.left})
    if not found["parts"] or any(p.refused for v in ran for p in v.parts):
        raise RuntimeError("nothing is compiled: %s" % found)
    if options.inductor and options.device != "cpu":
        torch._dynamo.reset()
        steps["inductor"] = Step(torch.compile(model), model, options, case)
    if options.device != "cpu":
        ready.wait()
        with lock:
            for step in steps.values():
                step.capture()
            for name, step in steps.items():
                found[name + "_ms"] = step.ms(options.replays)
            size = sum(p.numel() * p.element_size() for p in model.parameters())
            found["share_of_copy"] = size / found["ours_ms"] / copy_rate()
    for name, step in steps.items():
        error = (step.answer() - expected).abs().max() / expected.abs().max()
        found[name + "_error"] = float(error)
    return found


def work(options, case, ready, lock, answers):
    import torch
    try:
        with torch.no_grad():
            answers.put(measured(options, case, ready, lock))
    except BaseException:
        ready.abort()  # Nobody waits for it.
        raise


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--batches", default="1,16,64")
    parser.add_argument("--prompts")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--used", type=int, default=1000)
    parser.add_argument("--replays", type=int, default=50)
    parser.add_argument("--no-inductor", dest="inductor", action="store_false")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    import multiprocessing
    context = multiprocessing.get_context("spawn")
    if options.prompts:  # Batch, tokens at once, the cache's rows, those in use.
        asked = [(1, n, n, 0) for n in map(int, options.prompts.split(","))]
    else:
        asked = [(n, 1, options.rows, options.used)
                 for n in map(int, options.batches.split(","))]
    cases, running = [], []
    ready, lock = context.Barrier(len(asked)), context.Lock()
    for case in asked:
        answers = context.SimpleQueue()
        process = context.Process(target=work,
                                  args=(options, case, ready, lock, answers))
        process.start()
        running.append((process, answers))
    for process, answers in running:
        process.join()
        if process.exitcode:
            return 1
        cases.append(answers.get())
        print("  ".join("%s %s" % (key, "%.4g" % value if isinstance(value, float)
                                   else value)
                        for key, value in cases[-1].items()), flush=True)
        if options.device != "cpu":
            measure.write(options.json, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
