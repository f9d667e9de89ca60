"""Which problems the active set takes, and what it takes for them."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.active.solver import MOST_ATOMS
from tiebreak.active.terms import terms_of
from tiebreak.domains.atoms import blocks, has_vertices
from tiebreak.problem import Problem

LEAST_PASSES = 10  # passes over the data with which the active set is worth a try
LARGEST = 1e60  # size of sets and data beyond which products of some of them may overflow
MOST_BLOCKS = 20_000  # factors of a product of sets that are handled one by one


def refusal(problem: Problem, levels: Sequence[str] = ("upper", "lower")) -> str:
    """Return why the active set does not take some levels of a problem, as the end of a sentence; empty if it does."""
    if not has_vertices(problem.domain):
        return f"a set that is the hull of its corners, and {type(problem.domain).__name__} is not known to be one"
    for name in levels:
        try:
            terms_of(getattr(problem, name), problem.dimension)
        except TypeError as error:
            return f"the curvature of the {name} objective, and {error} has none that it knows"
    if (count := len(blocks(problem.domain, problem.dimension))) > MOST_BLOCKS:
        return f"a product of at most {MOST_BLOCKS:,} sets, and `domain` is one of {count:,}"
    return ""


def fits(problem: Problem, passes: float) -> bool:
    """Return whether the active set can solve a problem in some passes over its data, and in the memory that it may take."""
    if not (problem.upper.convex and problem.lower.convex) or refusal(problem):
        return False
    d = problem.dimension
    if not float(problem.domain.diameter) <= LARGEST:
        return False
    terms = [term for level in (problem.upper, problem.lower) for term in terms_of(level, d)]
    atoms = min(sum(term.size for term in terms), d) + len(blocks(problem.domain, d))
    needed = max(term.first_passes + LEAST_PASSES * term.passes for term in terms)
    return atoms <= MOST_ATOMS and passes >= needed and max(term.largest for term in terms) <= LARGEST
