# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""generate() of transformers' models through torch.compile(backend="hidet"), on
the simulator: PyTorch's tokens, and nothing made for a token. More models are in
test/tools/torch_generate.py."""

import logging
import pathlib
import sys
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools"))
try:
    import torch_generate

    torch_generate.make("Llama")
except ImportError as missing:
    print(f"needs PyTorch and transformers: {missing}")
    sys.exit(77)

from hidet.torch import backend


class Generate(unittest.TestCase):
    def setUp(self):
        backend.said.clear()
        warnings.simplefilter("ignore")

    def check_static(self, family, tokens=32):
        """Its graphs, a set of sizes and a compilation for each."""
        found = torch_generate.generate(family, "static", tokens)
        graphs = torch_generate.FAMILIES[family][3]
        self.assertTrue(found.right)
        self.assertEqual(
            (len(found.graphs), found.versions, len(found.parts)), (graphs,) * 3
        )
        self.assertEqual((found.compiled, found.refused), (graphs, 0))
        self.assertEqual(backend.said, set())

    def test_static_cache(self):
        self.check_static("Llama")

    def test_sliding_window(self):
        """A number that Python counts up with each token is no size."""
        self.check_static("Mistral", tokens=16)

    def test_encoder_and_decoder(self):
        self.check_static("T5", tokens=8)

    def test_growing_cache(self):
        """Lengths of 5 to 20: up to 8, 16, 32, and the prompt."""
        found = torch_generate.generate("GPT2", "buckets", 16)
        self.assertTrue(found.right)
        self.assertEqual((len(found.graphs), len(found.models)), (2, 2))
        self.assertEqual((found.compiled, found.refused), (4, 0))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    unittest.main()
