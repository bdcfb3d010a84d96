"""State dicts of torch: nothing in a file is executed, and a small file cannot fill the memory. torch is imported only here."""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compactproofs.errors import MissingExtraError, ModelError

SIZE_LIMIT = 2**30
"""Bytes of a model file, and of its tensors in memory."""


def read_torch(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The tensors of a state dict on disk; such files have no configuration."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(f"reading {path.name} needs torch (or save the model as .safetensors)", "train") from None
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        raise MissingExtraError(f"torch {torch.__version__} cannot read files safely; at least 2.6 is needed (or save as .safetensors)")
    _refuse_zip_bomb(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ModelError(
            f"{path} cannot be read as plain tensors ({_reason(error)}). Nothing in it was executed; save the state dict alone "
            "(model.state_dict()), best as .safetensors"
        ) from None
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise ModelError(f"{path} holds a {type(state).__name__}; expected a state dict (names to tensors)")
    return dense(state), {}


def _reason(error: Exception) -> str:
    """What is wrong with a file, without torch's advice to execute it."""
    found = re.search(r"Unsupported global: GLOBAL (\S+)", str(error))
    if found is not None:
        return f"it holds an object of the class {found[1]}"
    if isinstance(error, pickle.UnpicklingError):
        return "it holds more than tensors, or is damaged"
    return str(error).splitlines()[0] if isinstance(error, OSError | RuntimeError) and str(error) else "it is damaged or of another kind"


def _refuse_zip_bomb(path: Path) -> None:
    """A torch file is a zip archive; its parts may be compressed, and far larger than the file."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelError(f"{path} cannot be read as plain tensors ({error}). Nothing in it was executed") from None
    if size > SIZE_LIMIT:
        raise ModelError(f"{path} unpacks to {size} bytes; a model of the supported kind is far smaller than {SIZE_LIMIT}")


def dense(state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """All tensors as arrays, if they are ordinary and together not too large: entries that share memory are written out."""
    total = sum(_dense_bytes(name, tensor) for name, tensor in state.items())
    if total > SIZE_LIMIT:
        raise ModelError(f"the tensors take {total} bytes; a model of the supported kind is far smaller than {SIZE_LIMIT}")
    return {name: _as_numpy(name, tensor) for name, tensor in state.items()}


def _dense_bytes(name: str, tensor: Any) -> int:
    if isinstance(tensor, np.ndarray):
        return int(tensor.nbytes)
    if not hasattr(tensor, "detach"):
        inner = f"; save the state dict inside it alone, checkpoint[{name!r}]" if isinstance(tensor, Mapping) else ""
        raise ModelError(f"{name} is a {type(tensor).__name__}; expected a tensor{inner}")
    size = int(tensor.numel() * tensor.element_size())
    try:
        stored = int(tensor.untyped_storage().nbytes())
    except Exception as error:  # sparse and other exotic tensors have no such thing
        raise ModelError(f"{name} is not an ordinary dense tensor ({type(error).__name__}); save it as one") from None
    if size > stored:
        raise ModelError(f"{name} has {tensor.numel()} entries that share {stored} bytes; save it as an ordinary tensor (tensor.clone())")
    return size


def _as_numpy(name: str, tensor: Any) -> np.ndarray:
    if isinstance(tensor, np.ndarray):
        return tensor
    if str(tensor.dtype) not in ("torch.float32", "torch.float64", "torch.bool"):
        raise ModelError(
            f"{name} has dtype {tensor.dtype}; expected float32. If these are the values you mean, convert them yourself (model.float())"
        )
    try:
        array: np.ndarray = tensor.detach().cpu().numpy()
    except Exception as error:  # sparse, quantised, meta and other exotic tensors each fail in their own way
        raise ModelError(f"{name} is not an ordinary dense tensor ({type(error).__name__}); save it as one") from None
    return array
