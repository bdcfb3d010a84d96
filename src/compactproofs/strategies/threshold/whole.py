"""Threshold proofs of whole blocks: several heads, an MLP, norms after attention. Leaves are split until they are certified.

Every leaf has hints of its own (`search.relaxing`); what they prove is decided by `bounds.majorants` and counted as ever. The one pass of
`threshold-quartic` splits each query and label a given number of times; `threshold-best` goes on where most is undecided, decides short
lists one by one, and bounds right answers too.
"""

from __future__ import annotations

import time

from compactproofs.budget import Budget
from compactproofs.cores import one_blas_thread
from compactproofs.errors import InfeasibleError
from compactproofs.form.embedded import is_affine
from compactproofs.form.whole_block import require_pre_norm
from compactproofs.heap import kept_memory
from compactproofs.ledger.block_length import BlockLengths
from compactproofs.ledger.ledger import Ledger
from compactproofs.ledger.length import harm_flops
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.search.engine import fraction_of
from compactproofs.search.forest import Forest
from compactproofs.search.leaves import Care
from compactproofs.strategies.base import Bound, ProofLength, Request
from compactproofs.strategies.brute_force import forward_pass_flops
from compactproofs.strategies.threshold.limits import out_of_time, require_whole
from compactproofs.tasks.question import Question

UNIFORM = "float64 arrays with a proven error each over the reals, integer counting"

LEAVES, LEAVES_IF_LONG = 96, 24
"""Leaves of a query and label that one pass looks at, at most; on average, where sequences are short."""
_CLOSE = 1.5e-5
"""Where sequences are short, one pass ends when so little of them is undecided."""

_SECONDS_IF_UNLIMITED = 60.0
_SMALL = 1e-8
"""One pass does not go on where so little of all sequences of a query is left."""
_NARROW = 1e-9
"""Refinement ends when the bounds on accuracy are so close."""
_FEW = 0.009
"""Which part of all sequences may be decided one by one."""
_ALWAYS = 4096
"""So many may be decided whatever part that is."""
_PEEK = 512
"""If so few sequences of a leaf may fail, the search looks how many do."""
_REFINING, _ABOVE = 0.75, 0.9
"""Which parts of the time are over when refinement, and bounding right answers, end."""
_LIST_SHORT = 6
"""Sequences shorter than this are decided one by one."""


def is_whole_block(weights: Model, question: Question | None = None) -> bool:
    """Whether a network has more than one head and an affine readout; where the question has a margin, a final norm is more."""
    if isinstance(weights, Network) and not is_affine(weights, by_margin=question is not None and question.margin is not None):
        require_pre_norm(weights)
        return True
    return False


def steps_for(weights: Model) -> int:
    """How finely to count."""
    return 200 if weights.n_ctx <= 5 else 100


def care_for(weights: Model) -> Care:
    """How hard to look. Sequences that are short are decided one by one in the end, from what one term counts."""
    return Care(steps_for(weights), peek=_PEEK, apart=weights.n_ctx >= _LIST_SHORT)


def leaves_for(weights: Model) -> int:
    """How many leaves of a query and label, or of a pool, one pass looks at."""
    return LEAVES if weights.n_ctx < _LIST_SHORT else LEAVES_IF_LONG


def one_pass(request: Request, name: str) -> Bound:
    """Look at every query and label, with a number of splits each.

    Guarantee: correct_at_least is at most the mass answered right, for every weight setting and every task.
    Assumes: nothing.
    Cost: measured.
    Source: docs/explanation/blocks.md.
    """
    return grown(request, name, None)


def pooled_pass(request: Request, name: str, pools: int) -> Bound:
    """Look at every label with its queries in a few pools, with a number of splits each.

    Guarantee: correct_at_least is at most the mass answered right, for every weight setting and every task.
    Assumes: nothing.
    Cost: measured.
    Source: docs/explanation/blocks/pools.md.
    """
    network = request.weights
    if isinstance(network, Network) and (network.n_heads == 1 or network.norm_2 is not None or network.norm_final is not None):
        raise InfeasibleError(
            f"{name} pools queries of several heads without norms behind them. With one head, or a norm, the queries of a pool differ too "
            "much to share bounds; threshold-quartic is shorter and proves more."
        )
    return grown(request, name, pools)


def grown(request: Request, name: str, pools: int | None) -> Bound:
    """Look at every label with each query, or with so many pools of queries, and split each a number of times; about any network. Short
    sequences are split where most is undecided, until little is."""
    started = time.perf_counter()
    forest = _forest(request)
    pairs = forest.pairs(pools)
    care, short = care_for(request.weights), pools is None and request.weights.n_ctx < _LIST_SHORT
    with one_blas_thread(), kept_memory(), forest.crew():
        done = forest.grow(pairs, 1 if short else leaves_for(request.weights), care, request.budget, _SMALL)
        require_whole(len(done), len(pairs), request.budget, name)
        if short and not forest.refine(care, request.budget, fraction_of(request.question.total, _CLOSE), looks=LEAVES * len(pairs)):
            raise InfeasibleError(f"{name} {out_of_time(request.budget)}. Allow more (--seconds), or try threshold-best.")
    return _bound(request, forest, started, upper=False)


def portfolio(request: Request) -> Bound:
    """Go on until the time is up or the bounds meet.

    Guarantee: correct_at_least <= mass answered right <= correct_at_most, for every weight setting and every task.
    Assumes: nothing.
    Cost: at most about `request.seconds`, compiling aside.
    Source: docs/explanation/blocks.md.
    """
    started, seconds = time.perf_counter(), _SECONDS_IF_UNLIMITED if request.seconds is None else request.seconds
    budget, forest = Budget(seconds, request.stop), _forest(request)
    search(forest, budget, seconds, upper=request.upper)
    return _bound(request, forest, started, upper=request.upper)


def search(forest: Forest, budget: Budget, seconds: float, *, upper: bool) -> None:
    """The portfolio's search. Pairs are looked at, and leaves are split, where most may fail. All
    pairs are looked at if sequences are short. Of short sequences, once those that may
    fail are at most a hundredth of all, they are decided one by one, and both bounds meet. Else splitting goes on, and right answers are
    bounded."""
    network, total = forest.network, forest.question.total
    short = forest.truth is not None and network.n_ctx < _LIST_SHORT
    care = care_for(network)
    few, narrow = max(fraction_of(total, _FEW), _ALWAYS), fraction_of(total, _NARROW)

    def until(share: float) -> Budget:
        return Budget(share * seconds - budget.used, budget.event)

    forest.begin(forest.pairs())
    with one_blas_thread(), kept_memory(), forest.crew():
        if short:
            forest.grow(forest.pairs(), 1, care, budget)
            forest.refine(care, until(_REFINING), narrow, most=few)
            forest.decide(few, until(_REFINING))
        forest.refine(care, until(_REFINING if upper else _ABOVE), narrow)
        if upper:
            forest.bound_above(care, until(_ABOVE))


def above(request: Request) -> Forest:
    """A search for an upper bound alone."""
    seconds = _SECONDS_IF_UNLIMITED if request.seconds is None else request.seconds
    forest = _forest(request)
    search(forest, Budget(seconds, request.stop), seconds, upper=True)
    return forest


def _forest(request: Request) -> Forest:
    if not isinstance(request.weights, Network):
        raise InfeasibleError("whole blocks are networks")
    return Forest.of(request.weights, request.question)


def _bound(request: Request, forest: Forest, started: float, *, upper: bool) -> Bound:
    question, network, tally = request.question, forest.network, forest.tally()
    return Bound(
        question.total - forest.failing,
        forest.right if upper else None,
        UNIFORM,
        measured={
            "leaves": tally.leaves,
            "walks": tally.walks,
            **harm_flops(network, tally.joint, tally.apart),
            **({"listed sequences": tally.listed * sum(forward_pass_flops(network).values())} if tally.listed else {}),
            "counting": tally.counting,
        },
        integer_ops=tally.counting,
        length=length(network),
        make_ledger=lambda: Ledger(question, network.sha256, forest.lower_parts(), forest.upper_parts() if upper else None),
        counting_seconds=time.perf_counter() - started,
    )


def length(network: Network) -> ProofLength:
    """Tables; what leaves cost depends on the weights and comes on top."""
    return ProofLength(BlockLengths(network).tables, 0, unexplained_dimensions(network))


def unexplained_dimensions(network: Model) -> int:
    """Attention, values, bases and every weight behind them are looked up."""
    if not isinstance(network, Network):
        return 0
    v, k, heads, d = network.d_vocab, network.n_ctx, network.n_heads, network.d_model
    behind = [tensor.size for name, tensor in network.tensors.items() if name.startswith(("mlp.", "norm_2.", "norm_final.", "W_U", "b_U"))]
    return heads * k * v * (v + d) + v * d + int(sum(behind))
