# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model behind HTTP by FastAPI: one process, one device. Requests that come
together run together.

usage: serve_fastapi.py [MODEL.onnx|MODEL.hidet] [--device=auto] [--size=batch]
                        [--port=8000]

  curl localhost:8000/predict -d '{"inputs": [[[...]]]}' \
       -H 'content-type: application/json'

The model has one input, whose first axis is --size (default: the digits of
examples/digits); a request is one element of it. It is compiled for batches up
to each power of two, so no number of requests compiles again. Needs fastapi and
uvicorn. One such process for each GPU (--device=cuda:1) behind a balancer is
several GPUs; serve_ray.py is that in one program.
"""

import argparse
import asyncio
import contextlib
import pathlib

import hidet
import numpy
from fastapi import FastAPI, HTTPException

DIGITS = pathlib.Path(__file__).parents[1] / "digits" / "model.onnx"


class Batcher:
    """Gives requests to a model, so many at once at most; one waits for
    others so many seconds, and for those that run."""

    def __init__(self, model, most=32, wait=0.002):
        self.model, self.most, self.wait = model, most, wait
        self.waiting = asyncio.Queue()
        self.batches = []  # How many were in each, of late.

    async def run(self):
        while True:
            given = [await self.waiting.get()]
            if self.waiting.qsize() + 1 < self.most:
                await asyncio.sleep(self.wait)
            while len(given) < self.most and not self.waiting.empty():
                given.append(self.waiting.get_nowait())
            await self.serve(given)

    async def serve(self, given):
        arrays = numpy.stack([array for array, _ in given])
        self.batches = self.batches[-999:] + [len(given)]
        try:
            # Other requests come in while the library runs.
            results = await asyncio.to_thread(self.model, arrays)
        except hidet.HidetError as error:
            for _, answer in given:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), result in zip(given, results):
            if not answer.done():  # Its client may have gone.
                answer.set_result(result)

    async def __call__(self, array):
        answer = asyncio.get_running_loop().create_future()
        await self.waiting.put((array, answer))
        return await answer


def make_app(path=DIGITS, device="auto", size="batch"):
    model = hidet.load(path, device=device, buckets={size: ()})
    (value,) = model.inputs
    element = value.shape[1:]
    dtype = hidet.model.dtype_of(value.type)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        app.batcher = Batcher(model)
        task = asyncio.create_task(app.batcher.run())
        yield
        task.cancel()

    app = FastAPI(title="hidet", lifespan=lifespan)

    @app.post("/predict")
    async def predict(request: dict):
        try:
            array = numpy.asarray(request["inputs"], dtype)
        except (KeyError, ValueError, TypeError) as error:
            raise HTTPException(422, f"no array in 'inputs': {error}") from None
        if array.shape != element:
            raise HTTPException(422, f"{array.shape} is not {element}")
        return {"outputs": (await app.batcher(array)).tolist()}

    @app.get("/batches")
    async def batches():
        return {"batches": app.batcher.batches, "device": model.device}

    return app


if __name__ == "__main__":
    import uvicorn

    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default=DIGITS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--size", default="batch")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    app = make_app(options.model, options.device, options.size)
    uvicorn.run(app, port=options.port)
