# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A network of torchvision through torch.compile, compared and timed.

usage: resnet.py [--device=cuda|cpu] [--seed=N]

On a GPU it is ResNet-50 in f16; on the CPU, that is on the simulator, ResNet-18
in f32 and small images.
"""

import argparse

import hidet
import torch
import torchvision


def main(device, seed):
    torch.manual_seed(seed)
    if device == "cuda":
        x = torch.randn(1, 3, 224, 224, device="cuda").half()
        model = torchvision.models.resnet50().cuda().half().eval()
    else:
        x = torch.randn(1, 3, 64, 64)
        model = torchvision.models.resnet18().eval()
    hidet.torch.dynamo_config.use_tensor_core(True)
    hidet.torch.dynamo_config.search_space(2)
    model_opt = torch.compile(model, backend="hidet")
    with torch.no_grad():
        torch.testing.assert_close(
            actual=model_opt(x), expected=model(x), rtol=1e-2, atol=1e-2
        )
        from hidet.utils import benchmark_func

        print("eager: {:2f}".format(benchmark_func(lambda: model(x))))
        print("hidet: {:2f}".format(benchmark_func(lambda: model_opt(x))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    cuda = torch.cuda.is_available()
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    main(options.device, options.seed)
