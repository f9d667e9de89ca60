"""The method that chooses a method.

- A stream at a level: if it is one of rows and squares over a set with atoms, sums over its samples and an active set;
  else, if samples can be kept and have the ties of the expectation, the problem of their means, by one of the methods
  below; else sampled gradients and a cut (SBCGI).
- Squares, Huber or logistic losses of linear models over a set with atoms, and ten passes over the data or more (three for
  squares of many rows, which are summed up): an active set of atoms, which finds the answer to rounding and proves it. But
  five thousand rows or more that are not summed up go to PAVR, if it can project and ties are exact. Over boxes of hundreds
  of sides, whose atoms are many, a tenth of the passes goes to PAVR first.
- A projection onto Z: accelerated projected gradients on f + w g with a growing weight w, from samples if f is convex and g
  has a thousand or more (PAVR), or a hundred where there are less than a hundred passes; else from all of them (PB-APG), and
  so for near ties of a g that is known to be well conditioned.
- Else, if a pass over the data is cheap, exact gradients and a cut (CG-BiO): sampling gains nothing.
- Else sampled gradients, exact ones from time to time, and a cut (SBCGF).

The rule is written from one half of the races in ``benchmarks/race.py`` and judged on the other one.
One pass is timed, to know how many a time limit allows.
"""

from __future__ import annotations

import math

from tiebreak.active.scope import fits, takes_long
from tiebreak.active.terms import is_summed
from tiebreak.domains import projects
from tiebreak.methods.active_set import SEEKING_PASSES, ActiveSet
from tiebreak.methods.base import NO_BUDGET, Budget, Method
from tiebreak.methods.cutting import CGBiO
from tiebreak.methods.fitting import is_round
from tiebreak.methods.parameters import declared
from tiebreak.methods.penalised import PBAPG
from tiebreak.methods.sample_average import SampleAverage, keeps
from tiebreak.methods.sbcgf import SBCGF
from tiebreak.methods.sbcgi import SBCGI
from tiebreak.methods.variance_reduced import PAVR
from tiebreak.problem import Problem

MANY = 1000  # samples of g from which on steps from batches of them are better
SOME, FEW_PASSES = 100, 100.0  # or so many of them, if there are fewer passes
VERY_MANY = 5000  # samples of g from which on they are so even where an active set fits, unless it sums them up
MANY_PASSES = 10.0 * SEEKING_PASSES  # with which some of PAVR may come before an active set that takes long
FEWEST = 2.0  # passes over the data that methods with a projection want at least
FEW = 64  # samples at both levels together, of which a mean is as cheap as an estimate
FEW_NOT_CONVEX = 1000  # samples likewise, if f is not convex: its steps are longer, and estimates worse


@declared
class Auto(Method):
    """Choose a method for the problem and the budget; the result tells which one it was.

    Examples
    --------
    >>> from tiebreak import L1Ball, L2Ball, LeastSquares, Problem, SquaredNorm
    >>> lower = LeastSquares([[1.0, 1.0, 0.0, 0.0]], [1.0])
    >>> Auto().for_problem(Problem(SquaredNorm(), lower, L1Ball(2.0))).name
    'active-set'
    >>> Auto().for_problem(Problem(SquaredNorm(), lower, L2Ball(2.0))).name
    'pb-apg'
    """

    name = "auto"
    citation = "active-set, pavr, pb-apg, cg-bio, sbcgf, sample-average or sbcgi, by problem and budget"
    setting = "any"
    needs = "convexity of f known"
    rates = "those of the method that it chooses"
    asks_for_passes = True
    near_ties = True

    def for_problem(self, problem: Problem, budget: Budget = NO_BUDGET) -> Method:
        return self.chosen(problem, budget).for_problem(problem, budget)

    def chosen(self, problem: Problem, budget: Budget) -> Method:
        f, g = problem.upper, problem.lower
        samples = f.n_samples + g.n_samples
        if math.isinf(samples):
            if fits(problem, math.inf, budget.queries):
                return ActiveSet()
            return SampleAverage() if keeps(problem, budget.queries) else SBCGI()
        passes = min(budget.queries / samples, budget.iterations, budget.passes)
        steps = projects(problem.domain) and passes >= FEWEST
        by_samples = steps and g.n_samples >= VERY_MANY and not (is_summed(g) or problem.is_near)
        if fits(problem, passes) and not by_samples:
            first = steps and not problem.is_near and takes_long(problem) and passes >= MANY_PASSES
            return ActiveSet(initial=PAVR()) if first else ActiveSet()
        if steps and (f.convex or (f.convex is False and not problem.is_near)):
            many = g.n_samples >= (MANY if passes >= FEW_PASSES else SOME)
            simple = problem.is_near and is_round(g)
            return PAVR() if many and f.convex and not simple else PBAPG()
        few = FEW if f.convex else FEW_NOT_CONVEX
        return CGBiO() if samples <= few else SBCGF()
