"""What is kept of a course: on disk, and from one run to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tiebreak.active.course import Course

MOST_MEMORY = 2**26  # bytes that are kept for a run that continues from a result

NUMBERS = (  # those that a checkpoint keeps
    *("weight", "arrived", "finished", "least", "floor", "upper_floor", "excess", "stages"),
    *("tolerance", "falling", "middle_fall", "again", "growth", "sharpest", "noise", "blur", "asks_f", "asked_f", "range"),
    *("upper", "free", "recalled"),
)


def stored(course: Course) -> dict[str, np.ndarray]:
    """Return all of this as arrays."""
    numbers = [float(getattr(course, name)) for name in NUMBERS]
    kept = {
        **course.gathering.stored(),
        **course.bracket.stored(),
        **course.detour.stored(),
        "course.numbers": np.array([*numbers, *course.units]),
        "course.answer": course.answer,
        "course.minimiser": course.minimiser,
        "course.witness": course.witness,
    }
    return {**kept, **course.solver.stored()} if course.under_way else kept


def restore(course: Course, arrays: Mapping[str, np.ndarray]) -> None:
    """Take over what :meth:`stored` returned."""
    course.gathering.restore(arrays)
    if course.gathering.done and not course.under_way:
        course.set_out(course.gathering.problem, arrays["course.answer"])
    *numbers, f_unit, g_unit = arrays["course.numbers"].tolist()
    for name, value in zip(NUMBERS, numbers, strict=True):
        setattr(course, name, type(getattr(course, name))(value))
    course.units, course.answer = [f_unit, g_unit], arrays["course.answer"]
    course.minimiser, course.witness = arrays["course.minimiser"], arrays["course.witness"]
    course.detour.restore(arrays)
    if course.under_way:
        course.bracket.restore(arrays, course.solver.levels)
        course.solver.restore(arrays)


def memory(course: Course) -> dict[str, np.ndarray] | None:
    """What a course of the same problem, with any tolerance, can continue from; None if that is not known yet."""
    if course.gathering.collected or not course.under_way or not course.bracket.trail:
        return None
    kept = course.stored()
    return kept if sum(array.nbytes for array in kept.values()) <= MOST_MEMORY else None
