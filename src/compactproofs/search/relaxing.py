"""Looking for the hints of a leaf behind which a norm, an MLP or another head follows.

Ranges come from the same walks that check them: for several heads a range is certain when it is found. For one head it is the quotient of
two sums that is largest (Dinkelbach's method), to be checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from compactproofs.arrays.arithmetic import Float64, Uniformly
from compactproofs.bounds.activations import Parts
from compactproofs.bounds.jensen import UNITS
from compactproofs.bounds.majorants import Majorants, require_all
from compactproofs.bounds.neuron_bounds import Ends, Neurons
from compactproofs.bounds.norm_bounds import Divisor, across
from compactproofs.bounds.relaxation import WHOLE, FinalHints, NeuronHints, NormHints, Relaxation, Typical
from compactproofs.bounds.scene import Blend, Scene, middles
from compactproofs.bounds.stream import Stream, UnprovenError
from compactproofs.counting.walks import heaviest_quotient
from compactproofs.form.block import activated
from compactproofs.form.whole_block import FoldedMlp, Sigma, WholeBlock

_ROOM = 1e-9
"""Ranges are a little wider than what is found."""
_ROUNDS = 6
_SHORTER = 1.0 - 2.0**-30
"""Directions are a little shorter than 1."""
_LEAST_SHARE = 1024
"""Of UNITS; smaller shares would magnify rounding."""
_UNKNOWN = (0.0, 0.0)
_PLACES = 16
"""So many places of each head stand for what is typical where certificates name them."""
_DIGITS = 30
"""Bits of the ends of ranges, which certificates name."""


def typical_attention(form: WholeBlock, scene: Scene, often: np.ndarray) -> Typical:
    """Attention to each token at each position, by how often it stands there (position, token); of few places, evenly chosen, where
    certificates name them: with several heads, or a final norm."""
    places = WHOLE if form.n_heads == 1 and form.sigma_final is None else _PLACES
    low, high = scene.attention
    with np.errstate(all="ignore"):
        w = 0.5 * (low + high) * often
        part = np.cumsum(np.nan_to_num(w / w.sum(axis=(1, 2), keepdims=True)).reshape(len(w), -1), axis=1)
        whole = (np.diff(np.rint(part * places), axis=1, prepend=0.0) * (WHOLE // places)).astype(np.int64).reshape(w.shape)
    positions, tokens = np.nonzero(whole.max(axis=0))
    if not len(positions):
        positions, tokens = np.array([often.shape[0] - 1]), np.array([int(often[-1].argmax())])
    weights = whole[:, positions, tokens]
    weights[np.arange(len(weights)), weights.argmax(axis=1)] += WHOLE - weights.sum(axis=1)
    return Typical(positions, tokens, weights)


def relaxed(form: WholeBlock, scene: Scene, tokens: np.ndarray, query: int, typical: Typical) -> tuple[Relaxation, Majorants] | None:
    """Hints for a leaf, and the bounds that they give; None where nothing can be said."""
    try:
        with np.errstate(all="ignore"):
            return _Search(Stream(form, scene, tokens, query, typical, Uniformly())).found()
    except UnprovenError:
        return None


@dataclass(frozen=True, eq=False)
class _Search:
    stream: Stream

    def found(self) -> tuple[Relaxation, Majorants]:
        stream, form, norm, neurons = self.stream, self.stream.form, None, None
        hints = Relaxation(stream.typical)
        if form.mlp is not None:
            if form.sigma_2 is not None:
                divisor = self._divisor(form.sigma_2)
                self._check(divisor.premises())
                norm = divisor.hints
                ends = Ends.of(stream, divisor)
                self._check(ends.premises())
            else:
                ends = Ends.of(stream, None)
            neurons = self._neurons(form.mlp, ends)
            self._check(neurons.premises(), quotients=ends.behind_norm and not neurons.homogeneous)
            hints = replace(hints, norm=norm, neurons=neurons.hints)
        final = None if form.sigma_final is None else self._final(neurons, form.sigma_final)
        return replace(hints, final=final), Majorants(stream, neurons, final)

    def _check(self, premises: Iterator[tuple[Blend, str]], *, quotients: bool = False) -> None:
        """For several heads, ranges are certain already, but for those of quotients."""
        if self.stream.scene.n_heads == 1 or quotients:
            require_all(self.stream, premises)

    # ------------------------------------------------------------ ranges

    def _range(self, blend: Blend, over: Blend | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each column, or of its quotient by a positive blend, and a little more."""
        scene, error = self.stream.scene, blend.constant.error + blend.parts.error
        if scene.n_heads > 1:
            low, high = scene.range_of(blend) if over is None else (-self._quotient(-blend, over), self._quotient(blend, over))
        else:
            low, high = self._range_of_one_head(blend, over)
        room = [4.0 * error + _ROOM * (1.0 + np.abs(x)) for x in (low, high)]
        return low - room[0], high + room[1]

    def _range_of_one_head(self, blend: Blend, over: Blend | None) -> tuple[np.ndarray, np.ndarray]:
        """About the least and the largest quotient of sums (Dinkelbach's method)."""
        scene = self.stream.scene
        a = 0.5 * (scene.attention[0][0] + scene.attention[1][0])
        D = a if over is None else np.ascontiguousarray(a * (middles(over.constant) + middles(over.parts)[0])[:, :, 0])
        shift, X = middles(blend.constant), np.ascontiguousarray(middles(blend.parts)[0])
        found = []
        for sign in (-1.0, 1.0):  # a negative weight makes the least the largest
            c = np.zeros(len(shift))
            for _ in range(_ROUNDS):
                value, weight = heaviest_quotient(X, shift, sign * a, D, c, scene.moves)
                step = value / weight
                c = np.where(np.isfinite(step), c + step, np.inf)
                if not (np.abs(step) > 0.1 * _ROOM * (1.0 + np.abs(c))).any():
                    break
            found.append(c)
        return -found[0], found[1]

    def _quotient(self, blend: Blend, over: Blend) -> np.ndarray:
        """Larger and larger numbers until the difference is certainly not positive."""
        down = float(middles(over.constant)[0])
        ((least,), _), tried = self.stream.scene.range_of(over), middles(blend.constant) / down
        scale, c = max(float(least), 0.1 * down), tried
        for _ in range(2 * _ROUNDS):
            difference = Blend(blend.constant - over.constant * tried, blend.parts - over.parts * tried)
            value = self.stream.scene.range_of(difference)[1] + _ROOM * (1.0 + np.abs(tried))
            c = np.where(value <= 0.0, tried, np.inf)
            if (value <= 0.0).all():
                break
            tried = np.where(value > 0.0, tried + 1.05 * value / scale, tried)
        return c

    # ------------------------------------------------------------ norms

    def _divisor(self, sigma: Sigma) -> Divisor:
        stream = self.stream
        e = _direction(middles(stream.centre), sigma)
        hints = NormHints(e, e, np.zeros(len(e)), 0.0, True, self._head_shares(), _UNKNOWN, _UNKNOWN)
        found = Divisor(stream, sigma, hints)
        (least,), (most,) = self._range(found.lower)
        if stream.scene.n_heads > 1 and least > 0.0:
            low, high = self._range(stream.linear(across(e, sigma, stream.arithmetic)))
            line = Divisor(stream, sigma, replace(hints, spread=np.maximum(-low, high), least=float(least), bent=False))
            found = min(line, found, key=lambda divisor: self._typical(divisor.upper))
        (low,), (high,) = self._range(found.upper)
        return found.within((float(least), float(low)), (float(most), float(high)))

    def _typical(self, blend: Blend) -> float:
        """About the first column on the typical attention."""
        return float(middles(blend.constant)[0] + self.stream.averages(blend.parts)[:, 0].sum())

    def _sizes(self, parts: np.ndarray) -> np.ndarray:
        """(head, column): about how much each head can add."""
        heads, k, n, columns = parts.shape
        if heads == 1:
            return np.ones((1, columns))
        weight = (self.stream.scene.shares[1] ** 2).reshape(heads, 1, k * n)
        return np.asarray(np.sqrt((weight @ (parts**2).reshape(heads, k * n, columns))[:, 0]))

    def _final(self, neurons: Neurons | None, sigma: Sigma) -> FinalHints:
        out = middles(self.stream.centre)
        if neurons is not None:
            y = middles(neurons.read.constant) / self._s_at_centre() + middles(neurons.mlp.b_in)
            out = out + middles(neurons.mlp.b_out) + activated(neurons.mlp.act, y, Float64()) @ middles(neurons.mlp.W_out)
        return FinalHints(_direction(out, sigma), self._head_shares())

    def _head_shares(self) -> np.ndarray:
        """(head,): by how much each head can move the stream."""
        size = np.sqrt((self._sizes(middles(self.stream.spread)) ** 2).sum(axis=1))
        return _shares(size[:, None])[:, 0]

    def _s_at_centre(self) -> float:
        sigma = self.stream.form.sigma_2
        return 1.0 if sigma is None else _divided_by(middles(self.stream.centre), sigma)

    # ------------------------------------------------------------ neurons

    def _neurons(self, mlp: FoldedMlp, ends: Ends) -> Neurons:
        stream, everything = self.stream, np.arange(mlp.b_in.shape[0])
        nothing = np.zeros(len(everything))
        blank = Neurons(stream, mlp, ends, NeuronHints(nothing, nothing, nothing, nothing > 1.0, np.ones((1, 1))))
        quotients = ends.behind_norm and not blank.homogeneous
        ranges = [self._range(blank.inputs(x, everything), end if quotients else None) for x, end in enumerate(ends.blends)]
        low, high = np.min([r[0] for r in ranges], axis=0), np.max([r[1] for r in ranges], axis=0)
        s, read = self._s_at_centre(), blank.read
        point = middles(read.constant) + middles(mlp.b_in) * s
        point = point / s if quotients else point
        shares = _shares(self._sizes(middles(read.parts)))
        bent = np.zeros(len(low), dtype=bool) if quotients else self._bent(blank, point, shares, (low, high))
        known = np.isfinite(low) & np.isfinite(high) & (low < high)
        if quotients and not known.all():
            raise UnprovenError("a neuron has no range")
        if blank.homogeneous:  # what is always on, or off, needs one end only
            on, off = low >= 0.0, high <= 0.0
            low, high = -_shorter(-low), _shorter(high)
            low, high = np.where(off, -np.inf, np.where(on, 0.0, low)), np.where(off, 0.0, np.where(on, np.inf, high))
        hints = NeuronHints(low, high, point, bent | ~known, shares)
        neurons = Neurons(stream, mlp, ends, hints)
        neurons.__dict__["read"] = read  # computed already
        return neurons

    def _bent(self, neurons: Neurons, point: np.ndarray, shares: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Which neurons J bounds better than a chord, on the typical attention."""
        typical, g1, (low, high) = self.stream.typical, Parts(neurons.mlp.act, Float64()).first, ends
        w = typical.weights[:, :, None] / WHOLE
        if self.stream.scene.n_heads == 1 and not neurons.ends.behind_norm:
            at_places = middles(neurons.at_places()[0])[typical.positions, self.stream.tokens[typical.tokens]]
            curve = (w[0] * at_places).sum(axis=0)
        else:
            spread, b, at = middles(neurons.read.parts)[:, typical.positions, typical.tokens], shares[:, None, :], g1(point)
            curve = at + (w * b * (g1(point + spread / b) - at)).sum(axis=(0, 1))
        first, last = g1(low), g1(high)
        chord = first + (last - first) / (high - low) * (point - low)
        return np.asarray(~(chord <= curve + 1e-12))


def _direction(x: np.ndarray, sigma: Sigma) -> np.ndarray:
    x = x - x.mean() if sigma.centred else x
    length = float(np.linalg.norm(x))
    if not 0.0 < length < np.inf:
        raise UnprovenError("the centre of a norm is zero")
    return np.asarray(x / length * _SHORTER)


def _divided_by(x: np.ndarray, sigma: Sigma) -> float:
    x = x - x.mean() if sigma.centred else x
    return float(np.sqrt((x * x).mean() + sigma.eps))


def _shorter(x: np.ndarray) -> np.ndarray:
    """A little more than x, with few digits."""
    fraction, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.ceil(fraction * 2.0**_DIGITS), exponent - _DIGITS))


def _shares(size: np.ndarray) -> np.ndarray:
    """(head, column): positive multiples of 1 / UNITS that add up to at most 1, about in proportion to the sizes."""
    heads = len(size)
    if heads == 1:
        return np.ones(size.shape)
    with np.errstate(all="ignore"):
        part = np.nan_to_num((size + 1e-9) / (size + 1e-9).sum(axis=0), nan=1.0 / heads)
    return np.asarray((np.floor(np.clip(part, 0.0, 1.0) * (UNITS - _LEAST_SHARE * heads)) + _LEAST_SHARE) / UNITS)
