# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token's step of a Llama of 8 B in f16, with a static cache of 2,048 rows of
which 1,000 are in use, divided over the GPUs of one host by PyTorch's DTensor:
the backend's parts and NCCL's collectives in one CUDA graph on each GPU, beside
PyTorch's own operators in one, and both on one GPU. Logits are held against
those of PyTorch on one GPU, as part of the largest.

usage: tensor_parallel.py [--json=FILE] [--processes=2] [--layers=32]
           [--rows=2048] [--used=1000] [--replays=50] [--small]
  --small: a tiny Llama on the CPU and the simulator, over gloo: answers alone

A line of one process, which is the first while the others wait, and one of all.
A decoder's layer is a region that is compiled once: 32 traced one by one take
Dynamo a minute. What the first process is at, and when, goes to standard error.
Weights are random, made where they are. HIDET_LIBRARY names the library where
it is not installed.
"""
import argparse
import logging
import os
import socket
import statistics
import sys
import time

import measure

try:
    import torch
    import transformers
except ImportError as error:
    print("needs PyTorch and transformers: %s" % error)
    sys.exit(77)
from torch import distributed  # noqa: E402
from torch.distributed._functional_collectives import AsyncCollectiveTensor  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import Replicate  # noqa: E402
from torch.distributed.tensor.parallel import (  # noqa: E402
    ColwiseParallel, RowwiseParallel, parallelize_module)

sys.path[:0] = [str(measure.ROOT / "scripts"), str(measure.ROOT / "python")]
import export_models  # noqa: E402
import hidet.torch  # noqa: E402,F401  The backend.
from hidet.torch import backend  # noqa: E402

PLAN = {
    "self_attn.q_proj": ColwiseParallel(),
    "self_attn.k_proj": ColwiseParallel(),
    "self_attn.v_proj": ColwiseParallel(),
    "self_attn.o_proj": RowwiseParallel(),
    "mlp.gate_proj": ColwiseParallel(),
    "mlp.up_proj": ColwiseParallel(),
    "mlp.down_proj": RowwiseParallel(),
}
LARGE = dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32,
             num_key_value_heads=8, vocab_size=128256)
SMALL = dict(hidden_size=64, intermediate_size=128, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=128)


BEGUN = time.perf_counter()


def say(text):
    """What has been done, and when: a run that is ended early still tells."""
    if int(os.environ.get("RANK", 0)) == 0:
        print("%7.2f s: %s" % (time.perf_counter() - BEGUN, text),
              file=sys.stderr, flush=True)


def make_model(options):
    export_models.torchvision_models()  # transformers imports it, too.
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **(SMALL if options.small else LARGE), num_hidden_layers=options.layers,
        max_position_embeddings=options.rows, tie_word_embeddings=False)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if options.small else torch.float16)
    with torch.device(options.device):
        model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(before)
    return model


def make_cache(model, options, rank, processes):
    """Each process has its heads of the same cache."""
    cache = transformers.StaticCache(config=model.config,
                                     max_cache_len=options.rows)
    heads, size = model.config.num_key_value_heads, model.config.head_dim
    own = slice(rank * heads // processes, (rank + 1) * heads // processes)
    drawn = torch.Generator(options.device).manual_seed(1)
    for layer in cache.layers:
        whole = torch.randn(2, 1, heads, options.rows, size, generator=drawn,
                            device=options.device, dtype=model.dtype)[:, :, own]
        layer.lazy_initialization(whole[0], whole[1])
        layer.keys.copy_(whole[0])
        layer.values.copy_(whole[1])
    return cache


def rewind(cache, used):
    for layer in cache.layers:
        layer.cumulative_length.fill_(used)


class Rows:
    """The cache of one layer, as its attention wants one."""

    def __init__(self, keys, values, at):
        self.keys, self.values, self.at = keys, values, at

    def update(self, keys, values, *_, **__):
        self.keys.index_copy_(2, self.at, keys)
        self.values.index_copy_(2, self.at, values)
        return self.keys, self.values


def region(layer, hidden, mask, rotary, keys, values, at):
    """Of a layer, with nothing in it that is one layer's alone."""
    return layer(hidden, attention_mask=mask, position_embeddings=rotary,
                 past_key_values=Rows(keys, values, at))


class Layer(torch.nn.Module):
    """Stands for a layer of the model, and runs the region."""

    def __init__(self, layer, index, run):
        super().__init__()
        layer.self_attn.layer_idx = 0  # Dynamo would compile for each.
        self.layer, self.index, self.run = layer, index, run

    def forward(self, hidden, attention_mask, position_embeddings, position_ids,
                past_key_values, **_):
        rows = past_key_values.layers[self.index]
        return self.run(self.layer, hidden, attention_mask, position_embeddings,
                        rows.keys, rows.values, position_ids[0])


class Regions:
    """The model with its layers and its ends made by `how`: compiled, or not."""

    def __init__(self, model, how):
        run, self.model = how(region), model
        self.layers = torch.nn.ModuleList(
            Layer(layer, index, run)
            for index, layer in enumerate(model.model.layers))
        self.ends = how(model.model.norm), how(model.lm_head)

    def __call__(self, **given):
        model = self.model
        own = model.model.layers, model.model.norm, model.lm_head
        model.model.layers, (model.model.norm, model.lm_head) = self.layers, self.ends
        try:
            return model(**given)
        finally:
            model.model.layers, model.model.norm, model.lm_head = own


class Step:
    """One token's step, and its CUDA graph."""

    def __init__(self, forward, model, options, rank, processes):
        self.cache = make_cache(model, options, rank, processes)
        self.alone = processes == 1
        self.used, self.forward, self.graph = options.used, forward, None
        self.token = torch.full((1, 1), 17, device=options.device)
        self.at = torch.full((1, 1), self.used, device=options.device)
        rewind(self.cache, self.used)
        self.logits = self.call()

    def call(self):
        logits = self.forward(input_ids=self.token, position_ids=self.at,
                              past_key_values=self.cache, use_cache=True).logits
        # What PyTorch's own operators gather is waited for where it is used.
        return logits.wait() if isinstance(logits, AsyncCollectiveTensor) else logits

    def wait(self):
        torch.cuda.synchronize()
        if not self.alone:
            distributed.barrier()
            torch.cuda.synchronize()

    def capture(self, mode="thread_local"):
        """NCCL's watchdog asks for events while this thread captures."""
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(2):
                self.call()
        self.wait()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=side,
                              capture_error_mode=mode):
            self.logits = self.call()

    def answer(self):
        rewind(self.cache, self.used)
        if self.graph:
            self.graph.replay()
        else:
            self.logits = self.call()
        return self.logits.float().cpu()

    def ms(self, replays, at_once=10):
        """Of a step: medians of so many back to back."""
        times = []
        for turn in range(replays // at_once + 1):
            rewind(self.cache, self.used)
            self.wait()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(at_once):
                self.graph.replay()
            end.record()
            end.synchronize()
            if turn:
                times.append(begin.elapsed_time(end) / at_once)
        return statistics.median(times)


def divide(model, options, processes):
    mesh = init_device_mesh(options.device, (processes,))
    for layer in model.model.layers:
        parallelize_module(layer, mesh, PLAN, src_data_rank=None)
    parallelize_module(model, mesh, {
        "lm_head": ColwiseParallel(output_layouts=Replicate())},
        src_data_rank=None)


def compiled(part):
    """Weights stay where they are: a product of one row reads them so."""
    return torch.compile(part, backend="hidet", fullgraph=True,
                         options={"freeze": False})


def measured(model, expected, options, rank, processes):
    found = {"processes": processes, "layers": options.layers}
    ran, steps = [], {}
    backend.watchers.append(ran.append)
    for name, how in (("hidet", compiled), ("torch", lambda part: part)):
        steps[name] = Step(Regions(model, how), model, options, rank, processes)
        say("the first step of %d by %s" % (processes, name))
    backend.watchers.clear()
    found["calls"] = len(ran)
    found["graphs"] = len(set(map(id, ran)))
    found["parts"] = sum(len(version.parts) for version in ran)
    found["left"] = sorted({name for version in ran for name in version.left})
    if not found["parts"] or any(p.refused for v in ran for p in v.parts):
        raise RuntimeError("nothing is compiled: %s" % found)
    for name, step in steps.items():
        if not options.small:
            step.capture()
            say("captured %s" % name)
            found[name + "_ms"] = step.ms(options.replays)
        error = (step.answer() - expected).abs().max() / expected.abs().max()
        found[name + "_error"] = float(error)
    say("measured %d: %s" % (processes, found))
    return found


def cases_of(options, rank, processes):
    """Of the first process alone, then of all."""
    model = make_model(options)
    say("a model of %d layers" % options.layers)
    expected = Step(model, model, options, 0, 1).answer()
    say("PyTorch's answer")
    if rank == 0:
        yield measured(model, expected, options, 0, 1)
        torch._dynamo.reset()
    if processes > 1:
        divide(model, options, processes)
        say("divided over %d" % processes)
        distributed.barrier()
        yield measured(model, expected, options, rank, processes)


def work(rank, options, processes, port, answers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      RANK=str(rank), WORLD_SIZE=str(processes),
                      LOCAL_RANK=str(rank))
    logging.disable(logging.INFO)
    if not options.small:
        torch.cuda.set_device(rank)
    distributed.init_process_group("gloo" if options.small else "nccl")
    say("process group of %d" % processes)
    with torch.no_grad():
        for found in cases_of(options, rank, processes):
            if rank == 0:
                answers.put(found)
    distributed.barrier()
    distributed.destroy_process_group()


def run(options):
    """What the first process finds, as it comes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers = torch.multiprocessing.get_context("spawn").SimpleQueue()
    others = torch.multiprocessing.spawn(
        work, (options, options.processes, port, answers),
        nprocs=options.processes, join=False)
    for _ in range(min(options.processes, 2)):
        while answers.empty():
            others.join(timeout=0.1)  # Raises what one of them has raised.
        yield answers.get()
    while not others.join():
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--used", type=int, default=1000)
    parser.add_argument("--replays", type=int, default=50)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    options.device = "cpu" if options.small else "cuda"
    cases = []
    for case in run(options):
        for name in ("hidet", "torch"):
            if cases and name + "_ms" in case:
                case[name + "_over_first"] = cases[0][name + "_ms"] / case[name + "_ms"]
        cases.append(case)
        print("  ".join("%s %s" % (key, "%.4g" % value
                                   if isinstance(value, float) else value)
                        for key, value in case.items()), flush=True)
        if not options.small:
            measure.write(options.json, cases)


if __name__ == "__main__":
    main()
