"""Model files: reading what others saved, writing what we train. Nothing in a file is ever executed."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from compactproofs.errors import ModelError
from compactproofs.model.assemble import assemble
from compactproofs.model.config import Told, interpret
from compactproofs.model.fields import SIZE_FIELDS, agree, parse_value
from compactproofs.model.kinds import Model, normalization_of, shortened
from compactproofs.model.layouts import recognise
from compactproofs.model.network import Network
from compactproofs.model.network_files import SETTINGS, decoded, decoded_assumptions, encoded, encoded_assumptions, encoded_direction
from compactproofs.model.torch_files import SIZE_LIMIT, dense, read_torch
from compactproofs.model.weights import Weights

SUFFIXES = (".safetensors", ".pth", ".pt")
"""Files of these kinds are models."""

_CONFIG_SIZE_LIMIT = 2**20


def model_files(folder: Path) -> list[Path]:
    """The model files in a folder and the folders in it, sorted; hidden ones are not meant."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and not path.name.startswith("."))


def load(path: str | os.PathLike[str], *, n_heads: int | None = None, normalization: str | None = None, n_ctx: int | None = None) -> Model:
    """Read a model from a `.safetensors` file, or from a `.pth`/`.pt` state dict (without executing anything in it).

    The result is `Weights` where one head, biases and learned positions are all there is, else a `Network`. The configuration is taken
    from the file's metadata and from `config.json` beside it; what neither says is assumed and kept in `assumptions`, except where two
    networks have the same tensors: then the file is refused unless you say which one it is.
    Raises `ModelError` with a message that says what was expected. The rules are in docs/reference/model-files.md.

    Args:
        path: the file.
        n_heads: the number of attention heads, where the file cannot tell.
        normalization: `none`, `LN`, `LNPre`, `RMS` or `RMSPre`, where the file cannot tell.
        n_ctx: how many tokens the sequences have, if fewer than the model reads, or where the file cannot tell.

    Example:
        >>> import compactproofs as cp, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> cp.save(cp.zoo("max-of-4"), path)
        >>> cp.load(path) == cp.zoo("max-of-4")
        True
    """
    told = Told(n_heads, normalization, n_ctx)
    try:
        path = Path(path)
    except TypeError:
        raise ModelError(f"a {type(path).__name__} was given for a model file; expected its path") from None
    try:
        if not path.exists():
            raise ModelError(f"no such file: {path}")
        if not path.is_file():
            folder = "; for a folder of models there are sweep and report" if path.is_dir() else ""
            raise ModelError(f"{path} is not a file; expected a .safetensors or .pth model{folder}")
        size = path.stat().st_size
    except OSError as error:
        raise ModelError(f"cannot look at {path}: {error.strerror}") from None
    if size > SIZE_LIMIT:
        raise ModelError(f"{path} has {size} bytes; a model of the supported kind is far smaller than {SIZE_LIMIT}")
    if path.suffix == ".safetensors":
        tensors, config = _read_safetensors(path)
    elif path.suffix in SUFFIXES:
        tensors, config = read_torch(path)
    else:
        raise ModelError(f"{path}: unknown kind of file {path.suffix!r}; expected .safetensors, .pth or .pt")
    try:
        return replace(from_tensors(tensors, _merged(config, _config_beside(path)), told), task=_task_of(path, config))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _task_of(path: Path, metadata: Mapping[str, Any]) -> str | None:
    """What a safetensors file says about its task: a name, which may be that of no task we know."""
    task = metadata.get("task") if path.suffix == ".safetensors" else None
    return task if isinstance(task, str) and task else None


def from_tensors(tensors: Mapping[str, np.ndarray], config: Mapping[str, Any] | None = None, told: Told | None = None) -> Model:
    """Build a model from named arrays in any known layout, checked against a configuration if there is one."""
    told = told or Told()
    if config is not None and SETTINGS in config:
        return _own(decoded(tensors, config), told)
    said = {name: value for name, value in (config or {}).items() if name != "assumptions"}
    recognised = recognise(tensors, _may_be_absent(said))
    model = assemble(recognised, interpret(said, recognised.found, told), told)
    return replace(model, assumptions=(*decoded_assumptions(config or {}), *model.assumptions))


def _may_be_absent(config: Mapping[str, Any]) -> set[str]:
    """Tensors that a configuration makes unnecessary."""
    positions = parse_value(config.get("positional_embedding_type", "standard"))
    tied = parse_value(config.get("tie_word_embeddings")) is True
    return {*(["W_pos"] if positions in ("rotary", "alibi", "none") else []), *(["W_U"] if tied else [])}


def _own(network: Network, told: Told) -> Model:
    """A network of our own layout, which says everything; what the user says must agree."""
    here = {"n_heads": str(network.n_heads), "normalization": normalization_of(network)}
    for name, there in here.items():
        asked = getattr(told, name)
        if asked is not None and str(asked) != there:
            raise ModelError(f"{name}={asked} was asked for, but the file says {name}={there}")
    return shortened(network, told.n_ctx)


def from_transformer_lens(
    model: Any,
    config: Mapping[str, Any] | None = None,
    *,
    n_heads: int | None = None,
    normalization: str | None = None,
    n_ctx: int | None = None,
) -> Model:
    """Build `Weights`, or a `Network`, from a TransformerLens model (its `cfg` is read too) or from its state dict.

    The model's processed weights are taken as they are: if you load with `fold_ln` or `center_unembed`, that network is certified.

    Args:
        model: a model of TransformerLens 2, 3 or 4, or a state dict of one.
        config: fields of its configuration; by default the model's own.
        n_heads: the number of attention heads, where a state dict without a configuration cannot tell.
        normalization: `none`, `LN`, `LNPre`, `RMS` or `RMSPre`, likewise.
        n_ctx: how many tokens the sequences have, if fewer than the model reads.
    """
    if isinstance(model, Mapping):
        state = model
    elif isinstance(model, str | os.PathLike):
        raise ModelError(f"from_transformer_lens takes a model or its state dict; for the file {os.fspath(model)!r} use load")
    elif callable(getattr(model, "state_dict", None)) and hasattr(model, "cfg"):
        state = model.state_dict()
        config = config if config is not None else _config_of(model.cfg)
    else:
        raise ModelError(
            f"from_transformer_lens takes a TransformerLens model (with state_dict and cfg) or a state dict, not {_kind(model)}"
        )
    if not all(isinstance(name, str) for name in state):
        raise ModelError("the state dict has names that are not strings; expected names such as blocks.0.attn.W_Q")
    return from_tensors(dense(state), config, Told(n_heads, normalization, n_ctx))


def save(weights: Model, path: str | os.PathLike[str], training: Mapping[str, Any] | None = None) -> None:
    """Write a `.safetensors` file with its configuration in the metadata. The file appears whole or not at all.

    Args:
        weights: the network.
        path: where to write; an existing file is replaced.
        training: a record of how the weights came about, stored as JSON in the metadata.
    """
    path = Path(path)
    about = {"training": json.dumps(training, sort_keys=True)} if training is not None else {}
    about |= {"task": weights.task} if weights.task is not None else {}
    about |= encoded_assumptions(weights.assumptions) | encoded_direction(weights.causal)
    if isinstance(weights, Network):
        write_atomically(path, safetensors_bytes(weights.tensors, {**encoded(weights), **about}))
        return
    metadata = {
        "n_layers": "1",
        "n_heads": "1",
        "attn_only": "true",
        "normalization_type": "none",
        **{name: str(getattr(weights, name)) for name in SIZE_FIELDS},
        "attn_scale": _attn_scale(weights),
        **about,
    }
    write_atomically(path, safetensors_bytes(weights.tensors, metadata))


def write_atomically(path: Path, data: bytes) -> None:
    """Write the whole file or nothing, so that readers never see half of it."""
    with whole(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name in the same folder to write to; the file takes its place, and is on the disk, when the block ends well.

    A file that is replaced keeps its permissions; a new one has the user's usual ones.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex[:12]}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def training_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The training record that `save` stored, or an empty dict."""
    with safe_open(path, framework="np") as file:
        record = (file.metadata() or {}).get("training")
    if not record:
        return {}
    try:
        parsed = json.loads(record)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: the training record in the metadata is not JSON ({error})") from None
    if not isinstance(parsed, dict):
        raise ModelError(f"{path}: the training record in the metadata is a JSON {type(parsed).__name__}; expected an object")
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


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _config_of(cfg: Any) -> dict[str, Any]:
    fields = cfg.to_dict() if hasattr(cfg, "to_dict") else vars(cfg)
    return {name: str(value) if name == "dtype" else value for name, value in fields.items()}


def _merged(metadata: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    """Metadata and config.json together; they may not contradict each other."""
    for name in sorted(metadata.keys() & beside.keys()):
        if not agree(parse_value(metadata[name]), parse_value(beside[name])):
            raise ModelError(f"the file's metadata says {name}={metadata[name]!r:.80}, config.json beside it says {_short(beside[name])}")
    return {**beside, **metadata}


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


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
