"""Bounds from fresh samples fail no more often than they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tiebreak import (
    AssumptionError,
    Box,
    L1Ball,
    LeastSquares,
    LInfBall,
    OnPart,
    Problem,
    Product,
    SquaredNorm,
    Status,
    Stream,
    certify,
    minimize,
    sources,
)
from tiebreak.engine import interpreted
from tiebreak.proofs.concentration import SampleRange, range_of

REPEATS, DELTA = 300, 0.4
COSTS = np.array([1.0, 0.0, 0.0])  # gradient of g: at its minimisers x_1 = −1
GAINS = np.array([-0.5, 1.0, 0.0])  # gradient of f: at the solution x_2 = −1
X = np.array([0.1, -0.2, 0.3])


@pytest.fixture(autouse=True)
def without_compiling():
    with interpreted():
        yield


def linear(mean):
    """The expectation of ⟨u, x⟩, for which the bounds are as tight as noise allows."""

    def draw(rng, size):
        return mean + rng.standard_normal((size, mean.size)) * (mean > 0.0)

    return Stream(draw, lambda x, u: (float(np.mean(u @ x)), u.mean(axis=0)), mean.size, convex=True)


def share_allowed(probability):
    return probability + 3.0 * np.sqrt(probability * (1.0 - probability) / REPEATS)


def test_the_share_of_bounds_that_fail_is_as_announced():
    problem = Problem(linear(GAINS), linear(COSTS), LInfBall(1.0, 3))
    f_gap, g_gap = GAINS @ X - (0.5 - 1.0), COSTS @ X - (-1.0)
    better = [np.array([-1.0, 0.0, 0.0])]
    found = [certify(problem, X, samples=1000, confidence=1.0 - DELTA, seed=seed, points=better) for seed in range(REPEATS)]
    failed = np.array(
        [
            [
                f_gap > each.upper_gap_bound,
                g_gap > each.lower_gap_bound,
                abs(each.upper - GAINS @ X) > each.upper_error,
                abs(each.lower - COSTS @ X) > each.lower_error,
            ]
            for each in found
        ]
    )
    assert failed.any(axis=1).mean() <= share_allowed(DELTA)
    assert (failed.mean(axis=0) <= share_allowed(DELTA / 4)).all()
    assert failed.mean(axis=0)[1:].min() > DELTA / 16  # tight where the expectation of the bound is the gap
    assert np.mean([each.upper_gap_bound for each in found]) < f_gap + 0.3


def test_bounds_hold_near_a_solution_where_noise_is_larger_than_the_gap():
    def squares(x, u):
        return 0.5 * float(np.mean((u @ x) ** 2)), (u @ x) @ u / len(u)

    def draw(rng, size):
        return rng.standard_normal((size, 4)) * np.array([1.0, 1.0, 0.0, 0.0])

    problem = Problem(SquaredNorm(np.ones(4)), Stream(draw, squares, 4, convex=True), L1Ball(2.0))
    best = np.array([0.0, 0.0, 1.0, 1.0])
    found = [
        certify(problem, best, samples=400, confidence=1.0 - DELTA, seed=seed, points=[np.zeros(4)]) for seed in range(100)
    ]
    assert all(each.upper_gap_bound >= 0.0 for each in found)
    assert all(each.lower_gap_bound >= 0.0 for each in found)


def test_more_samples_make_tighter_bounds():
    problem = Problem(linear(GAINS), linear(COSTS), LInfBall(1.0, 3))
    few, many = (certify(problem, X, samples=samples) for samples in (200, 20_000))
    assert many.upper_gap_bound < few.upper_gap_bound
    assert many.lower_gap_bound < few.lower_gap_bound
    assert (few.samples, many.samples) == (200, 20_000)
    assert few.confidence == 0.95


def test_there_is_no_upper_gap_if_f_is_not_known_to_be_convex():
    problem = Problem(replace(linear(GAINS), convex=None), linear(COSTS), LInfBall(1.0, 3))
    found = certify(problem, X)
    assert np.isnan(found.upper_gap_bound)
    assert found.stationarity == certify(Problem(linear(GAINS), linear(COSTS), LInfBall(1.0, 3)), X).upper_gap_bound


# Samples that are bounded

RARE, LOSS, PRICE = 1e-3, 100.0, 0.01  # an event, what it costs at x = 0, and the price of being safe from it at x = 1
MISSED = RARE * LOSS - PRICE  # gap of x = 0
KNOWN = {"value_range": (-LOSS, LOSS), "gradient_bound": LOSS}


def insurance(**known):
    def events(rng, size):
        return rng.random(size) < RARE

    def cost(x, happened):
        share = float(np.mean(happened))
        return LOSS * share * (1.0 - x[0]) + PRICE * x[0], np.array([PRICE - LOSS * share])

    return Problem(SquaredNorm([1.0]), Stream(events, cost, 1, convex=True, **known), Box([0.0], [1.0]))


def misses(problem, tries=200, samples=100):
    """Return how many bounds on the lower gap, the value and the upper gap fail, and whether bounds are approximate."""
    failed = np.zeros(3, dtype=int)
    for seed in range(tries):
        found = certify(problem, [0.0], samples=samples, seed=seed, confidence=0.95, check=False)
        gaps = found.lower_gap_bound < MISSED, found.upper_gap_bound < 0.5  # f* = 0 at x = 1
        failed += [gaps[0], abs(found.lower - RARE * LOSS) > found.lower_error, gaps[1]]
    return failed, found.approximate


def test_rare_events_are_missed_by_approximate_bounds_and_not_by_proven_ones():
    failed, approximate = misses(insurance())
    assert approximate
    assert failed.max() > 100  # no event, no variance, no doubt
    failed, approximate = misses(insurance(**KNOWN))
    assert not approximate
    assert failed.sum() <= 0.05 * 200


def test_proven_bounds_are_those_of_the_module_s_formulas():
    found = certify(insurance(**KNOWN), [0.0], samples=4000, confidence=0.95)
    with_half = np.log(2.0 / (0.05 / 4))
    hoeffding = 2.0 * LOSS * np.sqrt(with_half / (2 * 4000))
    bernstein = 7.0 * 2.0 * LOSS * np.log(4.0 / (0.05 / 4)) / (3.0 * 3999)
    slope = found.lower - PRICE  # of one variable: minus the mean gradient
    assert slope + bernstein < found.lower_gap_bound < slope + hoeffding  # few events: their variance decides
    assert 0.0 < found.lower_error < 2.0 * LOSS * np.sqrt(np.log(4.0 / (0.05 / 4)) / (2 * 4000))
    assert found.samples == 4000


def test_proven_bounds_become_tight_with_many_samples():
    rough, fine = (certify(insurance(**KNOWN), [0.0], samples=samples).lower_gap_bound for samples in (100, 200_000))
    assert MISSED <= fine < 0.1 * rough


def bounded_linear(mean, size=3.0):
    """The expectation of ⟨u, x⟩ with entries of u that are off by 1 at most."""

    def draw(rng, count):
        return mean + rng.uniform(-1.0, 1.0, (count, mean.size)) * (mean > 0.0)

    return replace(
        linear(mean), draw=draw, value_range=(-size, size), gradient_bound=float(np.linalg.norm(np.abs(mean) + (mean > 0)))
    )


def test_proven_bounds_hold_at_both_levels_and_are_not_much_wider_than_approximate_ones():
    problem = Problem(bounded_linear(GAINS), bounded_linear(COSTS), LInfBall(1.0, 3))
    plain = Problem(
        *(replace(level, value_range=(-np.inf, np.inf), floor=-np.inf, gradient_bound=np.inf) for level in problem[:2]),
        problem.domain,
    )
    f_gap, g_gap = GAINS @ X - (0.5 - 1.0), COSTS @ X - (-1.0)
    better = [np.array([-1.0, 0.0, 0.0])]
    for seed in range(8):
        found = certify(problem, X, samples=2000, confidence=1.0 - DELTA, seed=seed, points=better)
        assert not found.approximate
        assert f_gap <= found.upper_gap_bound
        assert g_gap <= found.lower_gap_bound
        assert abs(found.upper - GAINS @ X) <= found.upper_error
        assert abs(found.lower - COSTS @ X) <= found.lower_error
    other = certify(plain, X, samples=2000, confidence=1.0 - DELTA, seed=7, points=better)
    assert other.approximate
    assert found.lower_gap_bound - g_gap < 10.0 * abs(other.lower_gap_bound - g_gap) + 0.2
    assert found.upper_gap_bound < f_gap + 2.0


def test_a_known_floor_bounds_gaps_on_streams():
    plain, known = (Problem(SquaredNorm(np.ones(3)), linear(COSTS), L1Ball(1.0)) for _ in range(2))
    known = known._replace(lower=replace(known.lower, floor=-0.01))
    at = np.zeros(3)
    free, held = certify(plain, at, samples=400), certify(known, at, samples=400)
    assert held.lower_gap_bound == pytest.approx(held.lower + held.lower_error + 0.01)
    assert held.lower_gap_bound < free.lower_gap_bound
    assert held.floors.lower == pytest.approx(-0.01)


def test_the_spread_of_samples_follows_multiples_sums_and_parts():
    stream = bounded_linear(COSTS)
    bound = stream.gradient_bound
    assert range_of(stream) == SampleRange(6.0, bound)
    assert range_of(-2.0 * stream + 5.0 * SquaredNorm()) == SampleRange(12.0, 2.0 * bound)
    assert range_of(0.0 * linear(COSTS)) == (0.0, 0.0)
    assert range_of(SquaredNorm()) == (0.0, 0.0)
    both = Product(u=(L1Ball(1.0), 2), w=(L1Ball(1.0), 3))
    assert range_of(Problem(SquaredNorm(), OnPart(stream, "w"), both).lower) == SampleRange(6.0, bound)
    assert range_of(linear(COSTS)) == (np.inf, np.inf)
    once, repeated = (replace(stream, draw=sources.Rows([np.zeros((9, 3))], repeat=repeat)) for repeat in (False, True))
    assert range_of(once) == SampleRange(6.0, bound)
    assert range_of(once, resumed=True) == (np.inf, np.inf)  # a source that was made anew gives the rows of the run again
    assert range_of(repeated) == (np.inf, np.inf)  # its samples are not fresh


def test_a_certificate_and_a_result_say_that_they_are_approximate():
    words = "approximate: assumes that batch means are nearly normal; value_range and gradient_bound make it proven"
    result = minimize(insurance(), tol=(60.0, 60.0), max_queries=2000)
    assert result.status is Status.CERTIFIED
    assert result.certificate.approximate
    assert f"within tol=(60, 60); {words}" in result.message
    assert words in str(result)
    assert words in str(result.certificate)
    assert result.plot().axes[2].get_title(loc="left") == "approximate: g(x) − g* is at most"
    proven = minimize(insurance(**KNOWN), tol=(60.0, 60.0), max_queries=2000)
    assert proven.status is Status.CERTIFIED
    assert "approximate" not in f"{proven} {proven.certificate} {proven.message}"
    assert proven.plot().axes[2].get_title(loc="left") == "proven: g(x) − g* is at most"
    assert "approximate" not in str(certify(Problem(SquaredNorm(), SquaredNorm([1.0]), Box([0.0], [1.0])), [0.5]))


def test_that_bounds_are_approximate_is_kept_in_a_checkpoint(tmp_path):
    arguments = {"tol": (60.0, 60.0), "max_queries": 2000, "checkpoint": tmp_path / "run.npz"}
    first, again = (minimize(insurance(), **arguments) for _ in range(2))
    assert again.certificate.approximate
    assert again.message == first.message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value_range": (0.0, 0.01)}, "returned a mean loss .*, which contradicts `value_range` = \\(0, 0.01\\)"),
        ({"gradient_bound": 1e-3}, "returned a mean gradient of norm 0.01, which contradicts `gradient_bound` = 0.001"),
    ],
)
def test_a_sample_that_contradicts_the_limits_is_an_error(wrong, message):
    problem = insurance(**{**KNOWN, **wrong})
    with pytest.raises(AssumptionError, match=message):
        certify(problem, [0.0], samples=20_000)
    assert problem.lower.estimate([0.0], samples=20_000)[0] > 0.01  # which knows of no domain


def test_a_run_whose_limits_are_contradicted_ends_without_bounds():
    drawn = []

    def draw(rng, size):
        drawn.append(size)
        return np.full(size, sum(drawn) > 2000)

    problem = insurance(**{**KNOWN, "value_range": (0.0, 1.0)})
    problem = problem._replace(lower=replace(problem.lower, draw=draw))
    with pytest.warns(RuntimeWarning, match="contradicts `value_range`"):
        result = minimize(problem, max_queries=20_000, seed=2)
    assert result.status is Status.FAILED
    assert isinstance(result.error, AssumptionError)
    assert len(result.history) > 1
    assert np.isinf(result.lower_gap_bound)
    assert np.isinf(result.upper_gap_bound)
    assert np.isinf(result.history.lower_gap_bound).all()
    assert result.certificate.confidence == 0.0


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"value_range": 3.0}, "`value_range` must be a pair \\(low, high\\) of numbers, low < high, got 3.0"),
        ({"value_range": (1.0, 0.0)}, "`value_range` must be a pair"),
        ({"value_range": (0.0, np.nan)}, "`value_range` must be a pair"),
        ({"value_range": (0.0, "a")}, "`value_range` must be a pair"),
        ({"gradient_bound": -1.0}, "`gradient_bound` must be a finite number > 0, got -1.0"),
        ({"gradient_bound": None}, "`gradient_bound` must be a finite number > 0, got None"),
    ],
)
def test_limits_of_samples_are_checked(known, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        insurance(**known)


def test_a_stream_of_unknown_convexity_gets_no_bound_unless_it_has_a_floor():
    def waves(x, batch):
        return float(np.cos(3.0 * x[0])), -3.0 * np.sin(3.0 * x)

    for floor, expected in ((-math.inf, math.nan), (-1.0, 2.0)):
        stream = Stream(lambda rng, size: rng.random(size), waves, 1, floor=floor)
        certificate = certify(Problem(SquaredNorm(), stream, L1Ball(3.0)), [0.0], samples=200)
        assert certificate.lower_gap_bound == pytest.approx(expected, nan_ok=True)
        assert certificate.floors.upper == 0.0


def test_points_at_the_edge_of_the_set_prove_nothing_false_on_streams():
    def nearly_nothing(x, batch):
        return 1e-12 * float(batch.mean()), np.zeros(2)

    noise = Stream(lambda rng, size: rng.random(size), nearly_nothing, 2, True, value_range=(0, 1e-12), gradient_bound=1e-12)
    problem = Problem(noise + SquaredNorm([3.0, 0.0]), LeastSquares([[1.0, 0.0]], [5.0]), L1Ball(1.0))  # solved by (1, 0)
    outside = np.array([1.0 + 9e-10, 0.0])  # by less than what `contains` forgives
    certificate = certify(problem, outside, samples=400, points=[outside])
    assert not certificate.approximate
    assert certificate.x.tolist() == [1.0, 0.0]
    assert certificate.floors.lower <= 8.0 <= certificate.floors.best_lower
    assert certificate.floors.upper <= 2.0 <= certificate.upper + 1e-10
    assert 0.0 < certificate.upper_gap_bound < 1e-9
