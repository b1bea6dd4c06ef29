# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The servers of examples/python, on the simulator, with the digits that
examples/digits knows the answers to."""

import concurrent.futures
import pathlib
import sys
import unittest

import numpy

ROOT = pathlib.Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
sys.path.insert(0, str(ROOT / "examples" / "python"))

try:
    import serve_fastapi
    from fastapi.testclient import TestClient
except (ImportError, RuntimeError):  # The client wants httpx.
    serve_fastapi = None
try:
    import ray
    import serve_ray
except ImportError:
    ray = None
if not serve_fastapi and not ray:
    print("needs fastapi with httpx, or ray[serve]")
    sys.exit(77)

COUNT = 60


class Digits(unittest.TestCase):
    def setUp(self):
        self.images = numpy.load(DIGITS / "images.npy")[:COUNT]
        self.expected = numpy.load(DIGITS / "expected.npy")[:COUNT]

    def check(self, answers):
        numpy.testing.assert_allclose(answers, self.expected, atol=1e-5)


@unittest.skipUnless(serve_fastapi, "needs fastapi and httpx")
class FastAPI(Digits):
    def test_predict(self):
        """Side by side: each has its own answer, and batches are some."""
        app = serve_fastapi.make_app(device="sim")

        def ask(image):
            answer = client.post("/predict", json={"inputs": image.tolist()})
            self.assertEqual(answer.status_code, 200)
            return answer.json()["outputs"]

        with (
            TestClient(app) as client,
            concurrent.futures.ThreadPoolExecutor(16) as pool,
        ):
            self.check(list(pool.map(ask, self.images)))
            said = client.get("/batches").json()
            self.assertEqual(sum(said["batches"]), COUNT)
            self.assertLess(len(said["batches"]), COUNT)
            self.assertEqual(said["device"], "sim")

    def test_bad_requests(self):
        with TestClient(serve_fastapi.make_app(device="sim")) as client:
            for given in ({"inputs": [1, 2]}, {"inputs": "x"}, {}):
                answer = client.post("/predict", json=given)
                self.assertEqual(answer.status_code, 422, given)


@unittest.skipUnless(ray, "needs ray[serve]")
class Ray(Digits):
    @classmethod
    def setUpClass(cls):
        ray.init(
            num_cpus=4,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": ":".join(sys.path)}},
        )

    @classmethod
    def tearDownClass(cls):
        serve_ray.serve.shutdown()
        ray.shutdown()

    def test_replicas(self):
        handle = serve_ray.start(device="sim", replicas=2)
        answers = [handle.answer.remote(image) for image in self.images]
        self.check([answer.result() for answer in answers])
        said = handle.statistics.remote().result()
        self.assertEqual(said["device"], "sim")
        self.assertLess(said["batches"], COUNT)
        with self.assertRaisesRegex(Exception, "is not"):
            handle.answer.remote([1.0]).result()


if __name__ == "__main__":
    unittest.main()
