# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of examples/python on the CPU, that is on the simulator."""

import pathlib
import runpy
import sys
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    print("needs PyTorch (pip install torch), or -DHIDET_TORCH_PYTHON=PYTHON")
    sys.exit(77)

ROOT = pathlib.Path(__file__).parents[2]


def run(name):
    path = ROOT / "examples" / "python" / name
    with mock.patch.object(sys, "argv", [str(path), "--device=cpu"]):
        runpy.run_path(str(path), run_name="__main__")


class Examples(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_naive_matmul(self):
        run("naive_matmul.py")

    def test_resnet(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import export_models

        try:
            export_models.torchvision_models()
        except ImportError:
            self.skipTest("needs torchvision")
        run("resnet.py")


if __name__ == "__main__":
    unittest.main()
