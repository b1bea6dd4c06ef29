# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor parallel in small: a tiny Llama of transformers over two processes of
this machine (gloo), by PyTorch's own DTensor and parallelize_module, compiled
with the backend. Each process has half of the heads and of the columns; the
collectives are PyTorch's, between parts of ours. The answer is held against the
whole model's in PyTorch.

usage: torch_parallel.py [--processes=N] [--device=cpu|cuda]

cuda: a GPU for each process, over NCCL, in f16; the time of a call, too. Exit
1: wrong, or nothing is ours; 77: PyTorch or transformers is not there.
"""

import argparse
import logging
import os
import pathlib
import socket
import sys
import time

try:
    import torch
    import transformers
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )
except ImportError as error:
    print("needs PyTorch and transformers: %s" % error)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import export_models  # noqa: E402
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
LAYERS = 2


def make_model(device):
    export_models.torchvision_models()  # transformers imports it, too.
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    model = transformers.LlamaForCausalLM(config).eval().to(device)
    return model.half() if device == "cuda" else model


def forward(model):
    return lambda ids: model(input_ids=ids, use_cache=False).logits


def timed(call, ids):
    for _ in range(3):
        call(ids)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(100):
        call(ids)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e4


def work(rank, options, port):
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(rank),
        WORLD_SIZE=str(options.processes),
        LOCAL_RANK=str(rank),
    )
    logging.disable(logging.INFO)
    on_gpu = options.device == "cuda"
    if on_gpu:
        torch.cuda.set_device(rank)
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    mesh = init_device_mesh(options.device, (options.processes,))
    ids = torch.arange(24, device=options.device).reshape(2, 12) * 5 % 128
    with torch.no_grad():
        expected = forward(make_model(options.device))(ids)
        model = make_model(options.device)
        for layer in model.model.layers:
            parallelize_module(layer, mesh, PLAN)
        shards = model.model.layers[0].mlp.up_proj.weight.to_local()
        assert shards.shape[0] == 128 // options.processes, shards.shape
        call = torch.compile(forward(model), backend="hidet")
        ran = []
        backend.watchers.append(ran.append)
        found = call(ids)
        backend.watchers.clear()
        again = call(ids)
    tolerance = 1e-2 if on_gpu else 1e-4
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(again, found, rtol=0, atol=0)
    parts = [part for version in ran for part in version.parts]
    left = sorted({name for version in ran for name in version.left})
    ours = sum(len(part.operators()) for part in parts if not part.refused)
    if rank == 0:
        print(
            "%d processes: %d graphs, %d parts; in PyTorch: %s"
            % (options.processes, len(ran), len(parts), ", ".join(left))
        )
    # A part before and after each of the two sums of a layer.
    assert len(ran) == 1 and ours and len(parts) >= 2 * LAYERS, (ran, parts)
    # Which are made where the part's result is.
    sums = [
        str(node.target)
        for node in ran[0].call.graph.nodes
        if "all_reduce" in str(node.target)
    ]
    in_place = "_c10d_functional.all_reduce_.default"
    assert sums == [in_place] * 2 * LAYERS, sums
    if on_gpu:
        us = timed(call, ids)
        if rank == 0:
            print("a call: %.0f us" % us)
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(
        work, (options, port), nprocs=options.processes
    )
    print("right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
