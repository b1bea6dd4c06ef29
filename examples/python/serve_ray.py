# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model on several GPUs, of one host or of a cluster, by Ray Serve: a replica
a GPU, requests that come together run together.

usage: serve_ray.py [MODEL.onnx|MODEL.hidet] [--replicas=1] [--device=cuda|sim]
                    [--size=batch] [--requests=N]

The model is as serve_fastapi.py has it; so are requests: POST to
http://localhost:8000/ with {"inputs": ...}. With --requests it answers so many
random ones by itself, says how many a second, and ends. Needs "ray[serve]".
"""

import argparse
import pathlib
import time

import hidet
import numpy
import ray
from ray import serve

DIGITS = pathlib.Path(__file__).parents[1] / "digits" / "model.onnx"


@serve.deployment
class Hidet:
    def __init__(self, path, device, size):
        # Ray shows each replica its own GPU, as the first.
        self.model = hidet.load(path, device=device, buckets={size: ()})
        (value,) = self.model.inputs
        self.element = value.shape[1:]
        self.dtype = hidet.model.dtype_of(value.type)
        self.batches = 0

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.002)
    async def predict(self, arrays):
        """Ray makes one call of many, and many answers of one."""
        self.batches += 1
        return list(self.model(numpy.stack(arrays)))

    async def answer(self, array):
        array = numpy.asarray(array, self.dtype)
        if array.shape != self.element:
            raise ValueError(f"{array.shape} is not {self.element}")
        return await self.predict(array)

    async def __call__(self, request):
        given = await request.json()
        return {"outputs": (await self.answer(given["inputs"])).tolist()}

    def statistics(self):
        return {"batches": self.batches, "device": self.model.device}


def start(path=DIGITS, device="cuda", size="batch", replicas=1, **options):
    """The deployment's handle: handle.answer.remote(array).result()."""
    app = Hidet.options(
        num_replicas=replicas,
        max_ongoing_requests=64,
        ray_actor_options={"num_gpus": 1 if device == "cuda" else 0},
    ).bind(str(path), device, size)
    return serve.run(app, **options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default=DIGITS)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--device", choices=("cuda", "sim"), default="cuda")
    parser.add_argument("--size", default="batch")
    parser.add_argument("--requests", type=int, default=0)
    options = parser.parse_args()
    ray.init(log_to_driver=False)
    handle = start(
        options.model, options.device, options.size, options.replicas
    )
    if not options.requests:
        while True:
            time.sleep(3600)
    model = hidet.load(options.model, device="ref")
    (value,) = model.inputs
    array = numpy.random.default_rng(0).random(value.shape[1:], "float32")
    for count in (64 * options.replicas, options.requests):
        begin = time.perf_counter()
        answers = [handle.answer.remote(array) for _ in range(count)]
        for answer in answers:
            answer.result()
        seconds = time.perf_counter() - begin
    print(f"{options.replicas} replicas: {count / seconds:.0f} a second")
    serve.shutdown()


if __name__ == "__main__":
    main()
