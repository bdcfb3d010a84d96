"""Run by the real TransformerLens, in an environment of its own: make models, save them every way people do, and let the package read them.

    PYTHONPATH=src .tl/4/bin/python tests/transformer_lens/make_models.py 4 FOLDER

For each model FOLDER/NAME has `model.pth` and `config.json` (state dict and configuration), `model.safetensors` (state dict alone),
`logits.npy` (the library's own, of all sequences, at the last position) and `read.json` (what the package makes of the object, and of the
state dict without a configuration).
"""

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

import compactproofs as cp

BASE = {"n_layers": 1, "d_model": 8, "n_ctx": 3, "d_head": 4, "n_heads": 1, "d_vocab": 5, "d_vocab_out": 6, "seed": 0}
PLAIN = {**BASE, "attn_only": True, "normalization_type": None}

MODELS = {
    "plain": PLAIN,
    "one wide head": {**PLAIN, "d_head": 8},
    "another scale": {**PLAIN, "attn_scale": 1.7},
    "biases": {**PLAIN, "biases": True},
    "four heads": {**PLAIN, "d_head": 2, "n_heads": 4},
    "LNPre": {**PLAIN, "normalization_type": "LNPre"},
    "LN": {**PLAIN, "normalization_type": "LN"},
    "MLP": {**BASE, "act_fn": "relu", "d_mlp": 7, "normalization_type": None},
    "two layers": {**PLAIN, "n_layers": 2},
    "rotary": {**PLAIN, "positional_embedding_type": "rotary", "rotary_dim": 4},
    "soft cap": {**PLAIN, "attn_scores_soft_cap": 2.0},
}


def build(major, options):
    options = dict(options)
    biases = options.pop("biases", False)
    if major == 4:
        from transformer_lens.model_bridge import TransformerBridge

        model = TransformerBridge.boot_native(options)
    else:
        from transformer_lens import HookedTransformer, HookedTransformerConfig

        model = HookedTransformer(HookedTransformerConfig(**options))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_bias = name.split(".")[-1].startswith("b")
            if parameter.dtype == torch.float32 and (biases or not is_bias):
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
            elif is_bias:
                parameter.zero_()
    return model


def read(what, **options):
    """What the package makes of it: the hash and what was assumed, or the message."""
    try:
        weights = cp.from_transformer_lens(what, **options)
    except cp.CompactProofsError as error:
        return {"error": str(error)}
    return {"sha256": weights.sha256, "assumptions": weights.assumptions}


def main(major, folder):
    for name, options in MODELS.items():
        model, into = build(major, options), folder / name
        into.mkdir(parents=True)
        state = {key: value.detach().clone() for key, value in model.state_dict().items()}
        torch.save(state, into / "model.pth")
        fields = model.cfg.to_dict()
        (into / "config.json").write_text(json.dumps({key: _plain(value) for key, value in fields.items()}))
        (into / "alone").mkdir()
        save_file({key: value.contiguous() for key, value in state.items()}, into / "alone" / "model.safetensors")
        tokens = torch.tensor(list(product(range(5), repeat=3)))
        with torch.no_grad():
            np.save(into / "logits.npy", model(tokens)[:, -1].numpy())
        told = {"n_heads": options["n_heads"], "normalization": options["normalization_type"] or "none"}
        found = {"object": read(model), "state dict": read(state), "told": read(state, **told)}
        (into / "read.json").write_text(json.dumps(found))


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
