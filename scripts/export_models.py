# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports published network architectures from PyTorch to ONNX, with inputs
and what PyTorch computes of them.

usage: export_models.py [--dynamic] [--batch=1] [--tokens=128] [--opset=N]
           [--list] FOLDER [NAME...]

For each NAME it writes to FOLDER
  NAME.onnx, NAME.onnx.data        the model, with its weights beside it
  NAME.in0.npy, NAME.out0.npy      an input, and PyTorch's output in f32
and with --dynamic, whose batch is symbolic and called `batch`,
  NAME-dynamic.onnx, NAME-dynamic.onnx.data
  NAME-dynamic.bN.in0.npy, NAME-dynamic.bN.out0.npy       for batches N
test/tools/models.py runs what it finds in such a folder.

Without NAME it exports those of the table except for those that only a large
machine holds. Beside the table's, any architecture of two libraries has a name:
torchvision/densenet121 (torchvision.models.get_model), transformers/roberta
(AutoConfig.for_model). In file names the slash is a dash.

Weights are random, always the same. A network that was never trained flatters
whoever runs it: a batch norm that saw no data is the identity, which exporters
drop, and a head of zeros hides every error before it. So norms are fed once,
and heads are drawn.

Needs an environment of its own (--list does not): pip install torch==2.13.0
transformers onnx==1.22.0 onnxscript pillow; then torchvision==0.28.0 with
--no-deps, which has no build without CUDA: its Python part suffices.
"""

import argparse
import os
import pathlib
import sys
import warnings

IMAGE, TOKENS, SIGNAL = "image", "tokens", "signal"
LENGTH = 128  # in tokens
DYNAMIC_BATCHES = (1, 3, 8)


class Model:
    """A row: what a network is made of, and what it reads."""

    def __init__(self, make, kind, size, large=False, traced=None,
                 peers=()):
        self.make = make  # without arguments, to a torch module
        self.kind = kind  # IMAGE, of height and width `size`, or TOKENS,
        self.size = size  # of a vocabulary of `size` words, or SIGNAL, `size`
        self.large = large  # being a shape; not without being asked for
        self.traced = traced  # what is done to a network to export it
        self.peers = peers  # names and the same for ways that PyTorch runs it


def torchvision_models():
    """torchvision's compiled part wants CUDA. Where it cannot be loaded, the
    operators that the Python part describes are declared for it."""
    try:
        import torchvision.models
    except RuntimeError:
        import importlib.util
        import re
        import torch
        for name in [n for n in sys.modules if n.startswith("torchvision")]:
            del sys.modules[name]
        package = pathlib.Path(importlib.util.find_spec("torchvision").origin)
        text = (package.parent / "_meta_registrations.py").read_text()
        library = torch.library.Library("torchvision", "DEF")
        for name in sorted(set(re.findall(r'torchvision::(\w+)"', text)) |
                           set(re.findall(r'register_meta\("(\w+)"\)', text))):
            library.define(name + "(Tensor a) -> Tensor")
        torchvision_models.library = library  # it lives as long as we do
        import torchvision.models
    return torchvision.models


def vision(name, size=224, **options):
    def make():
        return torchvision_models().get_model(name, weights=None, **options)
    return Model(make, IMAGE, size)


def last_hidden(model):
    """A transformer from its main input to its last layer, and nothing else. A
    decoder behind an encoder reads the encoder's tokens."""
    import torch

    class LastHidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            inputs = {model.main_input_name: x}
            if model.config.is_encoder_decoder and x.dtype == torch.int64:
                inputs["decoder_input_ids"] = x
            return self.model(**inputs).last_hidden_state

    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return LastHidden()


def transformers_library():
    """transformers wants torchvision where that is installed."""
    torchvision_models()
    import transformers
    return transformers


def language(class_name, vocabulary, large=False, model_options=None,
             **options):
    def make():
        library = transformers_library()
        config = getattr(library, class_name + "Config")(
            attn_implementation="sdpa", **options)
        model = getattr(library, class_name + "Model")
        return last_hidden(model(config, **(model_options or {})))
    return Model(make, TOKENS, vocabulary, large)


def segmentation(name, size):
    """What it says of each pixel."""
    def make():
        import torch

        class Out(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = torchvision_models().get_model(
                    name, weights=None, weights_backbone=None)

            def forward(self, x):
                return self.model(x)["out"]

        return Out()
    return Model(make, IMAGE, size)


def video(name, shape):
    return Model(vision(name).make, SIGNAL, shape)


MODELS = {
    "resnet50": vision("resnet50"),
    "inception_v3": vision("inception_v3", 299, init_weights=False,
                           aux_logits=True),
    "mobilenet_v2": vision("mobilenet_v2"),
    "vit_b_16": vision("vit_b_16"),
    "bert_base": language("Bert", 30522,
                          model_options={"add_pooling_layer": False}),
    "gpt2": language("GPT2", 50257),
    # 4.7 GB of weights; exporting takes three times that in memory.
    "llama_1b": language(
        "Llama", 128256, large=True, vocab_size=128256, hidden_size=2048,
        intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, max_position_embeddings=4096),
}


# --- Other families of transformers, in bench/shapes/models.json ---

def transformer(config_name, kind, size, part=None, traced=None, peers=(),
                **options):
    """Of transformers, or a part of one: its encoder, say."""
    def make():
        library = transformers_library()
        config = getattr(library, config_name + "Config")(**options)
        model = getattr(library, config_name + "Model")(config)
        return last_hidden(model if part is None else getattr(model, part))
    return Model(make, kind, size, traced=traced, peers=peers)


def plain_attention(network):
    """torch.export cannot take apart attention with biases that a gradient
    would flow to; as products and a softmax it can be exported."""
    for module in network.modules():  # Encoder and decoder have copies.
        if hasattr(module, "config"):
            module.config._attn_implementation = "eager"


def experts(config_name, **options):
    """PyTorch runs experts by sorted tokens, which a compiled graph in f16
    cannot, or by their gathered weights, which an exporter can, too."""
    def way(name):
        return lambda network: network.model.set_experts_implementation(name)
    return transformer(config_name, TOKENS, 32000, traced=way("batched_mm"),
                       peers=[(name, way(name)) for name in
                              ("batched_mm", "grouped_mm")], **options)


def scan_states(network):
    """Mamba's recurrence as ONNX's Scan. transformers has a loop of Python,
    which an exporter unrolls, and an associative scan, which none knows."""
    import torch
    from torch._higher_order_ops.scan import scan
    from transformers.models.mamba import modeling_mamba

    def step(state, x):
        fade, gain, read = x
        state = fade * state + gain
        return state, torch.matmul(state, read.unsqueeze(-1)).squeeze(-1)

    def selective_scan(x, dt, A, B, C, D, z, delta_bias, **_):
        dt = torch.nn.functional.softplus(dt + delta_bias[:, None])
        fade = torch.exp(A[None, :, None, :] * dt[..., None])
        gain = (dt * x)[..., None] * B.transpose(1, 2)[:, None]
        first = torch.zeros_like(fade[:, :, 0])
        _, y = scan(step, first, (fade.movedim(2, 0), gain.movedim(2, 0),
                                  C.movedim(2, 0)))
        y = y.movedim(0, 2) + x * D[None, :, None]
        return y * torch.nn.functional.silu(z)

    modeling_mamba.mamba_selective_scan = selective_scan


FAMILIES = {
    "t5_small": transformer("T5", TOKENS, 32128, traced=plain_attention),
    "bart_base": transformer(
        "Bart", TOKENS, 50265, d_model=768, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=12, decoder_attention_heads=12,
        encoder_ffn_dim=3072, decoder_ffn_dim=3072),
    "whisper_base": transformer(
        "Whisper", SIGNAL, (80, 3000), part="encoder", d_model=512,
        encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048),
    "wav2vec2_base": transformer("Wav2Vec2", SIGNAL, (80000,)),
    "mixtral_small": experts(
        "Mixtral", vocab_size=32000, hidden_size=1024, intermediate_size=3584,
        num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=8),
    "qwen2_moe_small": experts(
        "Qwen2Moe", vocab_size=32000, hidden_size=1024, num_hidden_layers=4,
        num_attention_heads=16, num_key_value_heads=16,
        moe_intermediate_size=704, shared_expert_intermediate_size=2816,
        num_experts=60, num_experts_per_tok=4),
    "mamba_130m": transformer("Mamba", TOKENS, 50280, traced=scan_states,
                              hidden_size=768, num_hidden_layers=8),
    "mamba2_130m": transformer(
        "Mamba2", TOKENS, 50280, hidden_size=768, num_heads=24, n_groups=1,
        chunk_size=128, num_hidden_layers=8, vocab_size=50280),
}


# Chosen to be unlike those above: bench/shapes/models.json, "second".
SECOND = {
    "deeplabv3_mobilenet": segmentation("deeplabv3_mobilenet_v3_large", 512),
    "r3d_18": video("r3d_18", (3, 16, 112, 112)),
    "qwen3_small": transformer(
        "Qwen3", TOKENS, 32000, vocab_size=32000, hidden_size=1024, intermediate_size=3072,
        num_hidden_layers=14, num_attention_heads=16, num_key_value_heads=8, head_dim=128),
    "gemma2_small": transformer(
        "Gemma2", TOKENS, 32000, vocab_size=32000, hidden_size=1024, intermediate_size=4096,
        num_hidden_layers=12, num_attention_heads=8, num_key_value_heads=4, head_dim=128,
        sliding_window=64),
    "bloom_small": transformer(
        "Bloom", TOKENS, 32000, vocab_size=32000, hidden_size=1024, n_layer=12, n_head=16),
    "mobilebert": transformer("MobileBert", TOKENS, 30522),
    "convbert": transformer("ConvBert", TOKENS, 30522),
    "segformer_b0": transformer("Segformer", SIGNAL, (3, 512, 512)),
    "dinov2_base": transformer("Dinov2", SIGNAL, (3, 224, 224), image_size=224),
}


def other_vision(name, size):
    def make():
        import vision_models
        return vision_models.NETWORKS[name]()
    return Model(make, IMAGE, size)


def vision_transformer(config_name, size, **options):
    """Or a convolutional network that transformers has."""
    return transformer(config_name, SIGNAL, (3, size, size), **options)


# Vision networks of yet other families: bench/shapes/models.json, "vision".
VISION = {
    "convnextv2_tiny": vision_transformer("ConvNextV2", 224),
    "poolformer_s12": vision_transformer("PoolFormer", 224, layer_scale_init_value=0.5),
    "mobilevit_s": vision_transformer("MobileViT", 256),
    "levit_128s": vision_transformer("Levit", 224),
    "ghostnet": other_vision("ghostnet", 224),
    "hrnet_w18": other_vision("hrnet_w18", 256),
    "unet": other_vision("unet", 256),
    "yolo_s": other_vision("yolo_s", 640),
    "resnest50": other_vision("resnest50", 224),
    "mixnet_s": other_vision("mixnet_s", 224),
}


def any_transformer(kind):
    def make():
        library = transformers_library()
        config = library.AutoConfig.for_model(kind)
        return last_hidden(library.AutoModel.from_config(config))
    return Model(make, TOKENS, 1000)


def find_model(name):
    library, _, own = name.partition("/")
    for table in MODELS, FAMILIES, SECOND, VISION:
        if name in table:
            return table[name]
    if own and library == "torchvision":
        return vision(own)
    if own and library == "transformers":
        return any_transformer(own)
    raise SystemExit("unknown model %s; try --list" % name)


def draw_input(model, batch, tokens=LENGTH):
    import torch
    if model.kind == IMAGE:
        return torch.randn(batch, 3, model.size, model.size)
    if model.kind == SIGNAL:
        return torch.randn(batch, *model.size)
    return torch.randint(0, model.size, (batch, tokens))


def settle(network, model):
    """Feeds the batch norms once and draws the heads that start at zero."""
    import torch
    norms = [m for m in network.modules()
             if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None  # the mean of what it saw, not a decaying one
    if norms:
        with torch.no_grad():
            network.train()(draw_input(model, 4))
    for name, weight in network.named_parameters():  # Of layers, or of norms.
        if name.endswith("weight") and not weight.any():
            torch.nn.init.normal_(weight, std=0.02)
    return network.eval()


def save_case(network, x, path):
    """An input, and what PyTorch says: on the GPU where there is one."""
    import numpy
    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.inference_mode():
        y = network.to(device)(x.to(device)).float().cpu()
    network.to("cpu")
    if not torch.isfinite(y).all() or not y.any():
        raise SystemExit("%s: its output shows nothing" % path)
    numpy.save(path + ".in0.npy", x.numpy())
    numpy.save(path + ".out0.npy", y.numpy())
    return tuple(x.shape), tuple(y.shape)


def export(name, options):
    import torch
    model = find_model(name)
    torch.manual_seed(0)
    network = settle(model.make(), model)
    path = os.path.join(options.folder, name.replace("/", "-"))
    dynamic, sizes, example = None, (options.batch,), options.batch
    if options.dynamic:
        path += "-dynamic"
        dynamic = ({0: torch.export.Dim("batch")},)
        sizes, example = DYNAMIC_BATCHES, 2  # 1 would be taken for a constant.
    for batch in sizes:
        case = path + (".b%d" % batch if options.dynamic else "")
        shapes = save_case(network, draw_input(model, batch, options.tokens), case)
        print("%s: %s -> %s" % (case, *shapes), flush=True)
    if model.traced:
        model.traced(network)
    torch.onnx.export(network, (draw_input(model, example, options.tokens),), path + ".onnx", dynamo=True,
                      opset_version=options.opset, external_data=True,
                      dynamic_shapes=dynamic, verbose=False)


def main():
    parser = argparse.ArgumentParser(
        usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=LENGTH)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.list:
        for name, model in {**MODELS, **FAMILIES, **SECOND, **VISION}.items():
            print(name + (" (large)" if model.large else ""))
        return
    if not options.folder:
        parser.error("FOLDER is missing")
    os.makedirs(options.folder, exist_ok=True)
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # Of the exporter, about itself.
    warnings.filterwarnings("ignore", category=FutureWarning)
    names = options.names or [n for n, m in MODELS.items() if not m.large]
    for name in names:
        export(name, options)


if __name__ == "__main__":
    main()
