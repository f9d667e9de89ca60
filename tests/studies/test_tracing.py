"""A run that was interrupted or failed is no outcome."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tiebreak
from tiebreak import engine
from tiebreak.active.course import Course
from tiebreak.data import Fold
from tiebreak.studies import dictionary, rates, references
from tiebreak.studies.tracing import followed, solved, trace


def interrupted(monkeypatch, after: int = 0):
    """Let Ctrl-C come at the first record of a run, after some runs that are left alone."""
    whole, calls = tiebreak.minimize, []

    def pressed(snapshot):
        raise KeyboardInterrupt

    def minimize(*args, **arguments):
        calls.append(args)
        return whole(*args, **(arguments if len(calls) <= after else {**arguments, "callback": pressed}))

    monkeypatch.setattr(tiebreak, "minimize", minimize)


def reference():
    rng = np.random.default_rng(0)
    train, validation = (Fold(rng.random((4, 6)), rng.random(4)) for _ in range(2))
    return references.solve(train, validation, 1.0)


@pytest.mark.parametrize(
    ("run", "after"),
    [
        (lambda: rates.run(0, "sbcgf", convex=True, share=rates.SHARE, horizons=[250], repeats=1), 0),
        (lambda: dictionary.start(0, iterations=3), 0),
        (lambda: dictionary.start(0, iterations=3), 1),
        (reference, 0),
    ],
    ids=["rates", "old dictionary", "g* of the dictionary", "reference"],
)
def test_ctrl_c_ends_a_run_without_an_outcome(run, after, monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)  # which takes seconds
    interrupted(monkeypatch, after)
    with engine.interpreted(), pytest.raises(KeyboardInterrupt):
        run()


def test_ctrl_c_on_a_path_is_no_end_of_it(monkeypatch):
    aimed = Course.aim

    def pressed(course, weight):
        if np.isfinite(weight):
            raise KeyboardInterrupt
        aimed(course, weight)

    problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 3.0]], [1.0]), tiebreak.L1Ball(2.0))
    assert 0.0499 < followed(problem).floor() <= 0.05
    monkeypatch.setattr(Course, "aim", pressed)
    assert len(tiebreak.path(problem).points) == 1  # a path keeps what it has
    with pytest.raises(KeyboardInterrupt):
        followed(problem)


@pytest.mark.parametrize("run", [solved, trace])
def test_a_run_that_fails_is_an_error_with_its_message(run):
    overflowing = tiebreak.LeastSquares([[1e139, 1.0], [1.0, 2.0]], [1.0, 1.0])
    problem = tiebreak.Problem(overflowing, tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(1e30))
    quietly = np.errstate(over="ignore", invalid="ignore")
    said = pytest.warns(RuntimeWarning, match="upper objective")
    with engine.interpreted(), quietly, said, pytest.raises(RuntimeError, match="NaN or infinity"):
        run(problem, "sbcgf", max_queries=5000)
