"""Which problems the active set takes, and what it takes for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tiebreak.active.gathering import is_summable
from tiebreak.active.solver import MOST_ATOMS
from tiebreak.active.terms import Points, is_summed, terms_of
from tiebreak.domains import KSparse, projects
from tiebreak.domains.atoms import blocks, has_vertices
from tiebreak.objectives import Scaled, SquaredNorm
from tiebreak.objectives.summed import MOST_SIDE
from tiebreak.problem import Problem

LEAST_PASSES, LEAST_SUMMED = 10, 3  # passes over rows with which the active set is worth a try, and where one sums them up
SHARE_OF_STREAMS = 10.0  # queries of a problem with a stream, in units of what its other level takes
LARGEST = 1e60  # size of sets and data beyond which products of some of them may overflow
MOST_FIRST_ATOMS = 1500  # entries of a point to begin at, about as many as its atoms
MOST_BLOCKS = 20_000  # factors of a product of sets that are handled one by one
SOME_BLOCKS = 300  # factors from which on a cycle takes much longer than a pass over rows that are not summed up
MANY_BLOCKS = 1000  # factors from which on other methods are faster: each has atoms of its own
MANY_CORNERS = (KSparse,)  # sets with so many corners that the right ones take hundreds of cycles to find


def refusal(problem: Problem, levels: Sequence[str] = ("upper", "lower")) -> str:
    """Return why the active set does not take some levels of a problem, as the end of a sentence; empty if it does."""
    if not has_vertices(problem.domain):
        return f"a set that is the hull of its corners, and {type(problem.domain).__name__} is not known to be one"
    for name in levels:
        objective = getattr(problem, name)
        if is_summable(objective):
            if objective.dimension > MOST_SIDE:
                return f"a stream of at most {MOST_SIDE:,} variables, whose products it sums up, not {objective.dimension:,}"
            continue
        if objective.endless:
            return f"a stream of rows and squares, Stream.of_rows(draw, d), and the {name} objective is another one"
        try:
            terms = terms_of(objective, problem.dimension)
        except TypeError as error:
            return f"the curvature of the {name} objective, and {error} has none that it knows"
        if max(term.largest for term in terms) * max(1.0, float(problem.domain.diameter)) > LARGEST:
            return f"numbers up to {LARGEST:g}, so that squares of products do not overflow, in the {name} objective"
    if (count := len(blocks(problem.domain, problem.dimension))) > MOST_BLOCKS:
        return f"a product of at most {MOST_BLOCKS:,} sets, and `domain` is one of {count:,}"
    return ""


def nearest(problem: Problem) -> np.ndarray | None:
    """Return the minimiser of f, if it is found without passes over data: f is a squared distance, and Z has a projection.

    Where the boundary of Z binds, it has most atoms of the answer. Where passes over g are free, it is not worth it.
    """
    lower, upper, domain = problem.lower, problem.upper, problem.domain
    if lower.endless or is_summed(lower) or not (isinstance(upper, (SquaredNorm, Scaled)) and projects(domain)):
        return None
    terms = terms_of(upper, problem.dimension)
    if len(terms) > 1 or not isinstance(terms[0], Points):
        return None
    x = domain.project(terms[0].center)
    return x if np.count_nonzero(x) <= MOST_FIRST_ATOMS else None


def takes_long(problem: Problem) -> bool:
    """Return whether a cycle takes much longer than a pass over the data, so that other methods are near an answer before.

    Each factor of a product of sets has atoms of its own.
    """
    return len(blocks(problem.domain, problem.dimension)) >= SOME_BLOCKS and not is_summed(problem.lower)


def fits(problem: Problem, passes: float, queries: float = math.inf) -> bool:
    """Return whether the active set can solve a problem in some passes over its data, and in the memory that it may take.

    Where a level is a stream, ``queries`` are what both levels may take together.
    """
    if not (problem.upper.convex and problem.lower.convex) or refusal(problem):
        return False
    d = problem.dimension
    parts = blocks(problem.domain, d)
    if len(parts) > MANY_BLOCKS or any(isinstance(part.domain, MANY_CORNERS) for part in parts):
        return False
    levels = [level for level in (problem.upper, problem.lower) if not level.endless]
    terms = [term for level in levels for term in terms_of(level, d)]
    # A stream has as many samples as there are variables, or more.
    atoms = (d if len(levels) < 2 else min(sum(term.size for term in terms), d)) + len(parts)
    total = sum(level.n_samples for level in levels)
    if len(levels) < 2:
        return atoms <= MOST_ATOMS and queries >= SHARE_OF_STREAMS * LEAST_PASSES * total
    cheap = [level.n_samples == 1 or is_summed(level) for level in levels]
    wanted = (LEAST_SUMMED if each else LEAST_PASSES for each in cheap)
    needed = sum(level.n_samples * each for level, each in zip(levels, wanted, strict=True))
    return atoms <= MOST_ATOMS and passes * total >= needed
