# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders as ONNX models whose cache stays with the session: PyTorch's tokens,
and a compilation for each power of two. More tokens, other models and a GPU:
test/tools/decode.py."""

import logging
import pathlib
import sys
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools"))
try:
    import decode
    import onnxscript  # noqa: F401

    decode.make("Llama", 8)
except ImportError as missing:
    print(f"needs PyTorch, transformers and onnxscript: {missing}")
    sys.exit(77)


class Decode(unittest.TestCase):
    def check(self, family, copies=False):
        """A past of 0 to 19: for 0 and 1, up to 4, 8, 16 and 32."""
        warnings.simplefilter("ignore")
        found = decode.decode(family, "sim", 20, copies)
        self.assertTrue(found["right"])
        self.assertEqual(found["compiled"], 6)

    def test_grouped(self):
        self.check("Llama")

    def test_learned_places(self):
        self.check("GPT2")

    def test_copied(self):
        self.check("Llama", copies=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    unittest.main()
