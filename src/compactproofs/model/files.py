"""Model files: reading what others saved, writing what we train. Nothing in a file is ever executed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from compactproofs.errors import MissingExtraError, ModelError
from compactproofs.model.config import SIZE_FIELDS, interpret, parse_value, same_value
from compactproofs.model.layouts import recognise
from compactproofs.model.weights import Weights

_SIZE_LIMIT = 2**32
_CONFIG_SIZE_LIMIT = 2**20


def load(path: str | os.PathLike[str]) -> Weights:
    """Read a model from a `.safetensors` file, or from a `.pth`/`.pt` state dict (without executing anything in it).

    The configuration is taken from the file's metadata, else from `config.json` beside it, else assumed; assumptions are kept
    in `Weights.assumptions`. Raises `ModelError` with a message that says what was expected.

    Example:
        >>> import compactproofs as cp, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> cp.save(cp.zoo("max-of-4"), path)
        >>> cp.load(path) == cp.zoo("max-of-4")
        True
    """
    path = Path(path)
    try:
        if not path.exists():
            raise ModelError(f"no such file: {path}")
        if not path.is_file():
            raise ModelError(f"{path} is not a file; expected a .safetensors or .pth model")
        size = path.stat().st_size
    except OSError as error:
        raise ModelError(f"cannot look at {path}: {error.strerror}") from None
    if size > _SIZE_LIMIT:
        raise ModelError(f"{path} has {size} bytes; a model of the supported kind is far smaller than {_SIZE_LIMIT}")
    if path.suffix == ".safetensors":
        tensors, config = _read_safetensors(path)
    elif path.suffix in (".pth", ".pt"):
        tensors, config = _read_torch(path)
    else:
        raise ModelError(f"{path}: unknown kind of file {path.suffix!r}; expected .safetensors, .pth or .pt")
    try:
        return from_tensors(tensors, _merged(config, _config_beside(path)))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def from_tensors(tensors: Mapping[str, np.ndarray], config: Mapping[str, Any] | None = None) -> Weights:
    """Build `Weights` from named arrays in any known layout, checked against a configuration if there is one."""
    recognised = recognise(tensors)
    draft = Weights.from_mapping(recognised.tensors)
    sizes = {name: getattr(draft, name) for name in SIZE_FIELDS}
    meaning = interpret(config, sizes, bridge_layout=recognised.bridge_layout)
    return Weights.from_mapping(draft.tensors, score_divisor_squared=meaning.score_divisor_squared, assumptions=meaning.assumptions)


def from_transformer_lens(model: Any, config: Mapping[str, Any] | None = None) -> Weights:
    """Build `Weights` from a TransformerLens model (its `cfg` is read too) or from its state dict.

    The model's processed weights are taken as they are: if you load with `fold_ln` or `center_unembed`, that network is certified.
    """
    if isinstance(model, Mapping):
        state = model
    else:
        state = model.state_dict()
        config = config if config is not None else _config_of(model.cfg)
    return from_tensors({name: _as_numpy(name, tensor) for name, tensor in state.items()}, config)


def save(weights: Weights, path: str | os.PathLike[str], training: Mapping[str, Any] | None = None) -> None:
    """Write a `.safetensors` file with its configuration in the metadata. The file appears whole or not at all.

    Args:
        weights: the network.
        path: where to write; an existing file is replaced.
        training: a record of how the weights came about, stored as JSON in the metadata.
    """
    path = Path(path)
    metadata = {
        "n_layers": "1",
        "n_heads": "1",
        "attn_only": "true",
        "normalization_type": "none",
        **{name: str(getattr(weights, name)) for name in SIZE_FIELDS},
        "attn_scale": _attn_scale(weights),
        **({"training": json.dumps(training, sort_keys=True)} if training is not None else {}),
    }
    write_atomically(path, safetensors_bytes(weights.tensors, metadata))


def write_atomically(path: Path, data: bytes) -> None:
    """Write through a temporary file in the same folder, so that readers never see half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise


def training_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The training record that `save` stored, or an empty dict."""
    with safe_open(path, framework="np") as file:
        record = (file.metadata() or {}).get("training")
    parsed: dict[str, Any] = json.loads(record) if record else {}
    return parsed


def _attn_scale(weights: Weights) -> str:
    if weights.score_divisor_squared == weights.d_head:
        return "-1"
    divisor = float(weights.score_divisor_squared) ** 0.5
    if Fraction(divisor) ** 2 != weights.score_divisor_squared:
        raise ModelError(
            f"the score divisor sqrt({weights.score_divisor_squared}) is not a float64 number and cannot be stored as attn_scale"
        )
    return repr(divisor)


def _read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        with safe_open(path, framework="np") as file:
            dtypes = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
            for name, dtype in dtypes.items():
                if dtype not in ("F32", "F64", "BOOL"):
                    raise ModelError(
                        f"{path}: tensor {name} has dtype {dtype}; expected F32. A theorem is about one exact network: if these are "
                        "the values you mean, convert them to float32 yourself (model.float() in torch) and save again"
                    )
            return {name: file.get_tensor(name) for name in dtypes}, dict(file.metadata() or {})
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise ModelError(f"{path} is not a readable safetensors file ({error}). It may be truncated or of another format") from None


def _read_torch(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            f"reading {path.name} needs torch: pip install 'compactproofs[train]', or save the model as .safetensors"
        ) from None
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        raise MissingExtraError(f"torch {torch.__version__} cannot read files safely; at least 2.6 is needed (or save as .safetensors)")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(
            f"{path} cannot be read as plain tensors ({first}). Nothing in it was executed; save the state dict alone, best as .safetensors"
        ) from None
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise ModelError(f"{path} holds a {type(state).__name__}; expected a state dict (names to tensors)")
    return {name: _as_numpy(name, tensor) for name, tensor in state.items()}, {}


def _as_numpy(name: str, tensor: Any) -> np.ndarray:
    if isinstance(tensor, np.ndarray):
        return tensor
    if not hasattr(tensor, "detach"):
        raise ModelError(f"{name} is a {type(tensor).__name__}; expected a tensor")
    if str(tensor.dtype) not in ("torch.float32", "torch.float64", "torch.bool"):
        raise ModelError(
            f"{name} has dtype {tensor.dtype}; expected float32. If these are the values you mean, convert them yourself (model.float())"
        )
    if tensor.numel() * tensor.element_size() > _SIZE_LIMIT:
        raise ModelError(f"{name} has {tensor.numel()} entries, far more than a model of the supported kind")
    try:
        array: np.ndarray = tensor.detach().cpu().numpy()
    except Exception as error:  # sparse, quantised, meta and other exotic tensors each fail in their own way
        raise ModelError(f"{name} is not an ordinary dense tensor ({type(error).__name__}); save it as one") from None
    return array


def _config_of(cfg: Any) -> dict[str, Any]:
    fields = cfg.to_dict() if hasattr(cfg, "to_dict") else vars(cfg)
    return {name: str(value) if name == "dtype" else value for name, value in fields.items()}


def _merged(metadata: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    """Metadata and config.json together; they may not contradict each other."""
    for name in sorted(metadata.keys() & beside.keys()):
        if not same_value(parse_value(metadata[name]), parse_value(beside[name])):
            raise ModelError(f"the file's metadata says {name}={metadata[name]!r}, config.json beside it says {beside[name]!r}")
    return {**beside, **metadata}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"the field {next(n for n in names if names.count(n) > 1)!r} occurs twice")
    return dict(pairs)


def _config_beside(path: Path) -> dict[str, Any]:
    beside = path.parent / "config.json"
    if not beside.is_file():
        return {}
    if beside.stat().st_size > _CONFIG_SIZE_LIMIT:
        raise ModelError(f"{beside} is larger than {_CONFIG_SIZE_LIMIT} bytes; expected a small JSON object")
    try:
        config = json.loads(beside.read_text(encoding="utf-8"), object_pairs_hook=_without_duplicates)
    except OSError as error:
        raise ModelError(f"cannot read {beside}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{beside} is not valid JSON ({error})") from None
    if not isinstance(config, dict):
        raise ModelError(f"{beside} holds a JSON {type(config).__name__}; expected an object with fields such as n_layers")
    return config
