"""Proofs about whole blocks beside brute force, sampling, and a general verifier of neural networks (CROWN, by auto_LiRPA).

    python benchmarks/compare_verifiers.py [MODEL ...] [--seconds 120] [--inputs tokens|box] [--json OUT]

Without models two small ones are trained first: max of 4 out of 16 tokens, one head with an MLP, and one head with layer norms.

CROWN bounds logit differences over a block: a query, a label, a set of tokens for each other position. The verifier gets what somebody who
knows the model would give it: for the query at hand, each position's attention score and what its value adds to the stream, which depend on
token and position only. So what is before the softmax (the first norm too) is exact, and what is relaxed is the softmax, the sum over
positions, the MLP, the norms after it. Over which inputs linear functions are bounded is `--inputs`: `tokens` (the tightest: exactly the
tokens of each set, as auto_LiRPA does for synonyms) or `box` (the smallest box around them). Blocks that are not certified are cut in two at
their largest set, largest block first; single sequences are evaluated. CROWN's bounds within the network are intersected with what is known of
softmax, averages and mean squares without it; slopes are not optimised (alpha-CROWN), which this version does for neurons only. auto_LiRPA computes in float64 without regard to rounding, so what it
certifies is not quite a theorem; our own bounds and brute force are.

auto_LiRPA is not needed by anything else: `pip install --no-deps auto-LiRPA appdirs tqdm setuptools` (0.3, the last on PyPI, asks for torch < 1.13).
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from compare_blocks import singly

import compactproofs as cp
from compactproofs.model.kinds import as_network
from compactproofs.model.network import Network, Norm, NormKind

D_VOCAB, N_CTX = 16, 4
KINDS: dict[str, dict[str, Any]] = {"relu": {"d_mlp": 32}, "LN": {"norm": "LN"}}
BATCH = 256
"""Blocks that CROWN bounds at once."""
_LEAST_SQUARE = 1e-6
"""At most the eps of a norm"""
_TRIED = 100_000
"""Samples that tell how many there is time for."""


@dataclass(frozen=True)
class Certified:
    """What CROWN did in the time that it had."""

    by_blocks: int
    """Sequences in certified blocks of more than one."""
    at_first: int
    """Those of them in blocks that did not have to be cut: a label, a query, where the label is first"""
    singly: int
    """Sequences evaluated on their own and found right."""
    wrong: int
    """Sequences evaluated on their own and found wrong."""
    total: int
    blocks: int
    """Blocks bounded"""
    calls: int
    """Calls of CROWN, each for a batch of blocks"""
    seconds: float
    processor_seconds: float
    finished: bool


@dataclass(frozen=True)
class Block:
    """Sequences of one label: the last token is the query, each other one is in its set (a range of tokens)."""

    label: int
    sets: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return math.prod(stop - start for start, stop in self.sets)

    def halves(self) -> tuple[Block, Block]:
        """Cut at the largest set."""
        where = max(range(len(self.sets)), key=lambda i: self.sets[i][1] - self.sets[i][0])
        start, stop = self.sets[where]
        middle = (start + stop) // 2
        return tuple(Block(self.label, (*self.sets[:where], part, *self.sets[where + 1 :])) for part in ((start, middle), (middle, stop)))


def whole_blocks(n_ctx: int, d_vocab: int) -> Iterator[Block]:
    """All sequences, each once: by label, query, and (if the query is not the label) where the label occurs first."""
    for label in range(d_vocab):
        least, most, it = (0, label), (0, label + 1), (label, label + 1)
        yield Block(label, (*[most] * (n_ctx - 1), it))
        for query in range(label):
            for first in range(n_ctx - 1):
                yield Block(label, (*[least] * first, it, *[most] * (n_ctx - 2 - first), (query, query + 1)))


@dataclass(frozen=True)
class Tables:
    """The network, its first half evaluated: float64."""

    points: np.ndarray
    """(query, position, token, 1 + d_model): the attention score, then what the value adds to the stream if all attention is on it"""
    streams: np.ndarray
    """(query, d_model): what attention is added to"""

    @classmethod
    def of(cls, network: Network) -> Tables:
        if network.n_heads != 1 or network.rotary is not None or network.alibi is not None or network.post_norm:
            raise SystemExit(f"{network.described}: this comparison knows one head, learned positions, norms before what they normalise")
        positions = 0.0 if network.W_pos is None else network.W_pos.astype(float)[:, None]
        x = network.W_E.astype(float)[None] + positions
        n = normalised(x, network.norm_1)
        q, k, v = (
            n @ getattr(network, f"W_{name}")[0].astype(float)
            + (0.0 if (b := getattr(network, f"b_{name}")) is None else b[0].astype(float))
            for name in "QKV"
        )
        scores = np.einsum("qd,ptd->qpt", q[-1], k) / math.sqrt(network.score_divisor_squared)
        values = v @ network.W_O[0].astype(float)
        added = np.broadcast_to(values, (network.d_vocab, *values.shape))
        streams = x[-1] + (0.0 if network.b_O is None else network.b_O.astype(float))
        return cls(np.concatenate([scores[..., None], added], axis=-1), streams)


def normalised(x: np.ndarray, norm: Norm | None) -> np.ndarray:
    """A norm, in float64."""
    if norm is None:
        return x
    centred = x - x.mean(-1, keepdims=True) if norm.kind == NormKind.LN else x
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + norm.eps)
    return scaled * (1.0 if norm.weight is None else norm.weight) + (0.0 if norm.bias is None else norm.bias)


def import_lirpa() -> Any:
    """auto_LiRPA 0.3, made to run with the torch and the numpy of today; nothing of what it computes is changed."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    import types

    import torch

    if "numpy.lib.arraysetops" not in sys.modules:  # numpy 2 does not have it
        stub = types.ModuleType("numpy.lib.arraysetops")
        stub.isin = np.isin
        sys.modules[stub.__name__] = stub
    try:  # torch 2.9 moved what auto_LiRPA takes from its exporter
        import torch.onnx.symbolic_helper
        import torch.onnx.utils
        from torch.onnx._internal.torchscript_exporter import utils
        from torch.onnx._internal.torchscript_exporter._globals import GLOBALS

        torch.onnx.utils._optimize_graph = utils._optimize_graph
        torch.onnx.symbolic_helper._set_opset_version = lambda version: setattr(GLOBALS, "export_onnx_opset_version", version)
        torch._C.Node.__getitem__ = lambda node, key: getattr(node, node.kindOf(key))(key)
    except ImportError:
        pass
    try:
        import auto_LiRPA
    except ImportError as error:
        print(f"no CROWN: {error}; for it: pip install --no-deps auto-LiRPA appdirs tqdm setuptools", file=sys.stderr)
        return None
    members = auto_LiRPA.BoundedModule._named_members
    auto_LiRPA.BoundedModule._named_members = lambda self, fn, prefix="", recurse=True, **_: members(self, fn, prefix, recurse)
    return auto_LiRPA


class Crown:
    """CROWN bounds of logit differences of blocks."""

    def __init__(self, lirpa: Any, network: Network, inputs: str) -> None:
        import torch

        torch.set_default_dtype(torch.float64)
        self.torch, self.lirpa, self.network = torch, lirpa, network
        if any(norm is not None and norm.eps < _LEAST_SQUARE for norm in (network.norm_2, network.norm_final)):
            raise SystemExit(f"a norm has an eps below {_LEAST_SQUARE}")
        tables = Tables.of(network)
        self.points, self.streams = torch.tensor(tables.points), torch.tensor(tables.streams)
        self.perturbation = _perturbation(inputs == "tokens")
        self.module = _second_half(network)
        y, stream, _ = self._inputs([Block(1, ((0, 2),) * (network.n_ctx - 1) + ((1, 2),))])
        self.bounded = lirpa.BoundedModule(self.module, (y, stream), bound_opts={"conv_mode": "matrix"}, verbose=False)
        self.bounded(y, stream)
        nodes = list(self.bounded._modules.values())
        (self.reciprocal,) = (node for node in nodes if type(node).__name__ == "BoundReciprocal")
        self.logs = [node.inputs[0].name for node in nodes if type(node).__name__ == "BoundLog"]
        squares = [node.inputs[0].name for node in nodes if type(node).__name__ == "BoundMul" and node.inputs[0] is node.inputs[1]]
        relus = [node.inputs[0].name for node in nodes if type(node).__name__ == "BoundRelu"]
        centring = torch.eye(network.d_model) - 1.0 / network.d_model
        self.linear: tuple[str, Any, Any] | None = None
        """The first thing that is not linear in the stream: the name of its input, and the map to that from the stream"""
        if relus and not squares:
            self.linear = relus[0], self.module.W_in, self.module.b_in
        elif squares:
            first = network.norm_2 if network.mlp is not None else network.norm_final
            self.linear = squares[0], centring if first.kind == NormKind.LN else torch.eye(network.d_model), 0.0
        self.calls = self.blocks = 0

    def _inputs(self, blocks: list[Block]) -> tuple[Any, Any, Any]:
        """A point of each block, the streams, and the perturbation. Values are taken relative to the label's, which the weights' sum allows."""
        torch = self.torch
        queries = torch.tensor([block.sets[-1][0] for block in blocks])
        labels = torch.tensor([block.label for block in blocks])
        sets = torch.tensor([block.sets for block in blocks])
        tokens = torch.arange(self.network.d_vocab)
        allowed = (tokens >= sets[..., :1]) & (tokens < sets[..., 1:])
        points = self.points[queries].clone()
        reference = points[torch.arange(len(blocks)), :, labels, 1:].mean(1)
        points[..., 1:] -= reference[:, None, None]
        perturbation = self.perturbation(points, allowed)
        return perturbation.middle, (self.streams[queries] + reference)[:, None], perturbation

    def certified(self, blocks: list[Block]) -> list[bool]:
        """For each block whether the label's logit is the largest on all of it."""
        if not blocks:
            return []
        torch, d_vocab = self.torch, self.network.d_vocab_out
        y, stream, perturbation = self._inputs(blocks)
        identity = torch.eye(d_vocab)
        others = [[o for o in range(d_vocab) if o != block.label] for block in blocks]
        differences = torch.stack([identity[block.label] - identity[other] for block, other in zip(blocks, others, strict=True)])
        known = self._known(stream, perturbation)
        with torch.no_grad():
            bounded = self.lirpa.BoundedTensor(y, perturbation)
            lower, _ = self.bounded.compute_bounds(
                x=(bounded, stream), C=differences, method="backward", bound_upper=False, reference_bounds=known
            )
        self.calls, self.blocks = self.calls + 1, self.blocks + len(blocks)
        return (lower > 0).all(1).tolist()

    def _known(self, stream: Any, perturbation: Any) -> dict[str, Any]:
        """What is known without CROWN, by node: its own bounds are intersected with these.

        Interval arithmetic of the softmax (CROWN alone may find that a sum of exponentials is negative, and is not sound then); an average
        of values is between the least and the largest of them; a mean square is not negative.
        """
        torch = self.torch
        lower, upper = perturbation.x_L[..., :1], perturbation.x_U[..., :1]
        others = 1.0 - torch.eye(self.network.n_ctx)
        least = 1.0 + (others * torch.exp(lower.mT - upper)).sum(2, keepdim=True)
        most = 1.0 + (others * torch.exp(upper.mT - lower)).sum(2, keepdim=True)
        known = {self.reciprocal.inputs[0].name: (least, most), self.reciprocal.name: (1.0 / most, 1.0 / least)}
        for name in self.logs:
            known[name] = torch.full_like(stream[..., :1], _LEAST_SQUARE), torch.full_like(stream[..., :1], math.inf)
        if self.linear is not None:
            name, matrix, bias = self.linear
            values = perturbation.points[..., 1:] @ matrix
            outside = perturbation.mask[:, 0, :, :, None]
            base = stream @ matrix + bias
            known[name] = base + (values + outside).amin((1, 2))[:, None], base + (values - outside).amax((1, 2))[:, None]
        return known

    def right(self, blocks: list[Block]) -> list[bool]:
        """For blocks of one sequence whether the network is right, in float64."""
        if not blocks:
            return []
        torch = self.torch
        y, stream, _ = self._inputs(blocks)
        with torch.no_grad():
            logits = self.module(y, stream)
        labels = torch.tensor([[block.label] for block in blocks])
        own = logits.gather(1, labels)
        return (own > logits.scatter(1, labels, -math.inf).amax(1, keepdim=True))[:, 0].tolist()


def _perturbation(tokens: bool) -> type:
    """Inputs of a block: for each position one of the allowed points, or (not `tokens`) anything in the box around them."""
    from auto_LiRPA.linear_bound import LinearBound
    from auto_LiRPA.perturbations import Perturbation
    from auto_LiRPA.utils import eyeC

    class AllowedPoints(Perturbation):
        def __init__(self, points: Any, allowed: Any) -> None:
            import torch

            self.eps, self.norm = 0.0, np.inf
            self.points, self.mask = points, torch.where(allowed, 0.0, math.inf)[:, None]
            outside = self.mask[:, 0, :, :, None]
            self.x_L, self.x_U = (points + outside).amin(2), (points - outside).amax(2)
            self.middle = (self.x_L + self.x_U) / 2

        def init(self, x: Any, aux: Any = None, forward: bool = False) -> Any:
            return LinearBound(None, None, None, None, self.x_L, self.x_U), x, None

        def concretize(self, x: Any, A: Any, sign: int = -1, aux: Any = None) -> Any:
            import torch

            if A is None:
                return None
            if isinstance(A, eyeC):
                return (self.x_U if sign > 0 else self.x_L).flatten(1)
            A = A.reshape(*A.shape[:2], *x.shape[1:])
            if not tokens:
                return (A * self.middle[:, None] + sign * A.abs() * (self.x_U - self.middle)[:, None]).sum((2, 3))
            values = torch.einsum("bspf,bptf->bspt", A, self.points)
            return (values - self.mask).amax(3).sum(2) if sign > 0 else (values + self.mask).amin(3).sum(2)

    return AllowedPoints


def _second_half(network: Network) -> Any:
    """From scores and values to logits, of operations that auto_LiRPA 0.3 can relax.

    Its own softmax subtracts a maximum, which it cannot relax; here a weight is 1 / sum_j exp(s_j - s_i). It cannot relax square roots;
    here 1 / sqrt(v) is exp(-log(v) / 2).
    """
    import torch
    from torch import nn

    def fixed(array: np.ndarray | None, size: int) -> Any:
        return torch.zeros(size) if array is None else torch.tensor(array.astype(float))

    class SecondHalf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            d = network.d_model
            self.keep("score", torch.eye(1 + d)[:, :1])
            self.keep("value", torch.eye(1 + d)[:, 1:])
            tensors = {"W_U": fixed(network.W_U, 0), "b_U": fixed(network.b_U, network.d_vocab_out)}
            if (mlp := network.mlp) is not None:
                tensors |= {"W_in": fixed(mlp.W_in, 0), "W_out": fixed(mlp.W_out, 0)}
                tensors |= {"b_in": fixed(mlp.b_in, network.d_mlp), "b_out": fixed(mlp.b_out, d)}
            for name, tensor in tensors.items():
                self.keep(name, tensor)
            for name in ("norm_2", "norm_final"):
                if (norm := getattr(network, name)) is not None:
                    self.keep(f"{name}_weight", torch.ones(d) if norm.weight is None else fixed(norm.weight, d))
                    self.keep(f"{name}_bias", fixed(norm.bias, d))
            if mlp is not None and mlp.act != "relu":
                raise SystemExit(f"{mlp.act}: this comparison knows relu only")

        def keep(self, name: str, tensor: Any) -> None:
            by_columns = tensor.mT.contiguous().mT if tensor.ndim == 2 else tensor  # else auto_LiRPA calls `view` where it cannot
            self.register_parameter(name, nn.Parameter(by_columns, requires_grad=False))

        def normalise(self, x: Any, name: str) -> Any:
            if (norm := getattr(network, name)) is None:
                return x
            centred = x - x.mean(-1, keepdim=True) if norm.kind == NormKind.LN else x
            scale = torch.exp(-0.5 * torch.log((centred * centred).mean(-1, keepdim=True) + norm.eps))
            return centred * scale * getattr(self, f"{name}_weight") + getattr(self, f"{name}_bias")

        def forward(self, y: Any, stream: Any) -> Any:
            scores = y.matmul(self.score)
            differences = scores.transpose(1, 2) - scores
            weights = torch.reciprocal(torch.exp(differences).sum(2, keepdim=True))
            r = stream + (weights * y.matmul(self.value)).sum(1, keepdim=True)
            if network.mlp is not None:
                hidden = torch.relu(self.normalise(r, "norm_2").matmul(self.W_in) + self.b_in)
                r = r + hidden.matmul(self.W_out) + self.b_out
            logits = self.normalise(r, "norm_final").matmul(self.W_U) + self.b_U
            return logits.squeeze(1)

    return SecondHalf()


def search(crown: Crown, seconds: float) -> Certified:
    """Branch and bound over sets of tokens: every whole block once, then the largest first, until all is decided or the time is up."""
    started, processor = time.perf_counter(), time.process_time()
    network = crown.network
    blocks = [block for block in whole_blocks(network.n_ctx, network.d_vocab) if block.size]
    queue = [(False, -block.size, number, block) for number, block in enumerate(blocks)]
    heapq.heapify(queue)
    number = len(queue)
    by_blocks = at_first = singly = wrong = 0
    while queue and time.perf_counter() - started < seconds:
        batch = [heapq.heappop(queue) for _ in range(min(BATCH, len(queue)))]
        many = [entry for entry in batch if entry[-1].size > 1]
        for (again, _, _, block), sure in zip(many, crown.certified([entry[-1] for entry in many]), strict=True):
            if sure:
                by_blocks += block.size
                at_first += 0 if again else block.size
                continue
            for half in block.halves():
                heapq.heappush(queue, (True, -half.size, number, half))
                number += 1
        right = crown.right([entry[-1] for entry in batch if entry[-1].size == 1])
        singly += sum(right)
        wrong += len(right) - sum(right)
    return Certified(
        by_blocks=by_blocks,
        at_first=at_first,
        singly=singly,
        wrong=wrong,
        total=network.d_vocab**network.n_ctx,
        blocks=crown.blocks,
        calls=crown.calls,
        seconds=time.perf_counter() - started,
        processor_seconds=time.process_time() - processor,
        finished=not queue,
    )


def compare(path: Path, seconds: float, inputs: list[str], lirpa: Any) -> Iterator[dict[str, Any]]:
    """One model: our bounds, brute force, sampling for as long as our bounds took, CROWN."""
    model = cp.load(path)
    for upper, strategy in ((False, "threshold-quartic"), (True, "threshold-best")):
        proof = cp.prove(model, strategy, upper=upper, seconds=seconds)
        most = 1.0 if proof.upper is None else proof.upper
        note = f"{proof.status}; {singly(proof):.4f} singly"
        yield {"method": strategy, "lower": proof.lower, "upper": most, "seconds": proof.seconds, "note": note}
    cp.accuracy(model, samples=1000)  # compile
    tried = cp.accuracy(model, samples=_TRIED, seconds=None)
    samples = max(1000, round(_TRIED * proof.seconds / tried.seconds))
    sampled = cp.accuracy(model, samples=samples, seconds=None)
    lower, upper = sampled.interval
    yield {
        "method": "sampling, 99%",
        "lower": lower,
        "upper": upper,
        "seconds": sampled.seconds,
        "note": f"{samples:.1e} samples; no proof",
    }
    exact = cp.accuracy(model, seconds=None)
    yield {"method": "brute force", "lower": exact.interval[0], "upper": exact.interval[1], "seconds": exact.seconds, "note": "exact"}
    for kind in inputs if lirpa is not None else []:
        found = search(Crown(lirpa, as_network(model), kind), seconds)
        yield {
            "method": f"CROWN, {kind}",
            "lower": (found.by_blocks + found.singly) / found.total,
            "upper": 1 - found.wrong / found.total,
            "seconds": found.seconds,
            "note": f"{found.by_blocks / found.total:.4f} by blocks ({found.at_first / found.total:.4f} uncut), "
            f"{found.singly / found.total:.4f} singly; {found.blocks} blocks in {found.calls} calls{'' if found.finished else '; time was up'}",
            "found": vars(found),
        }


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each proof and for CROWN")
    parser.add_argument("--inputs", choices=("tokens", "box"), action="append")
    parser.add_argument("--out", type=Path, help="where to train the small models; by default a temporary folder")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    lirpa = import_lirpa()
    everything: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        out = args.out or Path(temporary)
        task = cp.MaxOfK(n_ctx=N_CTX, d_vocab=D_VOCAB)
        paths = args.models or [cp.train(task, [0], out=out, workers=1, bias=True, **kind)[0].path for kind in KINDS.values()]
        print("| model | method | lower | upper | seconds | |\n|---|---|---|---|---|---|")
        for path in paths:
            cp.prove(cp.load(path), "threshold-best", upper=True, seconds=1.0)  # compile
            rows = everything[path.stem] = []
            for row in compare(path, args.seconds, args.inputs or ["tokens", "box"], lirpa):
                rows.append(row)
                print(
                    f"| {path.stem} | {row['method']} | {row['lower']:.6f} | {row['upper']:.6f} | {row['seconds']:.2f} | {row['note']} |",
                    flush=True,
                )
            if args.json:
                args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
