# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model served over HTTP by examples/python/serve_fastapi.py, a process for
each device, behind a balancer that gives a request to the server that has the
fewest: requests a second of each server alone and of all, and how long a batch
takes. Every answer is held against PyTorch's.

usage: serving.py [--json=FILE] [--devices=cuda:0,cuda:1] [--seconds=5]
           [--waiting=128] [--tokens=384] [--atol=1e-3] FOLDER
  --waiting: requests that a server has at any time
  FOLDER: model.onnx, which has one input and output with a symbolic batch;
      inputs.npy, expected.npy. Where it is not there it is made: BERT in f32,
      the first 16 values of the first token

The servers need fastapi and uvicorn. HIDET_LIBRARY names the library where it
is not installed.
"""
import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

import numpy

import measure

ROOT = measure.ROOT
POOL = 64  # Different requests.


def make_model(folder, tokens):
    sys.path.insert(0, str(ROOT / "scripts"))
    import export_models
    import torch

    class First(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return self.model(ids)[:, 0, :16]

    folder.mkdir(parents=True)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = export_models.find_model("bert_base")
    network = First(model.make().eval())
    x = export_models.draw_input(model, POOL, tokens)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.inference_mode():
        y = network.to(device)(x.to(device)).cpu()
    torch.onnx.export(network.to("cpu"), (x[:2],), str(folder / "model.onnx"),
                      dynamo=True, opset_version=18, external_data=True,
                      dynamic_shapes=({0: torch.export.Dim("batch")},),
                      verbose=False)
    numpy.save(folder / "inputs.npy", x.numpy())
    numpy.save(folder / "expected.npy", y.numpy())


class Server:
    """A process, and the requests that it has."""

    def __init__(self, model, device, size):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.device, self.asked = device, 0
        path = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "examples/python/serve_fastapi.py"),
             str(model), "--device=" + device, "--size=" + size,
             "--port=%d" % self.port], stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)})

    async def connect(self):
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", self.port)
            except ConnectionError:
                if self.process.poll() is not None:
                    raise RuntimeError("a server has ended") from None
                await asyncio.sleep(0.1)

    async def ask(self, connection, request):
        reader, writer = connection
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(size)
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(body.decode())
        return json.loads(body)

    async def batches(self):
        connection = await self.connect()
        found = await self.ask(connection, b"GET /batches HTTP/1.1\r\nhost: x\r\n\r\n")
        connection[1].close()
        return found["batches"]


class Load:
    """Requests to servers, so many at any time."""

    def __init__(self, servers, inputs, expected, options):
        self.servers, self.expected, self.options = servers, expected, options
        self.requests = [self.post(x) for x in inputs]
        self.done = [[] for _ in servers]  # When each answer came.
        self.error, self.ends = 0.0, False

    @staticmethod
    def post(x):
        body = json.dumps({"inputs": x.tolist()}).encode()
        return (b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: "
                b"application/json\r\ncontent-length: %d\r\n\r\n" % len(body)) + body

    async def client(self, first):
        """Asks again and again, on a connection to each server."""
        connections = [await s.connect() for s in self.servers]
        at = first
        while not self.ends:
            k = min(range(len(self.servers)), key=lambda k: self.servers[k].asked)
            at = (at + 1) % len(self.requests)
            self.servers[k].asked += 1
            try:
                answer = await self.servers[k].ask(connections[k], self.requests[at])
            finally:
                self.servers[k].asked -= 1
            off = numpy.abs(numpy.asarray(answer["outputs"]) - self.expected[at])
            self.error = max(self.error, float(off.max()))
            self.done[k].append(time.perf_counter())
        for _, writer in connections:
            writer.close()

    async def a_second(self, seconds):
        count = self.options.waiting * len(self.servers)
        clients = [asyncio.create_task(self.client(i * 7)) for i in range(count)]
        await asyncio.sleep(1)
        start = time.perf_counter()
        await asyncio.sleep(seconds)
        rate = sum(slope([t - start for t in times if t >= start])
                   for times in self.done)
        self.ends = True
        await asyncio.gather(*clients)
        if not self.error <= self.options.atol:
            raise RuntimeError("an answer is off by %g" % self.error)
        return rate, self.error


def slope(times):
    """Answers a second: they come in batches, of which the window has no whole
    number, so their count over its length is not it."""
    if len(times) < 2:
        return 0.0
    return float(numpy.polyfit(times, numpy.arange(len(times)), 1)[0])


async def measured(options, servers):
    inputs = numpy.load(options.folder / "inputs.npy")
    expected = numpy.load(options.folder / "expected.npy")
    load = lambda some: Load(some, inputs, expected, options)
    for server in servers:  # What is compiled is compiled now.
        await load([server]).a_second(1)
    found = {"devices": [s.device for s in servers], "waiting": options.waiting,
             "request_bytes": len(load([]).requests[0]), "alone": [],
             "batch": [], "batch_ms": [], "error": 0.0}
    for server in servers:
        rate, error = await load([server]).a_second(options.seconds)
        batch = statistics.median((await server.batches())[-20:])
        found["alone"].append(rate)
        found["batch"].append(batch)
        found["batch_ms"].append(1e3 * batch / rate)
        found["error"] = max(found["error"], error)
    found["all"], error = await load(servers).a_second(options.seconds)
    found["error"] = max(found["error"], error)
    found["over_one"] = found["all"] / statistics.mean(found["alone"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--devices", default="cuda:0,cuda:1")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--waiting", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=384)
    parser.add_argument("--size", default="batch")
    parser.add_argument("--atol", type=float, default=1e-3)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    if not options.folder.exists():
        make_model(options.folder, options.tokens)
    with contextlib.ExitStack() as ends:
        servers = []
        for device in options.devices.split(","):
            servers.append(Server(options.folder / "model.onnx", device, options.size))
            ends.callback(servers[-1].process.terminate)
        found = asyncio.run(measured(options, servers))
    print("requests a second: alone %s; all %.1f (%.3f x); batches of %s in %s ms; "
          "error %.1e" % (
              ", ".join("%.1f" % r for r in found["alone"]), found["all"],
              found["over_one"], found["batch"],
              ["%.1f" % ms for ms in found["batch_ms"]], found["error"]))
    if "cuda" in options.devices:
        measure.write(options.json, [found])


if __name__ == "__main__":
    main()
