"""The frontier of near ties: proven against a conic solver, monotone, and kept when it is interrupted."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import warnings

import cvxpy
import numpy as np
import pytest
from test_reference import TIGHT

import tiebreak
from tiebreak import (
    Box,
    FiniteSum,
    Frontier,
    L1Ball,
    L2Ball,
    LeastSquares,
    Logistic,
    Problem,
    Simplex,
    SquaredNorm,
    Status,
    Stream,
    frontier,
    minimize,
)
from tiebreak.driver.band import Band, Bound
from tiebreak.engine import interpreted

MODULE = importlib.import_module("tiebreak.driver.following")
RNG = np.random.default_rng(0)
A, a = RNG.standard_normal((5, 9)), RNG.standard_normal(5)
B, b = RNG.standard_normal((12, 9)), RNG.standard_normal(12)
TALL, tall = RNG.standard_normal((14, 9)), RNG.standard_normal(14)
TOY = Problem(SquaredNorm(), LeastSquares([[1.0, 3.0]], [1.0]), L1Ball(2.0))


def mean_square(matrix, target, x):
    return cvxpy.sum_squares(matrix @ x - target) / (2 * len(target))


def mean_logistic(matrix, labels, x):
    signs = np.where(labels > 0, 1.0, -1.0)
    return cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(signs, matrix @ x))) / len(labels)


# Problems, and the same in the words of a conic solver: f, g and the set.
PROBLEMS = {
    "ball": (
        Problem(LeastSquares(B, b), LeastSquares(A, a), L1Ball(1.5)),
        lambda x: (mean_square(B, b, x), mean_square(A, a, x), [cvxpy.norm1(x) <= 1.5]),
    ),
    "one minimiser": (
        Problem(LeastSquares(B, b), LeastSquares(TALL, tall), L1Ball(0.4)),
        lambda x: (mean_square(B, b, x), mean_square(TALL, tall, x), [cvxpy.norm1(x) <= 0.4]),
    ),
    "simplex": (
        Problem(SquaredNorm(), LeastSquares(A, a), Simplex(1.0)),
        lambda x: (cvxpy.sum_squares(x) / 2, mean_square(A, a, x), [x >= 0, cvxpy.sum(x) == 1]),
    ),
    "box, logistic f": (
        Problem(Logistic(B, b > 0), LeastSquares(A, a), Box(-np.ones(9), np.ones(9))),
        lambda x: (mean_logistic(B, b, x), mean_square(A, a, x), [x >= -1, x <= 1]),
    ),
    "ball, logistic g": (
        Problem(LeastSquares(B, b), Logistic(TALL, tall > 0), L1Ball(2.0)),
        lambda x: (mean_square(B, b, x), mean_logistic(TALL, tall, x), [cvxpy.norm1(x) <= 2.0]),
    ),
}
PROBLEM = PROBLEMS["ball"][0]


@functools.cache
def found(name: str) -> Frontier:
    return frontier(PROBLEMS[name][0], points=6, also=SquaredNorm())


@functools.cache
def least(name: str, epsilon: float) -> float:
    """Return f*(ε) by a conic solver."""
    x = cvxpy.Variable(9)
    upper, lower, rows = PROBLEMS[name][1](x)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        best = cvxpy.Problem(cvxpy.Minimize(lower), rows).solve(**TIGHT)
        return float(cvxpy.Problem(cvxpy.Minimize(upper), [*rows, lower <= best + epsilon]).solve(**TIGHT))


def unit(name: str) -> float:
    return abs(PROBLEMS[name][0].upper.value(np.zeros(9))) or 1.0


# Bounds


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_least_f_of_a_conic_solver_lies_between_the_bounds(name):
    points = [point for point in found(name).points if point.share > 1e-5]
    assert len(points) >= 4
    for point in points:
        best, doubt = least(name, point.tolerance), 1e-6 * unit(name)
        assert point.floor <= best + doubt
        assert point.ceiling >= best - doubt
        assert point.upper == pytest.approx(best, abs=2e-6 * unit(name))
        assert 0.0 <= point.ceiling - point.floor <= 1e-5 * unit(name)
        assert point.result.within


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_band_holds_between_the_points_too(name):
    front = found(name)
    at = [point.tolerance for point in front.points]
    for low, high in itertools.pairwise(at[2:]):
        epsilon = math.sqrt(low * high)
        best, doubt = least(name, epsilon), 1e-6 * unit(name)
        assert front.band.floor(epsilon) <= best + doubt
        assert front.band.ceiling(epsilon) >= best - doubt
        assert front.points[-1].floor - doubt <= front.band.floor(epsilon)
        assert front.band.ceiling(epsilon) <= front.band.ceiling(low)


@pytest.mark.parametrize("name", PROBLEMS)
def test_f_falls_as_the_tolerance_grows(name):
    front = found(name)
    assert front.status == "ended: all tolerances are done"
    assert (np.diff([point.tolerance for point in front.points]) > 0.0).all()
    for column in ("floor", "ceiling", "upper"):
        values = np.array([getattr(point, column) for point in front.points])
        assert (np.diff(values[np.isfinite(values)]) <= 1e-7 * unit(name)).all()
    grid = np.geomspace(front.points[1].tolerance / 10, 3 * front.points[-1].tolerance, 60)
    floors, ceilings = (np.array([bound(e) for e in grid]) for bound in (front.band.floor, front.band.ceiling))
    assert (floors <= ceilings).all()
    assert (np.diff(ceilings[np.isfinite(ceilings)]) <= 1e-12 * unit(name)).all()


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", PROBLEMS)
def test_both_ends_are_those_of_one_level_alone(name):
    front, problem = found(name), PROBLEMS[name][0]
    x = cvxpy.Variable(9)
    upper, lower, rows = PROBLEMS[name][1](x)
    least_upper = cvxpy.Problem(cvxpy.Minimize(upper), rows).solve(**TIGHT)
    least_lower = cvxpy.Problem(cvxpy.Minimize(lower), rows).solve(**TIGHT)
    assert front.upper_alone.certificate.upper == pytest.approx(least_upper, abs=1e-6)
    assert front.lower_alone.certificate.lower == pytest.approx(least_lower, abs=1e-6)
    assert front.lower_alone.least <= least_lower + 1e-8
    assert front.upper_alone.also == pytest.approx(SquaredNorm().value(front.upper_alone.certificate.x))
    assert front.least_upper <= least_upper + 1e-8
    assert front.gain == pytest.approx(problem.lower.value(problem.reference) - least_lower, abs=1e-6)
    assert all(point.floor >= front.least_upper for point in front.points)


def test_closed_form_of_a_toy():
    """f*(ε) = (1 − √(2ε))² / 20."""
    front = frontier(TOY, [0.0, 1e-4, 0.005, 0.02, 0.08, 0.7])
    for point in front.points:
        exact = 0.05 * max(1.0 - math.sqrt(2.0 * point.tolerance), 0.0) ** 2
        assert point.floor <= exact * (1.0 + 1e-12)
        assert point.ceiling >= exact * (1.0 - 1e-12)
        assert point.floor == pytest.approx(exact, abs=1e-7)
        assert point.share == pytest.approx(point.tolerance / 0.5)
    for epsilon in np.geomspace(1e-6, 0.6, 40):
        exact = 0.05 * max(1.0 - math.sqrt(2.0 * epsilon), 0.0) ** 2
        assert front.band.floor(epsilon) <= exact * (1.0 + 1e-9) + 1e-15
        assert front.band.ceiling(epsilon) >= exact * (1.0 - 1e-9)


def test_a_band_bounds_every_convex_curve_through_its_bounds():
    def curve(e):
        return 1.0 / (0.1 + e)

    at = (0.0, 0.1, 0.5, 2.0)
    band = Band(tuple(Bound(e, curve(e)) for e in at), tuple(Bound(e, curve(e)) for e in at))
    for e in np.linspace(0.0, 4.0, 81):
        assert band.floor(e) <= curve(e) <= band.ceiling(e)
    assert band.floor(0.3) > curve(0.5)  # the lines through neighbours say more than that the curve falls
    assert band.ceiling(0.3) < curve(0.1)
    assert Band((), ()).floor(1.0) == -math.inf
    assert Band((), (Bound(1.0, math.inf),)).ceiling(2.0) == math.inf


# What is asked for


def test_default_tolerances_are_shares_of_what_g_gains_and_the_exact_tie():
    front = found("ball")
    shares = [point.share for point in front.points]
    assert shares[0] == 0.0
    np.testing.assert_allclose(shares[1:], np.geomspace(1e-6, 0.3, 6), rtol=1e-9)


def test_tolerances_are_taken_in_order_and_once():
    front = frontier(TOY._replace(tolerance=0.3), [0.1, 0.0, 0.1, 0.01])
    assert [point.tolerance for point in front.points] == [0.0, 0.01, 0.1]
    assert front.problem.tolerance == 0.0
    assert [point.result.tolerance for point in front.points] == [0.0, 0.01, 0.1]


def test_a_point_is_what_minimize_answers():
    front = found("ball")
    point = front.points[4]
    single = minimize(PROBLEM._replace(tolerance=point.tolerance), "active-set")
    assert point.upper == pytest.approx(single.upper, abs=1e-6 * unit("ball"))


def test_a_third_objective_is_evaluated_at_the_answers():
    for point in found("ball").points:
        assert point.also == pytest.approx(0.5 * float(point.result.x @ point.result.x))
    front = frontier(TOY, [0.01, 0.1], also=lambda x: float(x[0]))
    assert [point.also for point in front.points] == [point.result.x[0] for point in front.points]
    assert math.isnan(frontier(TOY, [0.1]).points[0].also)


def test_the_answer_for_a_tolerance_keeps_it():
    front = found("ball")
    at = [point.tolerance for point in front.points]
    assert front.at(at[3]) is front.points[3].result
    assert front.at(0.5 * (at[3] + at[4])) is front.points[3].result
    assert front.at(1e9) is front.points[-1].result
    assert front.at(0.0) is front.points[0].result
    assert front.at(keep=1.0) is front.points[0].result
    assert front.at(keep=0.9).tolerance <= 0.1 * front.gain
    with pytest.raises(ValueError, match="`tolerance` asks for a tolerance of at most 0.001, and the smallest"):
        frontier(TOY, [0.01]).at(0.001)


@pytest.mark.parametrize("name", ["ball", "one minimiser", "ball, logistic g"])
def test_a_share_that_is_kept_is_what_minimize_keeps(name):
    problem = PROBLEMS[name][0]
    gain = found(name).gain
    front = frontier(problem._replace(keep=0.5), [0.01 * gain, 0.1 * gain])  # its own share is left aside
    assert front.problem.keep == 1.0
    for keep in (0.99, 0.9):
        single = minimize(problem._replace(keep=keep), "active-set")
        kept = front.at(keep=keep - 1e-9)
        assert kept.tolerance == pytest.approx(single.tolerance, rel=1e-6)
        assert kept.upper == pytest.approx(single.upper, abs=2e-6 * unit(name))
        assert kept.within
        assert single.within


def test_the_knee_is_where_more_of_g_begins_to_buy_little():
    front = frontier(PROBLEMS["one minimiser"][0], np.geomspace(1e-3, 5.0, 10))
    at, upper = np.array([(math.log(point.tolerance), point.upper) for point in front.points]).T
    below = np.interp(at, at[[0, -1]], upper[[0, -1]]) - upper
    assert front.points[int(np.argmax(below))] is front.knee
    assert 0.1 < front.knee.tolerance < 1.0  # f alone needs 0.46
    assert frontier(TOY, [0.01, 0.1]).knee is None
    assert frontier(PROBLEMS["one minimiser"][0], [1e-4, 1e-3, 1e-2]).knee is None  # f falls faster and faster


def test_a_first_point_or_result_is_taken():
    result = minimize(PROBLEM, "active-set")
    for x0 in (result, result.x):
        front = frontier(PROBLEM, [0.01], x0=x0)
        assert front.points[0].upper == pytest.approx(least("ball", 0.01), abs=1e-5)


def test_tolerances_beyond_all_that_g_varies_are_f_alone():
    front = frontier(PROBLEM, [1e3])
    assert front.points[0].upper == pytest.approx(front.upper_alone.certificate.upper, abs=1e-6)
    assert front.points[0].ceiling - front.points[0].floor <= 1e-6


def test_levels_that_are_alike_or_constant():
    constant = LeastSquares(np.zeros((1, 9)), [1.0])
    with interpreted():
        same = frontier(Problem(PROBLEM.lower, PROBLEM.lower, PROBLEM.domain), [0.0, 0.01])
        flat = frontier(PROBLEM._replace(lower=constant), [0.0, 0.01])
    assert np.ptp([point.upper for point in same.points]) <= 1e-9
    assert np.ptp([point.upper for point in flat.points]) <= 1e-6
    assert flat.gain == 0.0
    for front in (same, flat):
        assert front.table()
        assert front.plot().axes
        assert front.knee is None
    with pytest.raises(ValueError, match="`keep` needs"):
        flat.at(keep=0.9)
    with pytest.raises(ValueError, match="`tolerances` must be given: .* the middle of the domain minimises g"):
        frontier(PROBLEM._replace(lower=constant))


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerances": []}, "`tolerances` must be a non-empty vector"),
        ({"tolerances": [-1.0, 1.0]}, "`tolerances` must be numbers ≥ 0, got"),
        ({"tolerances": [math.nan]}, "`tolerances` must hold finite numbers"),
        ({"tolerances": [math.inf]}, "`tolerances` must hold finite numbers"),
        ({"tolerances": "many"}, "`tolerances`"),
        ({"tolerances": 0.1}, "`tolerances`"),
        ({"points": 1}, "`points` must be a whole number ≥ 2"),
        ({"points": 2.5}, "`points`"),
        ({"also": 3.0}, "`also` must be an objective or a function of x"),
        ({"also": LeastSquares([[1.0, 2.0]], [1.0])}, "`also` must have 9 variables, as `problem` has, got 2"),
        (
            {"also": Stream(lambda n, rng: rng.standard_normal((n, 9)), lambda x, s: (0.0, x), 9)},
            "`also` must not be a stream",
        ),
        ({"also": lambda x: math.nan}, "`also` must return a finite number, got nan"),
        ({"also": lambda x: "low"}, "`also` must return a finite number"),
        ({"x0": np.full(9, 7.0)}, "`x0`"),
        ({"progress": "yes"}, "`progress`"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        frontier(PROBLEM, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either `tolerance` or `keep` must be given"),
        ({"tolerance": 0.1, "keep": 0.9}, "either `tolerance` or `keep` must be given"),
        ({"tolerance": -1.0}, "`tolerance`"),
        ({"tolerance": math.nan}, "`tolerance`"),
        ({"keep": 1.5}, "`keep` must be a share between 0 and 1"),
        ({"keep": "most"}, "`keep`"),
    ],
    ids=str,
)
def test_bad_arguments_of_at_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        found("ball").at(**arguments)


def test_what_is_no_problem_is_refused():
    with pytest.raises(ValueError, match="`problem`"):
        frontier("this")


# Problems of other methods


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_where_the_active_set_does_not_fit_another_method_follows_the_curve():
    problem = PROBLEM._replace(domain=L2Ball(1.0))
    front = frontier(problem, points=4, max_queries=400_000, seed=3)
    x = cvxpy.Variable(9)
    upper, lower, _ = PROBLEMS["ball"][1](x)
    ball = [cvxpy.norm2(x) <= 1.0]
    best = cvxpy.Problem(cvxpy.Minimize(lower), ball).solve(**TIGHT)
    assert sum(result.queries.total for result in front.results) <= 400_000
    assert {result.method.name for result in front.results} == {"pb-apg"}
    for point in front.points[2:]:
        least_f = cvxpy.Problem(cvxpy.Minimize(upper), [*ball, lower <= best + point.tolerance]).solve(**TIGHT)
        assert point.floor <= least_f + 1e-6
        assert point.ceiling >= least_f - 1e-6
        assert point.ceiling - point.floor <= 1e-3
        assert point.result.within
    assert front.upper_alone.least <= cvxpy.Problem(cvxpy.Minimize(upper), ball).solve(**TIGHT) + 1e-8


def wavy(x, indices):
    return float(np.sin(3.0 * x).sum()), 3.0 * np.cos(3.0 * x)


def unscaled_ball():
    """A problem over a round set that a small budget leaves unsolved."""
    rng = np.random.default_rng(3)
    A, B = (rng.standard_normal((30, 12)) * np.logspace(0, 3, 12) for _ in range(2))
    return Problem(LeastSquares(B, rng.standard_normal(30)), LeastSquares(A, rng.standard_normal(30)), L2Ball(50.0))


def test_answers_that_may_exceed_their_tolerance_are_counted():
    found = tiebreak.frontier(unscaled_ball(), [1e-9, 1e-8, 10.0], max_queries=3000)
    beyond = sum(result.within is not True for result in found.results)
    assert beyond > 0
    assert f"{beyond} of 3 answers are not proven to keep their tolerance" in str(found).splitlines()[-1]


def test_no_answer_is_worse_than_another_point_that_keeps_its_tolerance():
    found = tiebreak.frontier(unscaled_ball(), [1e-6, 0.3, 3.0, 30.0], max_queries=4000)
    known = [result.certificate for result in found.results if result.within] + [found.upper_alone.certificate]
    for result in found.results:
        better = [each.upper for each in known if each.tolerance <= result.tolerance]
        assert not better or result.upper <= min(better)
        assert result.upper == pytest.approx(found.problem.upper.value(result.x))
        assert result.lower == pytest.approx(found.problem.lower.value(result.x))


def test_for_f_not_convex_only_what_is_proven_is_shown():
    """f*(ε) falls, but is not convex: an answer that keeps its tolerance is a ceiling for larger ones, and no chord is."""
    problem = PROBLEM._replace(upper=FiniteSum(1, 9, wavy, convex=False), domain=L1Ball(1.0))
    front = frontier(problem, points=4, max_queries=40_000)
    assert front.upper_alone is None
    assert front.least_upper == -math.inf
    for low, high in itertools.pairwise(front.points[1:]):
        assert low.floor == -math.inf
        assert low.ceiling == pytest.approx(low.upper, abs=1e-9)
        assert front.band.ceiling(0.5 * (low.tolerance + high.tolerance)) == low.ceiling
    assert "f alone" not in front.table()
    assert front.plot().axes


def rows(rng, n):
    X = rng.standard_normal((n, 9))
    return X, X @ np.linspace(-0.3, 0.3, 9) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("level", ["upper", "lower"])
def test_a_stream_has_a_frontier_whose_bounds_hold_with_some_probability(level):
    problem = PROBLEM._replace(**{level: Stream.of_rows(rows, 9)}, domain=L2Ball(1.0))
    front = frontier(problem, points=3, max_queries=60_000)
    assert len(front.points) == 4
    assert all(result.certificate.confidence < 1.0 for result in front.results)
    for point in front.points:
        assert point.floor == point.result.certificate.floors.upper
        assert point.floor <= point.upper + point.result.certificate.upper_error
    assert "each bound holds with probability 0.95" in str(front)
    assert front.plot().axes


def test_tolerances_of_the_bounds_end_a_point_early():
    problem = PROBLEM._replace(domain=L2Ball(1.0))
    rough = frontier(problem, [0.01, 0.1], tol=(1e-1, 1e-1), max_queries=200_000)
    fine = frontier(problem, [0.01, 0.1], tol=(1e-6, 1e-6), max_queries=200_000)
    assert all(result.status is Status.CERTIFIED for result in rough.results)
    assert sum(r.queries.total for r in rough.results) < sum(r.queries.total for r in fine.results)


def test_a_budget_is_for_all_points_together():
    front = frontier(PROBLEM, points=4, max_queries=4000)
    assert sum(result.queries.total for result in front.results) <= 4000
    assert all(result.within for result in front.results[1:])


def test_each_point_continues_from_the_last():
    """A dozen of points takes far fewer passes than all of them from nothing."""
    problem = PROBLEMS["one minimiser"][0]
    front = frontier(problem)
    single = [minimize(problem._replace(tolerance=point.tolerance), "active-set") for point in front.points]
    assert sum(result.iterations for result in front.results) <= 0.5 * sum(result.iterations for result in single)
    assert all(result.memory is None for result in front.results)


# Ctrl-C


def interrupting(monkeypatch, call, during):
    """Press Ctrl-C before a call of minimize, or during its run."""
    made = []

    def pressed(snapshot):
        raise KeyboardInterrupt

    def run(*args, **kwargs):
        made.append(args)
        if len(made) < call:
            return minimize(*args, **kwargs)
        if not during:
            raise KeyboardInterrupt
        return minimize(*args, **kwargs, callback=pressed)

    monkeypatch.setattr(MODULE, "minimize", run)


@pytest.mark.parametrize("during", [False, True])
def test_ctrl_c_keeps_the_points_that_are_done(during, monkeypatch):
    interrupting(monkeypatch, 3, during)
    front = frontier(PROBLEM, [0.001, 0.01, 0.1, 0.2], also=SquaredNorm())
    assert [point.tolerance for point in front.points] == [0.001, 0.01]
    assert front.status == "interrupted: Ctrl-C was pressed; 2 of 4 tolerances are done, the smallest ones"
    assert front.upper_alone is None
    assert front.points[1].floor <= least("ball", 0.01) + 1e-6
    assert front.points[1].also == pytest.approx(0.5 * float(front.points[1].result.x @ front.points[1].result.x))
    assert str(front).endswith(front.status)
    assert front.plot().axes


def test_ctrl_c_while_f_alone_is_minimised_loses_no_point(monkeypatch):
    interrupting(monkeypatch, 3, during=True)
    front = frontier(PROBLEM, [0.01, 0.1])
    assert len(front.points) == 2
    assert front.status == "interrupted: Ctrl-C was pressed; 2 of 2 tolerances are done; f alone is not"


def test_ctrl_c_before_the_first_point_is_raised(monkeypatch):
    interrupting(monkeypatch, 1, during=True)
    with pytest.raises(KeyboardInterrupt):
        frontier(PROBLEM, [0.1])


def test_an_error_of_a_third_objective_is_raised():
    def failing(x):
        if np.any(x):
            raise ZeroDivisionError("no")
        return 0.0

    with pytest.raises(ZeroDivisionError):
        frontier(PROBLEM, [0.01], also=failing)


# How it is shown


def test_it_prints_as_a_table():
    front = found("ball")
    lines = str(front).splitlines()
    assert lines[0].split()[:3] == ["ε", "share", "f(x)"]
    assert lines[0].split()[-1] == "also"
    assert lines[1].split()[:2] == ["g", "alone"]
    assert lines[-2].split()[:2] == ["f", "alone"]
    assert len(lines) == len(front.points) + 4
    assert repr(front) == front.table() == str(front)
    assert {len(line) for line in lines[:-1]} == {len(lines[0])}
    assert "also" not in str(frontier(TOY, [0.1]))


def labelled(axes):
    return {line.get_label().partition(":")[0]: line for line in axes.lines}


def test_it_is_drawn_with_its_band_both_ends_and_a_second_axis():
    front = found("ball")
    axes, below = front.plot().axes
    assert axes.get_xscale() == "log"
    lines = labelled(axes)
    assert {"f at the answers", "exact tie, ε = 0", "g alone", "f alone"} <= set(lines)
    np.testing.assert_array_equal(lines["f at the answers"].get_ydata(), [point.upper for point in front.points[1:]])
    assert lines["f alone"].get_ydata()[0] == front.upper_alone.certificate.upper
    assert axes.get_legend().get_texts()[0].get_text() == "f* lies here: proven"
    (shares,) = axes.child_axes
    assert "g(centre) − g*" in shares.get_xlabel()
    assert "g(x) ≤ g* + ε" in below.get_xlabel()
    others = labelled(below)
    np.testing.assert_array_equal(others["also, at the answers"].get_ydata(), [point.also for point in front.points[1:]])
    assert others["g alone"].get_ydata()[0] == front.lower_alone.also
    assert others["f alone"].get_ydata()[0] == front.upper_alone.also


def test_no_label_lies_on_another_or_on_the_curves():
    figure = found("ball").plot()
    figure.draw_without_rendering()
    above, below = (panel.get_window_extent() for panel in figure.axes)
    assert above.y0 > below.y1
    for panel in figure.axes:
        legend = panel.get_legend().get_window_extent()
        assert legend.x0 >= panel.get_window_extent().x1
        assert legend.x1 <= figure.bbox.x1


def test_ends_that_are_far_away_are_named_and_do_not_stretch_the_axis():
    problem = Problem(LeastSquares(A[:3], a[:3]), LeastSquares(B, b), L1Ball(50.0))  # f fits exactly
    (axes,) = frontier(problem, np.geomspace(1e-3, 3.0, 6)).plot().axes
    low = axes.get_ylim()[0]
    assert axes.get_yscale() == "log"
    assert low > 0.0
    hidden = next(line for line in axes.lines if not line.get_visible())
    assert hidden.get_label().startswith("f alone: ")
    assert hidden.get_label().endswith(", far below")
    assert hidden.get_ydata()[0] < low


def test_there_must_be_a_positive_tolerance_to_draw():
    with pytest.raises(ValueError, match="nothing to draw"):
        frontier(TOY, [0.0]).plot()


def test_progress_is_shown_when_asked_for_and_silent_otherwise(capfd):
    frontier(TOY, [0.1], progress=False)
    assert capfd.readouterr().err == ""
    frontier(TOY, [0.1], progress=True)
    assert "3/3 runs" in capfd.readouterr().err
    assert tiebreak.frontier is frontier
