"""The way to an answer: g alone first, then x_λ, the minimiser of f + λ g, for weights λ that lead to what is asked for.

x_λ is on the frontier of both levels: f(x_λ) is the least f among all points with g ≤ g(x_λ). For every x of Z and λ ≥ 0,

    f*(ε) ≥ f(x) + λ (g(x) − ḡ − ε) − max_{s ∈ Z} ⟨∇f(x) + λ ∇g(x), x − s⟩,

where ḡ ≥ g* is the least g seen; at x_λ the last term vanishes up to rounding.

- An exact tie (ε = 0) is the end of the path, λ → ∞: λ grows until the bound meets f(x_λ), or until λ times what rounding
  leaves of the last term is more than what a larger λ gains.
  Where g alone takes many cycles, some λ come before (``detour.py``).
- A near tie (ε > 0) has a finite λ, at which g(x_λ) reaches the level g* + ε. It is bracketed, and the points of both ends
  are mixed into one on the level; the search ends when its f meets the bound. If g is below the level even where f is least,
  the level does not matter.

For large λ it is f/λ + g that is minimised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tiebreak.active import corral, kept
from tiebreak.active.bracket import Bracket, End
from tiebreak.active.detour import Detour
from tiebreak.active.gathering import LEVELS, Gathering
from tiebreak.active.solver import Solver
from tiebreak.domains.rounding import quiet
from tiebreak.engine.randomness import Keys
from tiebreak.problem import Problem

FIRST_WEIGHT = 100.0  # first λ of the way to an exact tie, in units in which both levels vary alike
GROWTH = 100.0  # factor of λ from one stage to the next
LEAST_GROWTH = 2.0  # the same where the search for the λ that proves most ends
FALL = 1e-4  # the same while rounding of λ g hides f
NEAR_TIE = 1e-6  # distance of g from its minimum, relative to how it varies, at which f is measured anew
MUCH_MORE = 1e3  # factor by which a level may vary more than what it is where it matters
MUCH_LESS = 0.01  # share of how f was said to vary at which that is measured anew
BARELY = 1e-14  # share of g by which a point must be better than another one not to be as good, up to rounding
BARELY_ANY = 1e-8  # the same, as a share of how g varies on all of Z
NONE_LEFT = 4.0  # errors of f that its distance from its own floor may have to be none
ACCEPTABLE = 1e-6  # difference between f and its bound, relative to how f varies, that is not reduced at g's expense
CLOSE = 1e-7  # difference between f and its bound, relative to how f varies, that is as good as none
CLOSE_NEAR = 1e-12  # the same for near ties: x is then known to some digits, where f is strongly convex
ALMOST = 1.1  # factor of what is the least possible that is as good as it
SAFETY = 1e-12  # distance from a level that leaves room for a proof, relative to how g varies
VALUE_ROUNDING = 1e-13  # the same, relative to g itself and to the tolerance
PRICE_ROUNDING = 16.0  # the same, in units of what rounding does to a price
MOST_ROOM = 0.5  # share of the tolerance that is left so at most
RESOLVED = 10.0  # tolerance, in units of that, below which a near tie is taken for an exact one
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-10, 1e14  # λ beyond which only one level counts, in the same units
MOST_STAGES = 50  # stages of a search for a level


class Course:
    """A solver and where it is on its way.

    Parameters
    ----------
    problem : Problem
    x : array, (d,)
        Where to begin.
    alone : bool
        Whether g alone is to be minimised, and that is all.
    samples : int
        How many to draw of each level that is a stream. The problem is that of their means then.

    Attributes
    ----------
    weight : float
        λ of the current stage; infinite while g alone is minimised.
    arrived : bool
        Whether the last cycle found x to be x_λ, up to rounding.
    finished : bool
        Whether there is nothing left to improve.
    answer : array
        The best point so far.
    """

    solver: Solver

    def __init__(self, problem: Problem, x: np.ndarray, alone: bool = False, samples: int = 0) -> None:
        self.tolerance, self._keep, self._alone = float(problem.tolerance), float(problem.keep), alone
        self.gathering = Gathering(problem, samples, LEVELS[1:] if alone else LEVELS)
        self.under_way = False  # whether there is a solver
        if self.gathering.done:
            self.set_out(problem, x)
        self.weight = math.inf
        self.arrived = self.finished = False
        self.answer = x.copy()
        self.units = [math.nan, math.nan]  # how much f and g vary where it matters
        self.least, self.floor = math.inf, -math.inf  # around g*, the floor up to rounding
        self.upper_floor = -math.inf  # ≤ f*(ε), up to rounding
        self.upper = math.inf  # f at the answer of a near tie
        self.excess = math.inf  # of f at the answer over its floor
        self.bracket = Bracket()
        self.noise = math.inf  # what rounding does to a price of g
        self.minimiser, self.blur = x.copy(), 0.0  # of g alone, and what rounding does to g there
        self.stages = 0
        self.falling = False  # whether λ falls, on the way to an exact tie
        self.middle_fall = math.nan  # how much less than at the middle of Z f may be
        self.again = False  # whether λ begins anew
        self.range = math.nan  # how much g varies between the minimisers of both levels, or more
        self.asks_f = False  # whether the minimiser of f is to be found before λ is chosen
        self.asked_f = False  # whether it was
        self.free = False  # whether its g is below the level, which does not matter then
        self.growth = GROWTH  # of λ from one stage to the next
        self.sharpest = math.nan  # the last λ that rounding did not blur; of a near tie, the one that proves most
        self.witness = x.copy()  # x_λ that bounds f*(ε) best, for the sharpest λ
        self.recalled = False  # whether it continues towards another level, with few stages to come
        self.detour = Detour(possible=not alone and problem.tolerance == 0.0 and self._keep >= 1.0)

    def set_out(self, problem: Problem, x: np.ndarray) -> None:
        """Begin at a point of a problem without streams."""
        self.solver, self._problem, self.under_way = Solver(problem, x, self._alone), problem, True
        drawn, levels = self.gathering.collected, {name: getattr(problem, name) for name in LEVELS}
        sizes = [0 if name in drawn or level.endless else level.n_samples for name, level in levels.items()]
        self._sizes = np.array(sizes, dtype=np.int64)

    @property
    def queries(self) -> np.ndarray:
        """Samples drawn so far, by level."""
        drawn = self.gathering.drawn
        return drawn + self.solver.passes * self._sizes if self.under_way else drawn

    @property
    def needs_no_data(self) -> bool:
        """Whether all rows are summed up, so that a pass takes next to nothing."""
        return bool(self._sizes.max() <= 1)

    def gather(self, keys: Keys) -> None:
        """Draw samples of streams, and set out when there are enough."""
        corral.rehearse()  # compiled, as a rule before the run begins
        self.gathering.draw(keys)
        if self.gathering.done:
            self.set_out(self.gathering.problem, self.answer)

    def make_do(self) -> bool:
        """Set out with what was drawn so far; return False if it is nothing."""
        if not self.gathering.settle():
            return False
        self.set_out(self.gathering.problem, self.answer)
        return True

    @quiet
    def cycle(self) -> None:
        """Make one pass over the data: improve x, or see that it has arrived."""
        if self.arrived:
            self._depart()
        if not self.stage():
            if math.isinf(self.weight) and self.detour.kept is None:
                self.answer = self.solver.x
                self.detour.watch(self.solver)
            return
        self.stages += 1
        if self.detour.taken:
            self._arrive_on_detour()
        elif math.isinf(self.weight):
            self._arrive_at_minimiser_of_g()
        elif self.weight == 0.0:
            self._arrive_at_minimiser_of_f()
        elif self._has_new_unit():
            self.answer = self.solver.x
        elif self.is_tie:
            self._arrive_at_tie()
        else:
            self._arrive_near_level()

    def aim(self, weight: float) -> None:
        """Begin the stage of a λ."""
        widens = not 0.0 < self.weight < math.inf  # one level alone tells little of how far both together lead
        self.weight = weight
        if math.isinf(weight):
            self.solver.aim((0.0, 1.0))
        elif weight == 0.0:
            self.solver.aim((1.0, 0.0), widens=widens)
        else:
            self.solver.aim((1.0, weight) if weight < 1.0 else (1.0 / weight, 1.0), widens=widens)

    @quiet
    def stage(self) -> bool:
        """Make one pass for the λ of this stage; return whether x is x_λ."""
        self.arrived = self.solver.cycle()
        if self.arrived and self.weight > 0.0:  # before, a look may be a rough one
            self.least = min(self.least, self.solver.seen.g)
            self.noise = min(self.noise, self.solver.noise / self.solver.weight[1])
        if self.arrived and math.isinf(self.weight):
            found = self.solver.seen.g - self.solver.gap - self.solver.noise
            self.floor = max(found, float(self._problem.lower.floor))
        return self.arrived

    def _arrive_at_minimiser_of_g(self) -> None:
        """See how much both levels vary where it matters, at the price of three passes over f and two over g.

        That is between the middle of Z and this minimiser; where the middle is a minimiser too, the minimiser of f tells.
        """
        self.answer = self.solver.x
        if self._alone:
            self.finished = not self._looks_closer()
        elif self.solver.is_rough:
            self.detour.begin(self._fall(*self.solver.evaluate(0, self.answer)), self.solver.seen.g)
        else:
            self.measure()

    def _arrive_on_detour(self) -> None:
        """Take x_λ for the answer so far."""
        self.answer = self.solver.x
        self.detour.arrive(self.solver, self._slack()[2])

    def _see_least(self) -> None:
        """Look at the minimiser of g again."""
        self.least = self.solver.evaluate(1, self.minimiser)[0]
        self.blur = self.solver.levels[1].rounding(self.minimiser, self.least)
        self._allow()

    def _allow(self) -> None:
        """Say by how much g may exceed g*, if that is a share of how far it is above g* at another point of Z."""
        if self._keep < 1.0:
            value, _ = self.solver.evaluate(1, self._problem.reference)
            self.tolerance = (1.0 - self._keep) * max(value - self.floor, 0.0)

    def measure(self) -> None:
        """Do so."""
        self.minimiser = self.solver.x
        self.blur = self.solver.levels[1].rounding(self.minimiser, self.least)
        middle = self._problem.center
        self.finished = self._at_floor()
        here, self.middle_fall = (self._fall(*self.solver.evaluate(0, point)) for point in (self.solver.x, middle))
        value, slope = self.solver.evaluate(1, middle)
        gain = self.range = value - self.least
        self._allow()
        self.units = [min(max(here, self.middle_fall), MUCH_MORE * here), self._honest(gain, 0.0)]
        most = self.solver.evaluate(1, self._problem.domain.lmo(-slope))[0] - self.least
        self.asks_f = not gain > max(BARELY * abs(value), BARELY_ANY * most)

    def _honest(self, unit: float, rise: float) -> float:
        """Return how much g varies, but not much more than it is, may be, or rises by on the way: Z may be far too large."""
        size = abs(self.least) + self.tolerance + rise
        return min(unit, MUCH_MORE * size) if size > 0.0 else unit

    def _fall(self, value: float, slope: np.ndarray) -> float:
        """Return by how much f may fall on Z from a point with this value and slope."""
        span = float(slope @ (self._problem.domain.lmo(-slope) - self._problem.domain.lmo(slope)))
        return min(span, value - float(self._problem.upper.floor))

    def _arrive_at_minimiser_of_f(self) -> None:
        """Take its g for how much g varies, and be done if it is no larger than it may be."""
        self.asks_f, self.asked_f = False, True
        x = self.solver.x
        value, _ = self.solver.evaluate(1, x)
        self.range = value - self.least
        if not self.units[1] > BARELY * abs(value):
            self.units[1] = self._honest(self.range, 0.0)
        if value <= max(self.level, self.least + BARELY * abs(value)):
            self.answer, self.finished, self.free = x, True, True
        elif self._is_close:
            self._end_near_level()

    def _has_new_unit(self) -> bool:
        """Return whether f varies much less than it seemed: g may have minimisers that are arbitrarily bad for f."""
        now = self.solver.seen.f - float(self._problem.upper.floor)
        g, now = self.solver.seen.g, min(max(self.middle_fall, now), MUCH_MORE * now)
        at_tie = g - self.least <= NEAR_TIE * self.units[1]  # else a small λ is why f is small
        if not (at_tie and now < MUCH_LESS * self.units[0]):
            return False
        if now <= self.solver.gap / self.solver.weight[0] or self._at_floor():
            self.finished = g <= (self.level if not self.is_tie else self.floor + SAFETY * self.units[1])
            return self.finished
        self.units[0], self.again = now, True
        return True

    def _at_floor(self) -> bool:
        """Return whether f is as small as it can be, up to its rounding, at the price of a pass."""
        upper = self._problem.upper
        found = upper.survey(self.solver.x)
        self.solver.passes[0] += 1
        return found.value - float(upper.floor) <= NONE_LEFT * found.value_error

    @property
    def telling(self) -> bool:
        """Whether the answer is worth a look at all that it proves: at the end of each stage, or of the last of a few."""
        return self.arrived and (self.finished or not self.recalled)

    @property
    def hints(self) -> tuple[tuple[float, np.ndarray | None], ...]:
        """The λ that bound f* best, and where: at x_λ, and None for the answer."""
        if not self.arrived or self.stages < 2:
            return ()
        best = self.recalled and not self.is_tie
        weight, x = (self.sharpest, self.witness) if best else (self.weight, self.solver.x)
        return ((weight, None if np.array_equal(x, self.answer) else x),) if 0.0 < weight < math.inf else ()

    @property
    def unit(self) -> float:
        """The λ at which both levels vary alike."""
        f, g = self.units[0], max(self.range, self.tolerance)
        return f / g if f > 0.0 and g > 0.0 else 1.0

    def _depart(self) -> None:
        """Choose the next λ."""
        if self.detour.taken:
            self.aim(self.detour.next_weight())
            self.solver.enough = self.detour.enough * self.solver.weight[0]
        elif self.detour.back:
            self.detour.back = False
            self.aim(math.inf)
        elif self.asks_f:
            self.aim(0.0)
        elif not self.is_tie and self.bracket.trail:
            self.aim(self.bracket.next_weight(self.level, self.floor))
        elif math.isinf(self.weight) or self.weight == 0.0 or self.again:
            self.again = False
            reached = self.detour.end(self.solver)
            self.answer = self.solver.x if reached else self.answer
            self.aim(reached or self.unit * (FIRST_WEIGHT if self.is_tie else 1.0))
        else:
            self.aim(FALL * self.weight if self.falling else self.growth * self.sharpest)

    @property
    def is_tie(self) -> bool:
        """Whether the level is g* itself, as far as g can be told."""
        return self.tolerance <= RESOLVED * max(SAFETY * self.units[1], VALUE_ROUNDING * abs(self.least))

    def _slack(self) -> tuple[float, float, float]:
        """Return λ times how far g is above the least g seen, by how much f + λ g may fall, and what rounding adds to that.

        By the first two the bound misses f(x_λ). A strongly convex function falls by at most ‖∇‖² / 2μ, however large Z is.
        """
        solver, (alpha, beta) = self.solver, self.solver.weight
        gap, noise = solver.gap, solver.noise
        modulus = alpha * float(self._problem.upper.known_convexity) + beta * float(self._problem.lower.known_convexity)
        if modulus > 0.0 and (fall := float(solver.slope @ solver.slope) / (2.0 * modulus)) < gap:
            gap, noise = fall, 0.0
        blur = max(self.blur, solver.levels[1].rounding(solver.x, solver.seen.g))  # of g
        return self.weight * (solver.seen.g - self.least), gap / alpha, max(noise / alpha, self.weight * blur)

    # Exact ties

    def _arrive_at_tie(self) -> None:
        self.bracket.note(self.weight, self.solver.seen.f, self.solver.seen.g)
        above, gap, noise = self._slack()
        self.units[1] = self._honest(self.units[1], self.solver.seen.g - self.least)
        excess = abs(above) + gap
        blurred = gap + noise > abs(above)  # a larger λ would gain less than it costs
        done = excess <= CLOSE * self.units[0] and self.solver.seen.g - self.floor <= SAFETY * self.units[1]
        if (blurred or done) and self._looks_closer():
            return
        if not blurred or excess < self.excess:
            self.excess, self.answer = excess, self.solver.x
        # Where g is large and hardly varies, its rounding may hide f from the first λ on.
        hidden = blurred and math.isnan(self.sharpest) and excess > ACCEPTABLE * self.units[0]
        self.falling = hidden and self.weight > LEAST_WEIGHT * self.unit
        if not blurred:
            self.sharpest = self.weight
        elif not self.falling:  # the best λ lies between this one and the last one
            self.growth = LEAST_GROWTH / 2.0 if math.isnan(self.sharpest) else math.sqrt(self.growth)
        self.finished = done or self.growth < LEAST_GROWTH or self.weight >= LARGEST_WEIGHT * self.unit

    def _looks_closer(self) -> bool:
        """Look at the rows themselves from now on, if sums over them have done so far."""
        if not self.solver.refine():
            return False
        self.arrived = False
        if not self._alone:
            self._see_least()
        return True

    # Near ties

    @property
    def level(self) -> float:
        """The level of g that a point is to keep to be proven within the tolerance."""
        room = max(SAFETY * self.units[1], VALUE_ROUNDING * (abs(self.least) + self.tolerance), PRICE_ROUNDING * self.noise)
        return max(self.floor + self.tolerance - min(room, MOST_ROOM * self.tolerance), self.least)

    @property
    def _is_close(self) -> bool:
        """Whether f at the answer meets its floor, or misses it by no more than the bound's level is above the answer's."""
        apart = self.weight * (self.least + self.tolerance - self.level)
        return self.excess <= max(CLOSE_NEAR * self.units[0], ALMOST * apart)

    def _arrive_near_level(self) -> None:
        """Bound f*(ε), and take the best point so far whose g keeps the level."""
        solver = self.solver
        end = End(self.weight, solver.seen.f, solver.seen.g, *(solver.place(level) for level in solver.levels))
        self.bracket.add(end, self.level)
        above, gap, _ = self._slack()
        floor = end.f + above - self.weight * self.tolerance - gap
        if floor > self.upper_floor:
            self.upper_floor, self.sharpest, self.witness = floor, self.weight, end.x
        if (best := self.bracket.best(solver.levels, self.level)) is not None and best[1] <= self.upper:
            self.answer, self.upper = best
        self.excess = self.upper - self.upper_floor
        only_one_counts = not LEAST_WEIGHT < self.weight / self.unit < LARGEST_WEIGHT and not self.bracket.has_both
        closed = self.bracket.is_closed or only_one_counts
        self.finished = self._is_close or self.stages >= MOST_STAGES or closed
        if self.finished and self.bracket.outside is None and not self.asked_f:  # the level may not bind at all
            self.asks_f, self.finished = True, False
            return
        if self.finished:
            self._end_near_level()

    def _end_near_level(self) -> None:
        """Be done, or look at the rows themselves from now on."""
        self.finished = not self._looks_closer()
        if not self.finished:
            self.upper_floor, self.upper, self.excess = -math.inf, math.inf, math.inf
            self.bracket.clear()

    # On disk, and from one run to the next

    stored, restore, memory = kept.stored, kept.restore, property(kept.memory)

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Continue from the memory of a course of the same problem: where it ended, or towards another level."""
        passes, tolerance = self.solver.passes.copy(), self.tolerance
        self.restore({name: array.copy() for name, array in memory.items()})
        before, self.tolerance = self.tolerance, tolerance
        self.solver.passes[:] = passes
        self._allow()
        if self.tolerance == before or (self.free and self.tolerance > before):
            return
        self.answer = self.answer if self.tolerance > before else self.minimiser.copy()
        self.units[1] = self._honest(self.range, 0.0)
        self.upper_floor, self.upper, self.excess, self.stages = -math.inf, math.inf, math.inf, 1
        self.falling, self.growth, self.sharpest = False, GROWTH, math.nan
        self.arrived, self.again, self.recalled = True, True, True
        self.finished = self.free = self.asked_f = False
        self.bracket.move()
