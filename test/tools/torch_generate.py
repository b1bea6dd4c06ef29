# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Language models of transformers, small, that generate text through
torch.compile(backend="hidet") on the CPU, that is on the simulator, token for
token as PyTorch does.

usage: torch_generate.py [--filter=REGEX] [--cache=static|dynamic|buckets]
                         [--attention=sdpa|eager] [--tokens=N]

A line each: graphs of Dynamo's, sets of sizes that parts were made ready for,
models, times that one was compiled, what is left in PyTorch. A model passes if
its tokens are PyTorch's, and, with a static cache, nothing is made ready or
compiled for a token once its graphs are there. Exits 1 if one does not.
"""

import argparse
import dataclasses
import logging
import pathlib
import re
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import export_models  # noqa: E402

import hidet.torch  # noqa: E402, F401
from hidet.torch import backend, part  # noqa: E402

SMALL = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    vocab_size=100,
    max_position_embeddings=128,
    pad_token_id=0,
    eos_token_id=None,
)
GROUPED = dict(SMALL, num_key_value_heads=2, head_dim=8)
WINDOW = dict(GROUPED, sliding_window=8)
PAIR = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    vocab_size=100,
    decoder_start_token_id=2,
    eos_token_id=None,
)
# Class of the model, of its configuration, values of that, and how many graphs
# a static cache takes: one for the first tokens, one for each that follows, and
# where windows become full in between one more.
FAMILIES = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, 2),
    "GPT2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        dict(n_embd=32, n_layer=2, n_head=4, vocab_size=100, eos_token_id=None),
        2,
    ),
    "GPTNeoX": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, 2),
    "OPT": (
        "OPTForCausalLM",
        "OPTConfig",
        dict(SMALL, ffn_dim=64, word_embed_proj_dim=32),
        2,
    ),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED, 2),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED, 2),
    "Gemma": ("GemmaForCausalLM", "GemmaConfig", GROUPED, 2),
    "Gemma2": ("Gemma2ForCausalLM", "Gemma2Config", WINDOW, 3),
    "Gemma3": (
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        dict(WINDOW, layer_types=["sliding_attention", "full_attention"]),
        3,
    ),
    "Mistral": ("MistralForCausalLM", "MistralConfig", WINDOW, 3),
    "Mixtral": (
        "MixtralForCausalLM",
        "MixtralConfig",
        dict(GROUPED, num_local_experts=4),
        2,
    ),
    "Phi3": ("Phi3ForCausalLM", "Phi3Config", GROUPED, 2),
    "Olmo2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED, 2),
    "T5": (
        "T5ForConditionalGeneration",
        "T5Config",
        dict(
            d_model=32,
            d_ff=64,
            d_kv=8,
            num_layers=2,
            num_heads=4,
            vocab_size=100,
            decoder_start_token_id=0,
            eos_token_id=None,
        ),
        2,
    ),
    "Bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        dict(PAIR, forced_eos_token_id=None),
        2,
    ),
    "Whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        dict(
            PAIR,
            max_target_positions=128,
            max_source_positions=30,
            num_mel_bins=16,
            pad_token_id=0,
            bos_token_id=1,
            suppress_tokens=None,
            begin_suppress_tokens=None,
        ),
        2,
    ),
}
OPTIONS = {
    "static": {},
    "dynamic": dict(dynamic=True),
    "buckets": dict(dynamic=True, options={"buckets": True}),
}


def make(family):
    """A model with weights of its own, and what it begins with."""
    export_models.torchvision_models()  # transformers imports it, too.
    import transformers

    torch.manual_seed(0)
    kind, configuration, values, _ = FAMILIES[family]
    config = getattr(transformers, configuration)(**values)
    model = getattr(transformers, kind)(config).eval()
    model.generation_config.eos_token_id = None
    if family == "Whisper":
        return model, torch.randn(1, 16, 60)
    return model, torch.randint(3, 99, (1, 5))


@dataclasses.dataclass
class Found:
    """What was made of a model while it generated."""

    right: bool = False
    graphs: list = dataclasses.field(default_factory=list)
    parts: list = dataclasses.field(default_factory=list)

    @property
    def versions(self):
        """Sets of sizes that graphs were made ready for."""
        return sum(max(len(g.versions), 1) for g in self.graphs)

    @property
    def models(self):
        return {p.built.engine.model for p in self.parts if p.built}

    @property
    def compiled(self):
        return sum(model.num_compiled for model in self.models)

    @property
    def refused(self):
        return sum(bool(p.refused) for p in self.parts)


def generate(family, cache, tokens, attention=None):
    """Generates so many tokens in PyTorch and by us. cache: a key of OPTIONS.
    attention: of transformers' ways to compute it, where not the model's own."""
    model, start = make(family)
    if attention:
        model.set_attn_implementation(attention)
    settings = dict(max_new_tokens=tokens, do_sample=False)
    found = Found()
    init = backend.Compiled.__init__, part.Part.__init__

    def keep(made, at):
        def record(this, *arguments):
            init[at](this, *arguments)
            made.append(this)

        return record

    with torch.no_grad():
        own = model.generate(start, **settings)
        if cache == "static":
            settings["cache_implementation"] = "static"
        torch._dynamo.reset()
        backend.Compiled.__init__ = keep(found.graphs, 0)
        part.Part.__init__ = keep(found.parts, 1)
        try:
            model.forward = torch.compile(
                model.forward, backend="hidet", fullgraph=True, **OPTIONS[cache]
            )
            made = model.generate(start, **settings)
        finally:
            backend.Compiled.__init__, part.Part.__init__ = init
    found.right = torch.equal(own, made)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--cache", default="static", choices=OPTIONS)
    parser.add_argument("--attention")
    parser.add_argument("--tokens", type=int, default=32)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    passed = asked = 0
    for family in FAMILIES:
        if not re.search(options.filter, family):
            continue
        asked += 1
        backend.said.clear()
        try:
            found = generate(
                family, options.cache, options.tokens, options.attention
            )
        except Exception as fault:
            print(f"{family:10} FAILS {str(fault)[:200]!r}", flush=True)
            continue
        settled = options.cache != "static" or (
            found.versions == len(found.graphs) == FAMILIES[family][3]
            and found.compiled == len(found.models)
        )
        fine = found.right and settled
        passed += fine
        left = " ".join(text.split()[0] for text in sorted(backend.said))
        print(
            f"{family:10} {'ok' if fine else 'FAILS'} graphs "
            f"{len(found.graphs)}, sets of sizes {found.versions}, models "
            f"{len(found.models)}, compiled {found.compiled}, refused "
            f"{found.refused}; in PyTorch: {left or 'nothing'}",
            flush=True,
        )
    print(f"{passed} of {asked} as PyTorch")
    return 0 if passed == asked else 1


if __name__ == "__main__":
    sys.exit(main())
