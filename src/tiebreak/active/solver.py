"""The minimiser of α f + β g over a set with atoms, by cycles of one pass over the data each.

A cycle takes the gradient at x and prices all atoms with it; how much cheaper than x the cheapest one is, is the Frank-Wolfe
gap. Then it makes the quadratic model at x on the active atoms, exact for squares and Newton's for other losses, minimises
it (``corral.py``), and lets the cheapest of the other atoms enter one by one. For losses that are no squares a search along
the line from x ends the cycle. The gradient is that of x itself, so that what rounding does to a factor in one cycle the
next one corrects.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from tiebreak.active import corral
from tiebreak.active.terms import Pair, Term, terms_of
from tiebreak.active.threads import single_thread
from tiebreak.domains.atoms import Atom, blocks, decomposed, vertices
from tiebreak.engine.rounding import UNIT
from tiebreak.problem import Problem

CANDIDATES = 20  # atoms that may enter after a pass, at least
CANDIDATE_SHARE = 0.25  # number of these as a share of the active ones
WORTHWHILE = 0.15  # share of the gap by which an atom must be cheaper than x to enter
ENOUGH = 4.0  # gap, in units of rounding, that is as good as none
# Cycles without a gap half as large, and the fall of the model in units of rounding, at which rounding is to blame.
STUCK = ((6, 0.01), (20, 16.0))
MOST_ATOMS = 6000  # active atoms: their curvature takes 300 megabytes, and a factor of it some seconds
SEARCH_STEPS = 100  # evaluations of a search along a line, at most
LONGEST = 1e6  # step of a search
SHORTER = 1e-3  # factor of the longest step that may do, when no shorter one is known to be too short
SUFFICIENT = 0.1  # slope at the end of a full step, relative to that at its start, that is small enough


class TooManyAtomsError(MemoryError):
    """An answer is a mean of more atoms than can be kept."""


class Look(NamedTuple):
    """Both levels at a point; zeros for one that is not looked at."""

    f: float
    g: float
    f_gradient: np.ndarray
    g_gradient: np.ndarray


class Place(NamedTuple):
    """A point, or a direction, with its images at a level, one per term."""

    x: np.ndarray
    images: list[np.ndarray]

    def towards(self, end: Place) -> Place:
        """Return the way from this point to another one."""
        return Place(end.x - self.x, [last - first for first, last in zip(self.images, end.images, strict=True)])


class Level:
    """One objective with the images of the active atoms and their curvature."""

    def __init__(self, terms: list[Term]) -> None:
        self.terms = terms
        self.quadratic = all(term.quadratic for term in terms)
        self.images = [np.zeros((term.size, 0), order="F") for term in terms]  # per term, one column per atom
        self.gram = np.zeros((0, 0))  # of all images, weighted by their bends
        self.bends: list[np.ndarray] = []  # per term, the curvature of each entry of an image at the last look

    def passes(self, looks: int) -> int:
        """Return how many passes over the data some looks have taken, with those to begin with."""
        first, each = (max(kind) for kind in zip((0, 0), *(term.passes for term in self.terms), strict=True))
        return first + each * looks

    @property
    def known(self) -> int:
        """Atoms whose images are known."""
        return self.images[0].shape[1] if self.images else 0

    def add(self, atoms: Sequence[Atom]) -> None:
        """Add the images of further atoms."""
        if atoms:
            new = (term.images(atoms) for term in self.terms)
            self.images = [np.asfortranarray(np.hstack(pair)) for pair in zip(self.images, new, strict=True)]

    def keep(self, chosen: np.ndarray) -> None:
        """Forget all atoms but some."""
        own = chosen[chosen < self.known]
        self.images = [np.asfortranarray(image[:, own]) for image in self.images]
        own = own[own < len(self.gram)]
        self.gram = self.gram[np.ix_(own, own)]

    def look(self, x: np.ndarray, weights: np.ndarray, gradient: np.ndarray) -> float:
        """Return the value at the mean x of all atoms, and add the gradient."""
        found = [term.look(x, image @ weights, gradient) for term, image in zip(self.terms, self.images, strict=True)]
        self.bends = [bends for _, bends in found]
        return math.fsum(value for value, _ in found)

    def curvature(self) -> np.ndarray:
        """Return the curvature between all atoms, at the last look."""
        known = len(self.gram) if self.quadratic else 0
        gram = np.zeros((self.known, self.known))
        gram[:known, :known] = self.gram[:known, :known]
        for image, bends in zip(self.images, self.bends, strict=True):
            gram[known:] += (image[:, known:] * bends[:, None]).T @ image
        gram[:known, known:] = gram[known:, :known].T
        self.gram = gram
        return gram

    def image(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the image of a combination of all atoms, per term."""
        return [image @ weights for image in self.images]

    def along(self, start: Place, way: Place, step: float) -> tuple[float, float]:
        """Return value and slope at a step from a place along a way."""
        total = np.zeros(2)
        for term, first, image in zip(self.terms, start.images, way.images, strict=True):
            total += term.along(Pair(start.x + step * way.x, first + step * image), Pair(way.x, image))
        return float(total[0]), float(total[1])


class Solver:
    """A point as a mean of atoms, and cycles that improve it.

    Parameters
    ----------
    problem : Problem
    x : array, (d,)
        Where to begin.
    alone : bool
        Whether f is left aside.

    Attributes
    ----------
    weight : (float, float)
        (α, β), the weights of both levels; a level of weight 0 is not looked at.
    seen : Look
        Both levels at the last look.
    gap : float
        At the last look: α f(x) + β g(x) exceeds its minimum by no more than this, up to rounding.
    noise : float
        About what rounding does to a price.
    """

    def __init__(self, problem: Problem, x: np.ndarray, alone: bool = False) -> None:
        d = problem.dimension
        self.domain = problem.domain
        self.blocks = blocks(problem.domain, d)
        self.levels = [Level([] if alone else terms_of(problem.upper, d)), Level(terms_of(problem.lower, d))]
        self.looks = np.zeros(2, dtype=np.int64)  # by level
        self.begin(x)
        self.aim((0.0, 1.0))

    # Atoms

    def begin(self, x: np.ndarray) -> None:
        """Begin at a point, with the atoms that it is a mean of."""
        self.atoms: list[Atom] = []
        self.of: list[int] = []  # the block of each atom
        weights: list[float] = []
        for b, block in enumerate(self.blocks):
            for weight, atom in decomposed(block.domain, x[block.where]):
                self.atoms.append(Atom(block.where[atom.where], atom.values))
                self.of.append(b)
                weights.append(weight)
        self.weights = np.array(weights)
        for level in self.levels:
            level.keep(np.zeros(0, dtype=np.int64))
        self._gather()

    def _gather(self) -> None:
        """Make the matrix of atoms and the point."""
        sizes = np.cumsum([0, *(atom.where.size for atom in self.atoms)])
        where = np.concatenate([atom.where for atom in self.atoms]) if self.atoms else np.zeros(0, dtype=np.int64)
        values = np.concatenate([atom.values for atom in self.atoms]) if self.atoms else np.zeros(0)
        self.points = scipy.sparse.csc_array((values, where, sizes), shape=(self._dimension, len(self.atoms)))

    @property
    def _dimension(self) -> int:
        return sum(block.where.size for block in self.blocks)

    @property
    def x(self) -> np.ndarray:
        return self.points @ self.weights

    def place(self, level: Level) -> Place:
        """Return x with its images at a level."""
        return Place(self.x, level.image(self.weights))

    def _drop(self) -> None:
        """Let atoms of no weight go, and make weights sum to 1 in each block."""
        kept = np.flatnonzero(self.weights > 0.0)
        if kept.size < self.weights.size:
            self.atoms = [self.atoms[k] for k in kept]
            self.of = [self.of[k] for k in kept]
            self.weights = self.weights[kept]
            for level in self.levels:
                level.keep(kept)
        sums = np.bincount(self.of, self.weights, len(self.blocks))
        self.weights /= sums[self.of]
        self._gather()

    # Cycles

    def aim(self, weight: tuple[float, float], enough: float = 0.0) -> None:
        """Minimise another weighted sum from now on, until the gap is small enough or due to rounding."""
        self.weight, self.enough = weight, enough
        self.gap = self.noise = 0.0
        self._least, self._waited, self._fall = math.inf, 0, math.inf

    def cycle(self) -> bool:
        """Look at x; return True if it is a minimiser, to the accuracy that is possible, and improve it if not."""
        with single_thread(self._work):
            return self._cycle()

    @property
    def _work(self) -> float:
        """Multiplications of a cycle, about."""
        sizes = sum(term.size for level in self.levels for term in level.terms)
        return float(sizes + self._dimension) * (len(self.atoms) + self._dimension)

    def _cycle(self) -> bool:
        self.look()
        gap = self.price()
        self._waited = 0 if gap < 0.5 * self._least else self._waited + 1
        self._least = min(gap, self._least)
        stuck = any(self._waited >= cycles and self._fall <= fall * self.noise for cycles, fall in STUCK)
        if gap <= max(self.enough, ENOUGH * self.noise) or stuck:
            return True
        self._fall = self.improve()
        return False

    def look(self) -> Look:
        """Look at both levels at x, those that have a weight; each costs a pass."""
        values, gradients = [0.0, 0.0], np.zeros((2, self._dimension))
        for k in range(2):
            if self.weight[k] > 0.0:
                values[k], gradients[k] = self.look_at(k)
        self.seen = Look(values[0], values[1], gradients[0], gradients[1])
        return self.seen

    def look_at(self, k: int) -> tuple[float, np.ndarray]:
        """Return value and gradient of one level at x, at the price of a pass."""
        level, gradient = self.levels[k], np.zeros(self._dimension)
        level.add(self.atoms[level.known :])
        self.looks[k] += 1
        return level.look(self.x, self.weights, gradient), gradient

    def price(self) -> float:
        """Return the gap at the last look, and remember the cheapest atoms."""
        alpha, beta = self.weight
        self.slope = alpha * self.seen.f_gradient + beta * self.seen.g_gradient
        x, active = self.x, {(b, *atom.key()) for b, atom in zip(self.of, self.atoms, strict=True)}
        count = max(CANDIDATES, int(CANDIDATE_SHARE * len(self.atoms)))
        self.gaps = np.zeros(len(self.blocks))
        found = []
        for b, block in enumerate(self.blocks):
            c = self.slope[block.where]
            level = float(c @ x[block.where])
            for k, local in enumerate(vertices(block.domain, c, count)):
                saved = level - float(c[local.where] @ local.values)
                if k == 0:
                    self.gaps[b] = max(saved, 0.0)
                atom = Atom(block.where[local.where], local.values)
                if saved > 0.0 and (b, *atom.key()) not in active:
                    found.append((saved, b, atom))
        found.sort(key=lambda each: -each[0])
        self.gap = float(self.gaps.sum())
        self.worth = WORTHWHILE * np.maximum(self.gaps, self.gap / len(self.blocks))
        self.candidates = [each for each in found if each[0] > self.worth[each[1]]][:count]
        return self.gap

    def improve(self) -> float:
        """Minimise the model on the active atoms and the cheapest others; return by how much it falls."""
        first = len(self.atoms)
        if first > MOST_ATOMS:
            raise TooManyAtomsError(
                f"the answer has more than {MOST_ATOMS:,} active atoms, for which 'active-set' would take too much time and"
                " memory: take 'pb-apg' or 'cg-bio'"
            )
        self.atoms += [atom for _, _, atom in self.candidates]
        self.of += [b for _, b, _ in self.candidates]
        self._gather()
        start = np.concatenate([self.weights, np.zeros(len(self.candidates))])
        gram = np.zeros((start.size, start.size))
        for weight, level in zip(self.weight, self.levels, strict=True):
            if weight > 0.0:
                level.add(self.atoms[level.known :])
                gram += weight * level.curvature()
        state = self._corral(start, gram)
        corral.improve(state, first, self.worth)
        self.noise = self._rounding(start, np.diag(gram))
        moves = state.weights - start
        moves[state.base] -= np.bincount(self.of, moves, len(self.blocks))  # else rounding of weights, not the way, counts
        fall = -float(state.prices @ moves + 0.5 * moves @ (gram @ moves))
        step = 1.0 if self._quadratic else self._search(start, moves)
        self.weights = state.weights if step == 1.0 else start + step * moves
        self._drop()
        return max(step, 1.0) * fall

    def _rounding(self, weights: np.ndarray, squares: np.ndarray) -> float:
        """Return about what rounding does to a price: that of a product of an image with the residuals."""
        alpha, beta = self.weight
        sizes = np.sqrt(np.maximum(squares, 0.0))
        residual = math.sqrt(2.0 * max(alpha * self.seen.f + beta * self.seen.g, 0.0))
        return UNIT * float(sizes.max()) * (residual + float(weights @ sizes))

    @property
    def _quadratic(self) -> bool:
        return all(level.quadratic for weight, level in zip(self.weight, self.levels, strict=True) if weight > 0.0)

    def _corral(self, weights: np.ndarray, gram: np.ndarray) -> corral.Corral:
        """Return the active atoms and candidates with the factor of the active ones."""
        of, slots = np.array(self.of), weights.size
        state = corral.empty(slots, len(self.blocks))
        state.weights[:], state.block[:], state.gram[:] = weights, of, gram
        state.prices[:] = self.points.T @ self.slope
        state.counts[1] = slots
        heaviest = np.lexsort((-weights, of))
        state.base[:] = heaviest[np.searchsorted(of[heaviest], np.arange(len(self.blocks)))]
        others = np.flatnonzero((weights > 0.0) & (state.base[of] != np.arange(slots)))
        if not _factorise(state, others):
            corral.rebuild(state)
        return state

    def _search(self, start: np.ndarray, moves: np.ndarray) -> float:
        """Return the step along the moves at which the objective is least, as far as weights stay positive."""
        lines: list[tuple[float, Level, Place, Place]] = []
        for weight, level in zip(self.weight, self.levels, strict=True):
            if weight > 0.0:
                first, way = (Place(self.points @ w, level.image(w)) for w in (start, moves))
                lines.append((weight, level, first, way))

        def slope(step: float) -> float:
            return math.fsum(weight * level.along(first, way, step)[1] for weight, level, first, way in lines)

        begin, high, high_slope = slope(0.0), 1.0, slope(1.0)
        if max(abs(begin), abs(high_slope)) <= self.noise:  # what the objective gains or loses is rounding
            return high
        if not begin < 0.0:
            return 0.0
        low, low_slope = 0.0, begin
        if high_slope < -SUFFICIENT * abs(begin):  # as in the tail of an exponential function
            low, low_slope = high, high_slope
            high = float(np.min(start[moves < 0.0] / -moves[moves < 0.0], initial=LONGEST))
            high_slope = slope(high)
        if high_slope <= SUFFICIENT * abs(begin):
            return high
        for k in range(SEARCH_STEPS):
            share = min(max(low_slope / (low_slope - high_slope), 0.1), 0.9)
            if k % 3 == 2:  # slopes may jump, and where they do may be near 0
                share = 0.5 if low > 0.0 else SHORTER
            step = low + share * (high - low)
            now = slope(step)
            if abs(now) <= SUFFICIENT * abs(begin):
                return step
            if now < 0.0:
                low, low_slope = step, now
            else:
                high, high_slope = step, now
        return low

    @property
    def passes(self) -> np.ndarray:
        """Passes over the data of both levels so far."""
        return np.array([level.passes(int(looks)) for level, looks in zip(self.levels, self.looks, strict=True)])

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return the active atoms and what is known of them, as arrays."""
        kept = {
            "solver.where": self.points.indices,
            "solver.values": self.points.data,
            "solver.starts": self.points.indptr,
            "solver.blocks": np.array(self.of),
            "solver.weights": self.weights,
            "solver.looks": self.looks,
            "solver.aim": np.array([*self.weight, self.enough, self.gap, self.noise]),
            "solver.progress": np.array([self._least, float(self._waited), self._fall]),
        }
        return kept | {f"solver.gram{k}": level.gram for k, level in enumerate(self.levels)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        where, values, starts = (arrays[f"solver.{name}"] for name in ("where", "values", "starts"))
        self.atoms = [Atom(where[low:high], values[low:high]) for low, high in itertools.pairwise(starts)]
        self.of, self.weights, self.looks = (
            arrays["solver.blocks"].tolist(),
            arrays["solver.weights"],
            arrays["solver.looks"],
        )
        self._gather()
        for k, level in enumerate(self.levels):
            level.keep(np.zeros(0, dtype=np.int64))
            level.gram = arrays[f"solver.gram{k}"]
            level.add(self.atoms[: len(level.gram)])
        alpha, beta, self.enough, self.gap, self.noise = arrays["solver.aim"].tolist()
        self.weight = (alpha, beta)
        self._least, waited, self._fall = arrays["solver.progress"].tolist()
        self._waited = int(waited)


def _factorise(state: corral.Corral, others: np.ndarray) -> bool:
    """Set the factor to that of some atoms; return False if they depend on each other."""
    bases = state.base[state.block[others]]
    gram = state.gram
    reduced = (gram[np.ix_(others, others)] - gram[np.ix_(others, bases)]) - (
        gram[np.ix_(bases, others)] - gram[np.ix_(bases, bases)]
    )
    factor, failed = scipy.linalg.lapack.dpotrf(reduced, lower=1)
    size = gram[others, others] + gram[bases, bases]
    if failed or (np.diag(factor) ** 2 <= corral.DEPENDENT * size).any():
        return False
    m = others.size
    state.factor[:m, :m], state.order[:m], state.counts[0] = factor, others, m
    return True
