"""The minimiser of α f + β g over a set with atoms, by cycles of one pass over the data each.

A cycle takes the gradient at x and prices all atoms with it; how much cheaper than x the cheapest one is, is the Frank-Wolfe
gap. Then it makes the quadratic model at x on the active atoms, exact for squares and Newton's for other losses, minimises
it (``corral.py``), and lets the cheapest of the other atoms enter one by one. For losses that are no squares a search along
the line from x ends the cycle. The gradient is that of x itself, so that what rounding does to a factor in one cycle the
next one corrects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tiebreak.active import corral
from tiebreak.active.images import GROWTH
from tiebreak.active.levels import Level, Place
from tiebreak.active.line import least_along
from tiebreak.active.prices import Prices
from tiebreak.active.slots import Candidate, Slots
from tiebreak.active.terms import terms_of
from tiebreak.active.threads import single_thread
from tiebreak.domains.atoms import Atom, Block, blocks, decomposed, extent, near, vertices
from tiebreak.engine.rounding import UNIT
from tiebreak.problem import Problem

CANDIDATES = 20  # atoms that may enter after a pass, at least
CANDIDATE_SHARE = 0.25  # number of these as a share of the active ones
WORTHWHILE = 0.15  # share of the gap by which an atom must be cheaper than x to enter
ENOUGH = 4.0  # gap, in units of rounding, that is as good as none
# Cycles without a gap half as large, and the fall of the model in units of rounding, at which rounding is to blame.
STUCK = ((6, 0.01), (20, 16.0), (500, math.inf))
OLDEST_FACTOR = 16  # cycles after which a factor is made anew
FACTOR_ERROR = 1e-9  # relative error of the diagonal that a factor may have before that
IDLE_SHARE, LEAST_IDLE = 0.3, 32  # idle atoms, as a share of the active ones, and at least, at which they are forgotten
MOST_ATOMS = 6000  # active atoms: their curvature takes 300 megabytes, and a factor of it some seconds
CORRECTIONS = 2  # cycles that are made, whatever the gap, after a closer look was taken
FAR = 1e4  # reach of the first search, in units of the length of a step along the gradient
WIDER = 10.0  # factor by which the reach of another objective must be larger to be taken
FARTHER = 1e3  # factor by which it grows where its end is met
TOUCHING = 1e-9  # distance from the end, as a share of the reach, at which it is met
MUCH_TOO_LARGE, ENOUGH_ROOM = 1e3, 10.0  # factors by which a reach exceeds what is needed: before and after it is reduced
LEAST_NEEDED = 1e-8  # reach that is needed in any case, as a share of the first one


class TooManyAtomsError(MemoryError):
    """An answer is a mean of more atoms than can be kept."""


class Look(NamedTuple):
    """Both levels at a point; zeros for one that is not looked at."""

    f: float
    g: float
    f_gradient: np.ndarray
    g_gradient: np.ndarray


class Solver:
    """A point as a mean of atoms, and cycles that improve it.

    Atoms whose weight has vanished stay in their slots, idle, until there are many of them.

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
    weights : array
        Those of the atoms in all slots.
    seen : Look
        Both levels at the last look.
    gap : float
        At the last look: α f(x) + β g(x) exceeds its minimum by no more than this, up to rounding.
    noise : float
        About what rounding does to a price.
    passes : array of int, (2,)
        Passes over the data so far, by level.
    """

    def __init__(self, problem: Problem, x: np.ndarray, alone: bool = False) -> None:
        d = self.dimension = problem.dimension
        self._sets = blocks(problem.domain, d)
        self._divide(self._sets)
        self._reach, self._first_reach, self._around = math.nan, math.nan, x.copy()
        self.levels = [Level([] if alone else terms_of(problem.upper, d)), Level(terms_of(problem.lower, d))]
        self.passes = np.array([level.first_passes for level in self.levels], dtype=np.int64)
        self.slots, self._state = Slots(d), corral.empty(0, len(self.blocks))
        self.begin(x)
        self.aim((0.0, 1.0))

    # Atoms

    def _divide(self, parts: list[Block]) -> None:
        """Take these blocks: the factors of Z, or parts of them."""
        self.blocks, self._prices = parts, Prices(parts)

    def begin(self, x: np.ndarray) -> None:
        """Begin at a point, with the atoms that it is a mean of."""
        found = [
            (weight, Candidate(0.0, b, Atom(block.where[atom.where], atom.values)))
            for b, block in enumerate(self.blocks)
            for weight, atom in decomposed(block.domain, x[block.where])
        ]
        self.slots.clear()
        self.slots.add([candidate for _, candidate in found])
        self.weights = np.array([weight for weight, _ in found])
        for level in self.levels:
            level.keep(np.zeros(0, dtype=np.int64))
        self._combined = 0  # slots whose curvature is in the state
        self._age = OLDEST_FACTOR  # of the factor, in cycles

    def _confine(self, reach: float) -> bool:
        """Look for the minimiser no further from x than this; return whether that changes anything.

        Atoms that are much larger than x cost digits: rounding is relative to them.
        """
        x = self.x
        parts = [Block(where, near(domain, x[where], reach)) for where, domain in self._sets]
        self._reach, self._around = reach, x
        if all(part.domain is block.domain for part, block in zip(parts, self.blocks, strict=True)):
            return False
        self._divide(parts)
        self.begin(x)
        return True

    def _confined(self) -> bool:
        """Return whether the parts in which x was found are too small, or much too large, after changing that."""
        x, needed, least = self.x, 0.0, math.inf
        for (where, domain), whole in zip(self.blocks, self._sets, strict=True):
            far, most = extent(domain, x[where])
            if far >= (1.0 - TOUCHING) * most and domain is not whole.domain:
                return self._gains_farther() and self._confine(FARTHER * self._reach)
            needed, least = max(needed, far), min(least, most - far)
        needed = max(needed, LEAST_NEEDED * self._first_reach)  # x may well be the middle itself
        much_too_large = needed < least / MUCH_TOO_LARGE and not needed > self._reach / MUCH_TOO_LARGE
        return much_too_large and self._confine(ENOUGH_ROOM * needed)

    def _gains_farther(self) -> bool:
        """Return whether points farther away are better: else x is at the end of its reach by chance, as where g is flat."""
        x, gap = self.x, 0.0
        for where, domain in self._sets:
            c = self.slope[where]
            best = vertices(near(domain, x[where], FARTHER * self._reach), c, 1)[0]
            gap += max(float(c @ x[where]) - float(c[best.where] @ best.values), 0.0)
        return gap > FARTHER * max(self.enough, ENOUGH * self.noise)

    def _natural_reach(self) -> float:
        """Return many times the length of the step to the minimiser along the gradient, from x."""
        square, bend = float(self.slope @ self.slope), 0.0
        for k, (weight, level) in enumerate(zip(self.weight, self.levels, strict=True)):
            if weight > 0.0:
                bend += weight * level.bend_along(self.slope)
                self.passes[k] += level.passes
        reach = FAR * square**1.5 / bend if bend > 0.0 else math.inf
        return reach if reach > 0.0 else math.inf  # where the gradient all but vanishes, it underflows

    @property
    def atoms(self) -> int:
        """How many atoms x is a mean of."""
        return int((self.weights > 0.0).sum())

    @property
    def x(self) -> np.ndarray:
        return self.slots.point(self.weights)

    def place(self, level: Level) -> Place:
        """Return x with its images at a level."""
        return Place(self.x, level.image(self.weights))

    def _tidy(self) -> None:
        """Make weights sum to 1 in each block, and forget idle atoms if there are many."""
        sums = np.bincount(self.slots.blocks, self.weights, len(self.blocks))
        self.weights = self.weights / sums[self.slots.blocks]
        kept = np.flatnonzero(self.weights > 0.0)
        if self.weights.size - kept.size <= max(LEAST_IDLE, IDLE_SHARE * kept.size):
            return
        place = np.full(self.weights.size, -1)
        place[kept] = np.arange(kept.size)
        state, m = self._state, self._state.counts[0]
        state.order[:m], state.base[:] = place[state.order[:m]], place[state.base]
        self.weights = self.weights[kept]
        self.slots.keep(kept)
        for level in self.levels:
            level.keep(kept)
        self._combined = 0

    # Cycles

    def aim(self, weight: tuple[float, float], enough: float = 0.0, widens: bool = False) -> None:
        """Minimise another weighted sum from now on, until the gap is small enough or due to rounding.

        If it is very different from the last one, ``widens`` says that its minimiser may be much farther away.
        """
        self._widens = widens or math.isnan(self._reach)
        self.weight, self.enough = weight, enough
        self.gap = self.noise = 0.0
        self._least, self._waited, self._fall, self._owed = math.inf, 0, math.inf, 0
        self._combined, self._age = 0, OLDEST_FACTOR

    def cycle(self) -> bool:
        """Look at x; return True if it is a minimiser, to the accuracy that is possible, and improve it if not."""
        with single_thread(self._work):
            return self._cycle()

    @property
    def _work(self) -> float:
        """Multiplications of a cycle, about."""
        sizes = sum(term.size for level in self.levels for term in level.terms)
        return float(sizes + self.dimension) * (len(self.slots) + self.dimension)

    def _cycle(self) -> bool:
        self.look()
        gap = self.price()
        if self._widens:
            self._widens = False
            reach = self._natural_reach()
            self._first_reach = reach if math.isnan(self._first_reach) else max(reach, self._first_reach)
            if not reach <= WIDER * self._reach and self._confine(reach):
                return False
        self._waited = 0 if gap < 0.5 * self._least else self._waited + 1
        self._least = min(gap, self._least)
        stuck = any(self._waited >= cycles and self._fall <= fall * self.noise for cycles, fall in STUCK)
        if self._owed == 0 and (gap <= max(self.enough, ENOUGH * self.noise) or stuck):
            if not self._confined():
                return True
            self._begin_again()
            return False
        self._owed = max(self._owed - 1, 0)
        self._fall = self.improve()
        return False

    @property
    def is_rough(self) -> bool:
        """Whether the gap is small enough, and more than rounding."""
        return ENOUGH * self.noise < self.gap <= self.enough

    def refine(self) -> bool:
        """Look more closely from now on; return False if there is no way to."""
        found = [level.refine() for level in self.levels]
        if any(found):
            self._begin_again()
        return any(found)

    def _begin_again(self) -> None:
        """Forget how far the cycles have come, and make some more in any case."""
        self._least, self._waited, self._fall, self._owed = math.inf, 0, math.inf, CORRECTIONS

    def rehearse(self) -> None:
        """Compile all that cycles need."""
        corral.rehearse()
        for level in self.levels:
            for term in level.terms:
                term.rehearse()

    def evaluate(self, k: int, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient of one level at any point, at the price of a pass."""
        self.passes[k] += self.levels[k].passes
        return self.levels[k].evaluate(x)

    def look(self) -> Look:
        """Look at both levels at x, those that have a weight; each costs a pass."""
        values, gradients = [0.0, 0.0], np.zeros((2, self.dimension))
        for k in range(2):
            if self.weight[k] > 0.0:
                values[k], gradients[k] = self.look_at(k)
        self.seen = Look(values[0], values[1], gradients[0], gradients[1])
        return self.seen

    def look_at(self, k: int) -> tuple[float, np.ndarray]:
        """Return value and gradient of one level at x, at the price of a pass."""
        level, gradient = self.levels[k], np.zeros(self.dimension)
        level.add(self.slots.atoms(level.known))
        self.passes[k] += level.passes
        return level.look(self.x, self.weights, gradient), gradient

    def price(self) -> float:
        """Return the gap at the last look, and remember the cheapest atoms."""
        alpha, beta = self.weight
        self.slope = alpha * self.seen.f_gradient + beta * self.seen.g_gradient
        count = max(CANDIDATES, int(CANDIDATE_SHARE * self.atoms))
        self.gap, self._worth, self._candidates = self._prices.found(self.slope, self.x, count, WORTHWHILE)
        return self.gap

    def improve(self) -> float:
        """Minimise the model on the active atoms and the cheapest others; return by how much it falls."""
        if self.atoms > MOST_ATOMS:
            raise TooManyAtomsError(
                f"the answer has more than {MOST_ATOMS:,} active atoms, for which 'active-set' would take too much time and"
                " memory: take 'pb-apg' or 'cg-bio'"
            )
        tried = self._tried()
        start, state = self.weights, self._prepared()
        corral.improve(state, tried, self._worth)
        n = start.size
        gram, weights = state.gram[:n, :n], state.weights[:n].copy()
        if not np.isfinite(weights).all():  # as where the curvature vanishes
            weights, self._age = self._towards_cheapest(start, tried), OLDEST_FACTOR
        self.noise = self._rounding(start, np.diag(gram))
        moves = weights - start
        # Else rounding of weights, not the way, would count.
        moves[state.base] -= np.bincount(self.slots.blocks, moves, len(self.blocks))
        fall = -float(state.prices[:n] @ moves + 0.5 * moves @ (gram @ moves))
        step = 1.0 if self._quadratic else self._search(start, moves)
        self.weights = weights if step == 1.0 else np.maximum(start + step * moves, 0.0)
        self._age = self._age + 1 if self._quadratic else OLDEST_FACTOR
        self._tidy()
        return max(step, 1.0) * fall

    def _towards_cheapest(self, start: np.ndarray, tried: np.ndarray) -> np.ndarray:
        """Return the weights of the cheapest atom alone, in its block, for a step of Frank and Wolfe."""
        weights = start.copy()
        if tried.size:
            weights[self.slots.blocks == self.slots.blocks[tried[0]]] = 0.0
            weights[tried[0]] = 1.0
        return weights

    def _tried(self) -> np.ndarray:
        """Return the slots of the candidates that are not active, the best first; those that have none get one."""
        places = [self.slots.find(each) for each in self._candidates]
        fresh = [each for each, place in zip(self._candidates, places, strict=True) if place < 0]
        following = iter(range(len(self.slots), len(self.slots) + len(fresh)))
        slots = np.array([place if place >= 0 else next(following) for place in places], dtype=np.int64)
        if fresh:
            self.slots.add(fresh)
            self.weights = np.concatenate([self.weights, np.zeros(len(fresh))])
        return slots[self.weights[slots] == 0.0]

    def _rounding(self, weights: np.ndarray, squares: np.ndarray) -> float:
        """Return about what rounding does to a price: that of a product of an image with the residuals."""
        alpha, beta = self.weight
        sizes = np.sqrt(np.maximum(squares, 0.0))
        residual = math.sqrt(2.0 * max(alpha * self.seen.f + beta * self.seen.g, 0.0))
        return UNIT * float(sizes.max()) * (residual + float(weights @ sizes))

    @property
    def _quadratic(self) -> bool:
        return all(level.quadratic for weight, level in zip(self.weight, self.levels, strict=True) if weight > 0.0)

    def _prepared(self) -> corral.Corral:
        """Return the state of all slots, with the factor of the active ones."""
        n, before = len(self.slots), self._state
        if n > before.weights.size:
            self._state = corral.empty(int(GROWTH * n), len(self.blocks))
            corral.copy(before, self._state)
        state = self._state
        self._combine(state)
        state.weights[:n], state.moved[:n], state.block[:n] = self.weights, 0.0, self.slots.blocks
        state.prices[:n] = self.slots.prices(self.slope)
        state.counts[1] = n
        if self._age >= OLDEST_FACTOR or corral.factor_error(state) > FACTOR_ERROR:
            self._age = 0
            self._factorise(state)
        return state

    def _combine(self, state: corral.Corral) -> None:
        """Add up the curvatures of both levels; of slots that were there before it is known, if it is constant."""
        n, first = len(self.slots), self._combined if self._quadratic else 0
        rows = np.zeros((n - first, n))
        for weight, level in zip(self.weight, self.levels, strict=True):
            if weight > 0.0:
                level.add(self.slots.atoms(level.known))
                rows += weight * level.curvature()[first:]
        state.gram[first:n, :n] = rows
        state.gram[:first, first:n] = rows[:, :first].T
        self._combined = n

    def _factorise(self, state: corral.Corral) -> None:
        """Choose the heaviest atom of each block as its base, and make the factor of the others."""
        of, weights, slots = self.slots.blocks, self.weights, np.arange(len(self.slots))
        heaviest = np.lexsort((-weights, of))
        state.base[:] = heaviest[np.searchsorted(of[heaviest], np.arange(len(self.blocks)))]
        others = np.flatnonzero((weights > 0.0) & (state.base[of] != slots))
        if not corral.factorised(state, others):
            corral.rebuild(state)

    def _search(self, start: np.ndarray, moves: np.ndarray) -> float:
        """Return the step along the moves at which the objective is least, as far as weights stay positive."""
        lines: list[tuple[float, Level, Place, Place]] = []
        for weight, level in zip(self.weight, self.levels, strict=True):
            if weight > 0.0:
                first, way = (Place(self.slots.point(w), level.image(w)) for w in (start, moves))
                lines.append((weight, level, first, way))

        def slope(step: float) -> float:
            return math.fsum(weight * level.along(first, way, step)[1] for weight, level, first, way in lines)

        return least_along(slope, start, moves, self.noise)

    # On disk

    def stored(self) -> dict[str, np.ndarray]:
        """Return the atoms and what is known of them, as arrays."""
        state, m = self._state, self._state.counts[0]
        kept = {
            "weights": self.weights,
            "passes": self.passes,
            "aim": np.array([*self.weight, self.enough, self.gap, self.noise, self._reach, self._first_reach]),
            "around": self._around,
            "progress": np.array(
                [self._least, float(self._waited), self._fall, float(self._age), float(self._owed), float(self._widens)]
            ),
            "base": state.base,
            "order": state.order[:m],
            "factor": state.factor[:m, :m],
            **{f"gram{k}": level.stored() for k, level in enumerate(self.levels)},
            **{f"images{k}": np.array(level.known) for k, level in enumerate(self.levels)},
            "refined": np.array([level.refined for level in self.levels]),
            **self.slots.stored(),
        }
        return {f"solver.{name}": np.array(array) for name, array in kept.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what :meth:`stored` returned."""
        own = {name.removeprefix("solver."): array for name, array in arrays.items() if name.startswith("solver.")}
        self.slots.restore(own)
        self.weights, self.passes = own["weights"], own["passes"]
        for k, level in enumerate(self.levels):
            level.restore(self.slots.atoms()[: int(own[f"images{k}"])], own[f"gram{k}"])
        alpha, beta, self.enough, self.gap, self.noise, self._reach, self._first_reach = own["aim"].tolist()
        self._around = own["around"]
        if not math.isnan(self._reach):
            self._divide([Block(where, near(domain, self._around[where], self._reach)) for where, domain in self._sets])
        self.weight = (alpha, beta)
        self._least, waited, self._fall, age, owed, widens = own["progress"].tolist()
        self._waited, self._age, self._owed, self._combined = int(waited), int(age), int(owed), 0
        self._widens = bool(widens)
        for level, refined in zip(self.levels, own["refined"], strict=True):
            if refined:
                level.refine()
        m = own["order"].size
        state = self._state = corral.empty(int(GROWTH * len(self.slots)), len(self.blocks))
        state.base[:], state.order[:m], state.factor[:m, :m] = own["base"], own["order"], own["factor"]
        state.counts[0] = m
