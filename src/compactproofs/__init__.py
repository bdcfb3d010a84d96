"""compactproofs: weights of a small transformer in, a theorem about its accuracy out.

Public names load on first use (PEP 562), so that asking for help, or using the checker, loads neither numpy nor numba:
importing `compactproofs.checker` loads nothing else of the package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compactproofs.all_positions import over_positions
    from compactproofs.certificates import Certificate, check
    from compactproofs.checker import Verdict
    from compactproofs.errors import CompactProofsError
    from compactproofs.failing_inputs import counterexamples
    from compactproofs.interpretation import Interpretation, interpret, summarise
    from compactproofs.ledger.ledger import Ledger
    from compactproofs.ledger.merge import merge
    from compactproofs.ledger.verify import Verified, verify
    from compactproofs.margin_curves import margin_curve
    from compactproofs.measuring import Accuracy, accuracy
    from compactproofs.model.files import from_transformer_lens, load, save
    from compactproofs.model.forward import forward
    from compactproofs.model.network import Network
    from compactproofs.model.pytorch import from_pytorch
    from compactproofs.model.weights import Weights
    from compactproofs.model.zoo import zoo
    from compactproofs.proof import Proof, certify
    from compactproofs.proving import prove, prove_many
    from compactproofs.results.store import open_results
    from compactproofs.strategies.cubic import Cubic
    from compactproofs.strategies.registry import strategies
    from compactproofs.strategies.subcubic import Subcubic
    from compactproofs.strategies.threshold import (
        ThresholdBest,
        ThresholdBlocks,
        ThresholdCubic,
        ThresholdCubicPooled,
        ThresholdExactOutput,
        ThresholdLowRank,
        ThresholdNear,
        ThresholdNearBlocks,
        ThresholdQuadraticPooled,
        ThresholdQuartic,
    )
    from compactproofs.sweeps.sweep import SweepSummary, sweep
    from compactproofs.tasks import Framed, MaxOfK, SignOfSum, task_for
    from compactproofs.tasks.question import Question
    from compactproofs.training import train
    from compactproofs.version import __version__

__all__ = [
    "Accuracy",
    "Certificate",
    "CompactProofsError",
    "Cubic",
    "Framed",
    "Interpretation",
    "Ledger",
    "MaxOfK",
    "Network",
    "Proof",
    "Question",
    "SignOfSum",
    "Subcubic",
    "SweepSummary",
    "ThresholdBest",
    "ThresholdBlocks",
    "ThresholdCubic",
    "ThresholdCubicPooled",
    "ThresholdExactOutput",
    "ThresholdLowRank",
    "ThresholdNear",
    "ThresholdNearBlocks",
    "ThresholdQuadraticPooled",
    "ThresholdQuartic",
    "Verdict",
    "Verified",
    "Weights",
    "__version__",
    "accuracy",
    "certify",
    "check",
    "counterexamples",
    "forward",
    "from_pytorch",
    "from_transformer_lens",
    "interpret",
    "load",
    "margin_curve",
    "merge",
    "open_results",
    "over_positions",
    "prove",
    "prove_many",
    "save",
    "strategies",
    "summarise",
    "sweep",
    "task_for",
    "train",
    "verify",
    "zoo",
]

_HOME = {
    "Accuracy": "compactproofs.measuring",
    "Certificate": "compactproofs.certificates",
    "CompactProofsError": "compactproofs.errors",
    "Cubic": "compactproofs.strategies.cubic",
    "Framed": "compactproofs.tasks",
    "Interpretation": "compactproofs.interpretation",
    "Ledger": "compactproofs.ledger.ledger",
    "MaxOfK": "compactproofs.tasks",
    "Network": "compactproofs.model.network",
    "Proof": "compactproofs.proof",
    "Question": "compactproofs.tasks.question",
    "SignOfSum": "compactproofs.tasks",
    "Subcubic": "compactproofs.strategies.subcubic",
    "SweepSummary": "compactproofs.sweeps.sweep",
    "ThresholdBest": "compactproofs.strategies.threshold",
    "ThresholdBlocks": "compactproofs.strategies.threshold",
    "ThresholdCubic": "compactproofs.strategies.threshold",
    "ThresholdCubicPooled": "compactproofs.strategies.threshold",
    "ThresholdExactOutput": "compactproofs.strategies.threshold",
    "ThresholdLowRank": "compactproofs.strategies.threshold",
    "ThresholdNear": "compactproofs.strategies.threshold",
    "ThresholdNearBlocks": "compactproofs.strategies.threshold",
    "ThresholdQuadraticPooled": "compactproofs.strategies.threshold",
    "ThresholdQuartic": "compactproofs.strategies.threshold",
    "Verdict": "compactproofs.checker",
    "Verified": "compactproofs.ledger.verify",
    "Weights": "compactproofs.model.weights",
    "__version__": "compactproofs.version",
    "accuracy": "compactproofs.measuring",
    "certify": "compactproofs.proof",
    "check": "compactproofs.certificates",
    "counterexamples": "compactproofs.failing_inputs",
    "forward": "compactproofs.model.forward",
    "from_pytorch": "compactproofs.model.pytorch",
    "from_transformer_lens": "compactproofs.model.files",
    "interpret": "compactproofs.interpretation",
    "load": "compactproofs.model.files",
    "margin_curve": "compactproofs.margin_curves",
    "merge": "compactproofs.ledger.merge",
    "open_results": "compactproofs.results.store",
    "over_positions": "compactproofs.all_positions",
    "prove": "compactproofs.proving",
    "prove_many": "compactproofs.proving",
    "save": "compactproofs.model.files",
    "summarise": "compactproofs.interpretation",
    "sweep": "compactproofs.sweeps.sweep",
    "task_for": "compactproofs.tasks",
    "train": "compactproofs.training",
    "verify": "compactproofs.ledger.verify",
    "zoo": "compactproofs.model.zoo",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'compactproofs' has no attribute {name!r}; it has {', '.join(__all__)}")
    if name == "strategies":  # a callable package, see its docstring
        return import_module("compactproofs.strategies")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
