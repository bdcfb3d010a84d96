"""Run by the real TransformerLens, in an environment of its own: make models, save them every way people do, and let the package read them.

    PYTHONPATH=src .tl/4/bin/python tests/transformer_lens/make_models.py 4 FOLDER

For each model FOLDER/NAME has `model.pth` and `config.json` (state dict and configuration), `alone/model.safetensors` (state dict alone),
`logits.npy` (the library's own, of all sequences, at the last position), `short.npy` (of all sequences of two tokens) and `read.json` (what
the package makes of the object, and of the state dict without a configuration). What a version of the library does not know is left out.
"""

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import torch
from model_table import MODELS, OURS, versions_of
from safetensors.torch import save_file

import compactproofs as cp


def build(major, options):
    theirs = {name: value for name, value in options.items() if name not in OURS}
    biases = options.get("biases", False)
    if major == 4:
        from transformer_lens.model_bridge import TransformerBridge

        model = TransformerBridge.boot_native(theirs)
    else:
        from transformer_lens import HookedTransformer, HookedTransformerConfig

        model = HookedTransformer(HookedTransformerConfig(**theirs))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_bias = name.split(".")[-1].lstrip("_").startswith("b")
            if parameter.dtype == torch.float32 and (biases or not is_bias):
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
            elif is_bias:
                parameter.zero_()
    if options.get("folded"):
        model.process_weights() if major == 4 else model.process_weights_()
    return model.eval()


def read(what, **options):
    """What the package makes of it: the hash and what was assumed, or the message."""
    try:
        weights = cp.from_transformer_lens(what, **options)
    except cp.CompactProofsError as error:
        return {"error": str(error)}
    return {"sha256": weights.sha256, "assumptions": weights.assumptions}


def main(major, folder):
    for name, options in MODELS.items():
        if major not in versions_of(name):
            continue
        model, into = build(major, options), folder / name
        into.mkdir(parents=True)
        state = {key: value.detach().clone() for key, value in model.state_dict().items()}
        torch.save(state, into / "model.pth")
        fields = model.cfg.to_dict()
        (into / "config.json").write_text(json.dumps({key: _plain(value) for key, value in fields.items()}))
        (into / "alone").mkdir()
        save_file({key: value.contiguous() for key, value in state.items()}, into / "alone" / "model.safetensors")
        with torch.no_grad():
            for file, length in (("logits.npy", 3), ("short.npy", 2)):
                np.save(into / file, model(torch.tensor(list(product(range(5), repeat=length))))[:, -1].numpy())
        told = {"n_heads": options["n_heads"], "normalization": options["normalization_type"] or "none"}
        found = {"object": read(model), "short": read(model, n_ctx=2), "state dict": read(state), "told": read(state, **told)}
        (into / "read.json").write_text(json.dumps(found))


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
