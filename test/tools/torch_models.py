# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families of torchvision's and transformers' models, small, through
torch.compile(backend="hidet") on the CPU, that is on the simulator, against
PyTorch.

usage: torch_models.py [--filter=REGEX] [--json=FILE]

A line each: largest error over the largest value, of all results; parts of
ours; what is left in PyTorch. A model passes if it is one graph of Dynamo's
(fullgraph=True) and its error is below 1e-4, or against f64 below PyTorch's
own. Exits 1 if one does not.
"""

import argparse
import copy
import json
import logging
import math
import pathlib
import re
import sys
import time
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import export_models  # noqa: E402

torchvision_models = export_models.torchvision_models

import hidet.torch  # noqa: E402
from hidet.torch import backend, part  # noqa: E402

# torchvision: name, the size of the image.
VISION = """alexnet 64, convnext_tiny 32, densenet121 32, efficientnet_b0 32,
efficientnet_v2_s 32, googlenet 64, inception_v3 96, maxvit_t 224, mnasnet1_0 32,
mobilenet_v2 32, mobilenet_v3_small 32, regnet_y_400mf 32, resnet18 64,
resnext50_32x4d 32, shufflenet_v2_x1_0 32, squeezenet1_1 64, swin_t 64,
swin_v2_t 64, vgg11 32, vit_b_16 224, wide_resnet50_2 32,
segmentation.deeplabv3_mobilenet_v3_large 64, segmentation.fcn_resnet50 32,
segmentation.lraspp_mobilenet_v3_large 64, fpn 64"""
MOST = 1e-4  # Error of a model.
# transformers: model, configuration, its values beside SMALL, kind of input.
SMALL = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    vocab_size=100,
    max_position_embeddings=64,
)
CAUSAL = dict(SMALL, num_key_value_heads=2, head_dim=8)
IMAGES = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    image_size=32,
    patch_size=8,
)
LANGUAGE = {
    "Albert": ("AlbertModel", dict(SMALL, embedding_size=16)),
    "Bert": ("BertModel", SMALL),
    "Camembert": ("CamembertModel", SMALL),
    "DistilBert": (
        "DistilBertModel",
        dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64, vocab_size=100),
    ),
    "Electra": ("ElectraModel", dict(SMALL, embedding_size=16)),
    "Roberta": ("RobertaModel", dict(SMALL, pad_token_id=0)),
    "MPNet": ("MPNetModel", dict(SMALL, pad_token_id=0)),
    "XLMRoberta": ("XLMRobertaModel", dict(SMALL, pad_token_id=0)),
    "DebertaV2": ("DebertaV2Model", dict(SMALL, pad_token_id=0)),
    "ModernBert": ("ModernBertModel", dict(SMALL, pad_token_id=0)),
    "GPT2": (
        "GPT2LMHeadModel",
        dict(n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64),
    ),
    "GPTNeoX": ("GPTNeoXForCausalLM", SMALL),
    "GPTJ": (
        "GPTJForCausalLM",
        dict(
            n_embd=32,
            n_layer=2,
            n_head=4,
            vocab_size=100,
            n_positions=64,
            rotary_dim=4,
        ),
    ),
    "OPT": (
        "OPTForCausalLM",
        dict(SMALL, ffn_dim=64, word_embed_proj_dim=32),
    ),
    "Bloom": (
        "BloomForCausalLM",
        dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=100),
    ),
    "Falcon": (
        "FalconForCausalLM",
        dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            vocab_size=100,
        ),
    ),
    "Llama": ("LlamaForCausalLM", CAUSAL),
    "Mistral": ("MistralForCausalLM", CAUSAL),
    "Qwen2": ("Qwen2ForCausalLM", CAUSAL),
    "Qwen3": ("Qwen3ForCausalLM", CAUSAL),
    "Gemma": ("GemmaForCausalLM", CAUSAL),
    "Gemma2": ("Gemma2ForCausalLM", CAUSAL),
    "Phi": ("PhiForCausalLM", SMALL),
    "Phi3": ("Phi3ForCausalLM", dict(CAUSAL, pad_token_id=0)),
    "Olmo2": ("Olmo2ForCausalLM", CAUSAL),
    "StableLm": ("StableLmForCausalLM", CAUSAL),
    "T5": (
        "T5EncoderModel",
        dict(
            d_model=32,
            d_ff=64,
            d_kv=8,
            num_layers=2,
            num_heads=4,
            vocab_size=100,
        ),
    ),
    "ViT": ("ViTModel", IMAGES),
    "DeiT": ("DeiTModel", IMAGES),
    "Dinov2": ("Dinov2Model", IMAGES),
}


def vision(name, size):
    models = torchvision_models()
    x = torch.randn(1, 3, size, size)
    if name == "fpn":
        from torchvision.models.detection import backbone_utils

        made = backbone_utils.resnet_fpn_backbone(
            backbone_name="resnet18", weights=None
        )
        return made, (x,)
    folder, _, name = name.rpartition(".")
    source = getattr(models, folder) if folder else models
    options = {"weights": None}
    if folder:
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options.update(init_weights=True, aux_logits=False)
    return getattr(source, name)(**options), (x,)


def language(name):
    import transformers

    kind, values = LANGUAGE[name]
    config = getattr(transformers, name + "Config")(**values)
    model = getattr(transformers, kind)(config)
    if "image_size" in values:
        return model, (torch.randn(1, 3, 32, 32),)
    return model, (torch.randint(1, 99, (1, 16)),)


def cases():
    for row in VISION.replace("\n", " ").split(","):
        name, size = row.split()
        yield "vision/" + name, vision, (name, int(size))
    for name in LANGUAGE:
        yield "language/" + name, language, (name,)


class Watch:
    """Parts that are made, and what is left between them."""

    def __init__(self):
        self.parts, self.left = [], set()
        self.init, self.divide = part.Part.__init__, backend.divide

    def __enter__(self):
        def init(this, *arguments):
            self.init(this, *arguments)
            self.parts.append(this)

        def divide(*arguments):
            made = self.divide(*arguments)
            self.left.update(made.left)
            return made

        part.Part.__init__, backend.divide = init, divide
        return self

    def __exit__(self, *_):
        part.Part.__init__, backend.divide = self.init, self.divide


def tensors(value):
    leaves = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in leaves if torch.is_tensor(leaf)]


def error_of(made, own):
    """The largest over the largest value; NaN is no number of ours, nor what
    has another type or shape."""
    if (made.shape, made.dtype) != (own.shape, own.dtype):
        return math.inf
    if not own.is_floating_point():
        return 0.0 if torch.equal(made, own) else math.inf
    if not own.numel():
        return 0.0
    off = float((made - own).abs().max()) / max(float(own.abs().max()), 1e-30)
    return math.inf if math.isnan(off) else off


def exactly(model, inputs):
    """What the model gives in f64."""
    with torch.no_grad():
        wide = copy.deepcopy(model).double()
        return wide(
            *(x.double() if x.is_floating_point() else x for x in inputs)
        )


def run(make, arguments):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, inputs = make(*arguments)
    if make is vision:
        # Statistics that keep what goes through a deep network near 1, and
        # weights that do not make nothing of it.
        with torch.no_grad():
            for weight in model.parameters():
                if not weight.any():
                    weight.normal_(0, 0.1)
            for module in model.modules():
                if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                    module.momentum = None
            model.train()(torch.cat([torch.randn_like(x) for x in 4 * inputs]))
    model.eval()
    start = time.time()
    with torch.no_grad(), Watch() as watch:
        own = tensors(model(*inputs))
        ours = torch.compile(model, backend="hidet", fullgraph=True)
        made = tensors(ours(*inputs))
    if len(made) != len(own):
        raise AssertionError(f"{len(made)} results for {len(own)}")
    off = max(map(error_of, made, own), default=0.0)
    rounding = 0.0
    if off >= MOST:
        # A network may make much of roundings: then f64 says who is right.
        exact = tensors(exactly(model, inputs))
        rounding = max(map(error_of, own, (e.float() for e in exact)))
        off = max(map(error_of, made, (e.float() for e in exact)))
    left = watch.left | {"refused" for p in watch.parts if p.refused}
    return {
        "error": off,
        "rounding": rounding,
        "parts": len(watch.parts),
        "left": sorted(left),
        "seconds": time.time() - start,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torchvision_models()  # transformers imports it, too.
    found = {}
    for name, make, arguments in cases():
        if not re.search(options.filter, name):
            continue
        try:
            row = run(make, arguments)
        except Exception as fault:
            row = {"fault": str(fault)[:300], "left": []}
        row["passes"] = row.get("error", 1.0) < max(
            MOST, row.get("rounding", 0.0)
        )
        found[name] = row
        text = row.get("fault", "").replace("\n", " ")[:160] or (
            f"error {row['error']:.1e}, {row['parts']} parts, "
            f"{row['seconds']:.0f} s {' '.join(row['left'])}"
        )
        print(
            f"{name:44} {'ok' if row['passes'] else 'FAILS'}  {text}",
            flush=True,
        )
    passed = sum(row["passes"] for row in found.values())
    whole = sum(row["passes"] and not row["left"] for row in found.values())
    print(
        f"{passed} of {len(found)} right as one graph, "
        f"{whole} of them without a part in PyTorch"
    )
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1))
    return 0 if passed == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
