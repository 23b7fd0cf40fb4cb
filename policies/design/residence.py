"""How long a turn holds its slot, as a shape of mean one: exponential, Erlang, fixed, lognormal, or measured.

With F the distribution of residence over its mean T, theory asks for two things:

    F*(p) = E[e^{-p R/T}]              the transform, at p = s T                              1
    J(a)  = E[(R/T - a)+]              mean excess over an age a; J(0) = 1, J' = -survival    1

A pool with free slots answers a release rate with e^{-sL} (1 - F*(sT)) / s busy slots; only for the exponential shape
is that the first-order lag T e^{-sL} / (1 + sT).

References
----------
Cox, Renewal Theory (1962), chs. 2 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
# Numbers of any kind and width, as numpy's operators return them.
Numbers = NDArray[Any]
Kind = Literal["exponential", "erlang", "fixed", "lognormal", "measured"]
ATOMS = 600
"""Points that stand for a lognormal or measured shape; twice as many change a Hopf gain by less than 0.1 %."""
CHUNK = 1 << 21
NEARLY = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A distribution of residence over its mean.

    `stages` of an Erlang shape; `cv_ratio` of a lognormal one; `quantiles_ratio`: residences over their mean at equally
    spaced ranks, ascending, of a measured one.
    """

    kind: Kind = "exponential"
    stages: int = 1
    cv_ratio: float = 1.0
    quantiles_ratio: tuple[float, ...] = ()

    @property
    def cv(self) -> float:
        """Return the coefficient of variation."""
        if self.kind == "measured":
            points, weights = _atoms(self)
            return math.sqrt(max(float(weights @ points**2) - 1.0, 0.0))
        known = {"exponential": 1.0, "erlang": 1 / math.sqrt(self.stages), "fixed": 0.0, "lognormal": self.cv_ratio}
        return known[self.kind]

    def __str__(self) -> str:
        """Return the shape in a few words."""
        if self.kind == "erlang":
            return f"Erlang of {self.stages} stages"
        if self.kind == "lognormal":
            return f"lognormal of cv {self.cv_ratio:g}"
        return f"measured, cv {self.cv:.2g}" if self.kind == "measured" else self.kind

    def transform(self, p: Numbers) -> Complexes:
        """Return F*(p) at p = s T."""
        p = np.asarray(p, dtype=np.complex128)
        if self.kind == "exponential":
            return np.asarray(1 / (1 + p), dtype=np.complex128)
        if self.kind == "erlang":
            return np.asarray((1 + p / self.stages) ** -self.stages, dtype=np.complex128)
        if self.kind == "fixed":
            return np.asarray(np.exp(-p), dtype=np.complex128)
        points, weights = _atoms(self)
        flat, out = p.ravel(), np.empty(p.size, dtype=np.complex128)
        rows = max(CHUNK // len(points), 1)
        for i in range(0, len(flat), rows):
            out[i : i + rows] = np.exp(-np.outer(flat[i : i + rows], points)) @ weights
        return out.reshape(p.shape)

    def excess(self, age_ratio: Numbers) -> Floats:
        """Return J(a) = E[(R/T - a)+]."""
        a = np.asarray(age_ratio, dtype=np.float64)
        if self.kind == "exponential":
            return np.asarray(np.exp(-a))
        if self.kind == "fixed":
            return np.maximum(1.0 - a, 0.0)
        if self.kind == "erlang":
            k = self.stages
            return np.asarray(special.gammaincc(k + 1, k * a) - a * special.gammaincc(k, k * a))
        if self.kind == "lognormal":
            sigma = np.sqrt(np.log1p(self.cv_ratio**2))
            with np.errstate(divide="ignore"):
                d = (np.log(np.maximum(a, 0.0)) + sigma**2 / 2) / sigma
            return np.asarray(special.ndtr(sigma - d) - a * special.ndtr(-d))
        points, weights = _atoms(self)
        below = np.searchsorted(points, a, side="right")
        tail_mass = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])
        tail_mean = np.concatenate([np.cumsum((weights * points)[::-1])[::-1], [0.0]])
        return np.asarray(tail_mean[below] - a * tail_mass[below])

    def polynomials(self, mean_s: float, order: int) -> tuple[Floats, Floats]:
        """Return numerator and denominator of a rational F* in s, highest power first, for step responses and loci.

        Exact for exponential and Erlang; a Pade approximation of this order for fixed; for the others an Erlang or a
        balanced two-phase law of the same mean and cv.
        """
        cv = self.cv
        if cv > 1.0 + 1e-9 and self.kind != "exponential":
            share = (1 + np.sqrt((cv**2 - 1) / (cv**2 + 1))) / 2
            fast, slow = np.array([mean_s / (2 * share), 1.0]), np.array([mean_s / (2 * (1 - share)), 1.0])
            return np.polyadd(share * slow, (1 - share) * fast), np.polymul(fast, slow)
        stages = self.stages if self.kind == "erlang" else round(1 / max(cv, 0.05) ** 2)
        if self.kind == "fixed" or stages > 40:
            k = np.arange(order, -1, -1)
            factors = special.comb(order, k) / special.poch(2 * order - k + 1, k) * mean_s**k
            return np.asarray(factors * (-1.0) ** k), np.asarray(factors)
        down = np.array([1.0])
        for _ in range(stages):
            down = np.polymul(down, [mean_s / stages, 1.0])
        return np.array([1.0]), down

    def longest_ratio(self, left: float = 1e-4) -> float:
        """Return the age beyond which less than the share `left` of all slot time is spent."""
        reach = 1.0
        while reach < 1e4 and float(self.excess(np.array([reach]))[0]) > left:
            reach *= 1.3
        return reach


EXPONENTIAL = Shape()


def measured_shape(residences_s: Sequence[float]) -> Shape:
    """Return the shape of measured residences (of equally spaced ranks, or all of them).

    Residences as scattered as exponential ones (cv within `NEARLY` of 1) are taken for exponential, which has closed
    forms.
    """
    values = np.sort(np.asarray(residences_s, dtype=np.float64))
    mean = float(values.mean())
    if not len(values) or not mean > 0.0:
        raise ValueError("a measured residence needs values above 0")
    if len(values) > ATOMS:
        values = np.quantile(values, (np.arange(ATOMS) + 0.5) / ATOMS)
    shape = Shape(kind="measured", quantiles_ratio=tuple((values / values.mean()).tolist()))
    return EXPONENTIAL if abs(shape.cv - 1.0) < NEARLY else shape


@lru_cache(maxsize=64)
def _atoms(shape: Shape) -> tuple[Floats, Floats]:
    """Return points and weights of mean one that stand for the distribution."""
    if shape.kind == "lognormal":
        sigma = float(np.sqrt(np.log1p(shape.cv_ratio**2)))
        z = np.linspace(-6.0, 6.0 + sigma, ATOMS)
        points, weights = np.exp(sigma * z - sigma**2 / 2), np.exp(-(z**2) / 2)
        weights /= weights.sum()
    else:
        known = np.asarray(shape.quantiles_ratio, dtype=np.float64)
        ranks = (np.arange(len(known)) + 0.5) / len(known)
        points = np.interp((np.arange(ATOMS) + 0.5) / ATOMS, ranks, known)
        weights = np.full(ATOMS, 1.0 / ATOMS)
    return points / float(weights @ points), weights


def step_weights(shape: Shape, mean_s: float, step_s: float) -> Floats:
    """Return the chance that a residence ends in the k-th step, k = 1 .. n, with exactly the mean `mean_s`.

    Each residence is shared between the two whole numbers of steps around it, so that no rounding changes the mean;
    what would end in no step at all ends in the first.
    """
    count = int(np.ceil(shape.longest_ratio() * mean_s / step_s)) + 2
    excess = shape.excess(np.arange(count + 1) * step_s / mean_s) * mean_s
    weights = (excess[:-2] - 2 * excess[1:-1] + excess[2:]) / step_s
    weights[0] += 1.0 - (excess[0] - excess[1]) / step_s
    weights[-1] += (excess[-2] - excess[-1]) / step_s
    return np.maximum(weights, 0.0)
