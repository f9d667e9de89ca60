"""Streams of squares: samples are summed up block by block, and the problem of their means is solved."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import (
    ActiveSet,
    EndOfStream,
    L1Ball,
    L2Ball,
    LeastSquares,
    Problem,
    Record,
    SquaredNorm,
    Status,
    Stream,
    certify,
    minimize,
    sources,
)
from tiebreak.active.gathering import ROWS_PER_DRAW, Gathering, is_summable, rows_before
from tiebreak.engine.randomness import keys_of

TRUTH = np.array([1.0, 0.0, -1.0, 0.5])
NOISE = 0.3
MIXING = np.diag([1.0, 2.0, 0.5, 1.0])
MANY = 2 * ROWS_PER_DRAW + 1000  # samples of several blocks


def rows(rng, size):
    A = rng.standard_normal((size, 4)) @ MIXING
    return A, A @ TRUTH + NOISE * rng.standard_normal(size)


def flat_rows(rng, size):
    """Rows that leave two directions free: their loss has many minimisers."""
    A = rng.standard_normal((size, 2)) @ np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
    return A, A @ TRUTH + NOISE * rng.standard_normal(size)


def mean_of(x):
    """The expectation of the loss of ``rows``, less that at the truth."""
    return 0.5 * np.sum((MIXING @ (x - TRUTH)) ** 2)


def mean_of_flat(x):
    way = x - TRUTH
    return 0.5 * ((way[0] + way[1]) ** 2 + (way[2] - way[3]) ** 2)


STREAM, FLAT = Stream.of_rows(rows, 4), Stream.of_rows(flat_rows, 4)
PROBLEM = Problem(SquaredNorm(), STREAM, L1Ball(5.0))


class Kept:
    """A source that remembers the rows that it returned."""

    def __init__(self, draw=rows):
        self.draw, self.batches = draw, []

    def __call__(self, rng, size):
        self.batches.append(self.draw(rng, size))
        return self.batches[-1]

    @property
    def all(self):
        return np.vstack([A for A, _ in self.batches]), np.concatenate([b for _, b in self.batches])


class Limited:
    """A source that ends after some rows, in the way that is said."""

    def __init__(self, count, way):
        self.left, self.way = count, way

    def __call__(self, rng, size):
        if size > self.left and (self.way == "raise" or self.left == 0):
            raise StopIteration
        size = min(size, self.left)
        self.left -= size
        return rows(rng, size)


def same(a, b):
    """Assert that two runs have the same bits."""
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.queries, a.iterations, a.status) == (b.queries, b.iterations, b.status)
    assert (a.upper_gap_bound, a.lower_gap_bound) == (b.upper_gap_bound, b.lower_gap_bound)
    for column in set(Record._fields) - {"seconds"}:
        assert getattr(a.history, column).tobytes() == getattr(b.history, column).tobytes()


# What is gathered


@pytest.mark.parametrize("samples", [1, 100, ROWS_PER_DRAW, MANY])
def test_the_sums_are_those_of_all_rows_drawn(samples):
    source = Kept()
    gathering = Gathering(PROBLEM._replace(lower=Stream.of_rows(source, 4)), samples)
    for blocks in range(1, 30):
        gathering.draw(keys_of([0]))
        assert gathering.drawn.tolist() == [0, min(samples, int(rows_before(np.array(blocks))))]
        if gathering.done:
            break
    assert rows_before(np.array(blocks - 1)) < samples
    A, b = source.all
    assert b.size == samples
    lower, x = gathering.problem.lower, np.array([0.3, -0.2, 0.1, 0.0])
    expected, gradient = LeastSquares(A, b).value_and_gradient(x)
    assert lower.rows == samples
    assert lower.value(x) == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(lower.value_and_gradient(x)[1], gradient, rtol=1e-9, atol=1e-11)
    assert gathering.problem.upper is PROBLEM.upper


def test_only_streams_of_rows_and_squares_are_summable():
    by_hand = Stream(rows, lambda x, batch: (0.0, np.zeros(4)), 4, convex=True)
    assert is_summable(STREAM)
    assert not any(map(is_summable, (by_hand, Stream.of_rows(rows, 4, "huber"), SquaredNorm(), 2.0 * SquaredNorm())))


def test_what_was_gathered_is_stored_and_restored_bit_for_bit():
    problem = Problem(STREAM, FLAT, L1Ball(5.0))
    whole, second = Gathering(problem, MANY), Gathering(problem, MANY)
    while not whole.done:
        whole.draw(keys_of([1]))
        other = Gathering(problem, MANY)
        second.draw(keys_of([1]))
        other.restore(second.stored())
        second = other
    assert second.done
    for name in ("upper", "lower"):
        first, again = (getattr(each.problem, name) for each in (whole, second))
        assert first.quadratic.tobytes() == again.quadratic.tobytes()
        assert (first.constant, first.rows, first.roundings) == (again.constant, again.rows, again.roundings)


# Answers


def test_the_answer_is_as_near_as_least_squares_on_as_many_samples():
    ours, theirs = [], []
    for seed in range(8):
        result = minimize(PROBLEM, ActiveSet(samples=2000), seed=seed)
        assert result.status is Status.SOLVED
        assert result.queries.lower == 2000
        A, b = rows(np.random.default_rng(100 + seed), 2000)
        ours.append(np.linalg.norm(result.x - TRUTH))
        theirs.append(np.linalg.norm(np.linalg.lstsq(A, b, rcond=None)[0] - TRUTH))
    assert np.mean(ours) <= 3.0 * np.mean(theirs)
    assert np.mean(theirs) <= 3.0 * np.mean(ours)


def test_more_samples_bring_it_nearer():
    errors = [
        np.mean([np.linalg.norm(minimize(PROBLEM, ActiveSet(samples=n), seed=s).x - TRUTH) for s in range(4)])
        for n in (100, 10_000)
    ]
    assert errors[1] <= 0.3 * errors[0]


def test_an_answer_at_the_boundary_is_that_of_the_expectation():
    result = minimize(Problem(SquaredNorm(), STREAM, L1Ball(1.0)), ActiveSet(samples=50_000))
    expected = minimize(Problem(SquaredNorm(), LeastSquares(2.0 * MIXING, 2.0 * MIXING @ TRUTH), L1Ball(1.0)), "active-set")
    np.testing.assert_allclose(result.x, expected.x, atol=0.03)


def test_bounds_are_those_of_fresh_samples_and_hold():
    for seed in range(5):
        result = minimize(PROBLEM, max_queries=20_000, seed=seed)
        assert result.method.name == "active-set"
        assert result.certificate.confidence == 0.95
        assert mean_of(result.x) <= result.lower_gap_bound
        assert abs(result.lower - 0.5 * NOISE**2 - mean_of(result.x)) <= 2.0 * result.certificate.lower_error
        assert np.isinf(result.certificate.ceiling)  # nothing of samples proves a minimiser of the expectation
        assert "f* between" not in str(result)


def test_both_levels_may_be_streams():
    problem = Problem(STREAM, FLAT, L1Ball(5.0))
    result = minimize(problem, "active-set", max_queries=60_000)
    assert result.status is Status.SOLVED
    assert result.queries.upper == result.queries.lower > 0
    assert mean_of_flat(result.x) <= 1e-3
    assert mean_of(result.x) <= 1e-2  # the truth is a minimiser of both
    certificate = certify(problem, result, samples=20_000)
    assert certificate.lower_gap_bound >= mean_of_flat(result.x)


def test_the_upper_level_alone_may_be_a_stream():
    lower = LeastSquares([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]], [1.0, -1.5])
    result = minimize(Problem(STREAM, lower, L1Ball(5.0)), "active-set", max_queries=30_000)
    assert result.lower <= 1e-10
    assert mean_of(result.x) <= 1e-2
    assert result.queries.lower % 2 == 0


def test_near_ties_are_solved_for_the_means():
    epsilon = 0.05
    exact, near = (
        minimize(PROBLEM._replace(tolerance=tolerance), "active-set", max_queries=50_000) for tolerance in (0.0, epsilon)
    )
    assert near.status is Status.SOLVED
    assert near.upper < exact.upper
    assert mean_of(near.x) == pytest.approx(epsilon, rel=0.1)
    assert near.certificate.tolerance == epsilon


def test_g_alone_draws_nothing_of_f():
    by_hand = Stream(lambda rng, size: np.zeros(size), lambda x, batch: (0.5 * float(x @ x), x.copy()), 4, convex=True)
    finite = LeastSquares(MIXING, MIXING @ TRUTH)
    for upper in (by_hand, FLAT):
        for lower in (STREAM, finite):
            method = ActiveSet(level="lower")
            result = minimize(Problem(upper, lower, L1Ball(5.0)), method, max_queries=20_000, max_iterations=200)
            assert result.status is Status.SOLVED
            assert result.queries.upper == 0
            assert mean_of(result.x) <= 1e-2


# Seeds, chunks and checkpoints


def test_the_seed_makes_the_run():
    first, second, other = (minimize(PROBLEM, ActiveSet(samples=MANY), seed=seed) for seed in (3, 3, 4))
    same(first, second)
    assert first.x.tobytes() != other.x.tobytes()


def test_the_answer_does_not_depend_on_how_the_loop_is_cut():
    method, found = ActiveSet(samples=MANY), []
    plan = method.plan(PROBLEM)
    for chunk in (1, 2, 1000):
        state = method.start(PROBLEM, plan, PROBLEM.center)
        for _ in range(1000):
            method.advance(PROBLEM, state, plan, chunk, keys_of([5]))
            if method.finished(state):
                break
        found.append((state.x.tobytes(), int(state.iteration[0]), method.spent(state).tolist()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("stop", [1, 2, 3, 4, 6])
def test_a_run_that_is_stopped_while_it_draws_or_later_resumes_bit_for_bit(stop, both, tmp_path):
    problem, method = Problem(STREAM, FLAT, L1Ball(5.0)) if both else PROBLEM, ActiveSet(samples=MANY)
    arguments = {"checkpoint": tmp_path / "run.npz", "seed": 2, "max_queries": 200_000}
    whole = minimize(problem, method, seed=2, max_queries=200_000, max_iterations=500)
    stopped = minimize(problem, method, max_iterations=stop, **arguments)
    assert stopped.status is Status.ITERATIONS
    assert stopped.iterations == stop
    resumed = minimize(problem, method, max_iterations=500, **arguments)
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert (resumed.queries, resumed.iterations, resumed.status) == (whole.queries, whole.iterations, whole.status)
    same(minimize(problem, method, max_iterations=500, **arguments), resumed)  # a finished run is just read


def test_a_run_that_a_callback_stops_resumes_bit_for_bit(tmp_path):
    seen, arguments = [], {"checkpoint": tmp_path / "run.npz", "seed": 2}
    method = ActiveSet(samples=MANY)
    whole = minimize(PROBLEM, method, seed=2)
    stopped = minimize(PROBLEM, method, callback=lambda s: seen.append(s) or len(seen) == 3, **arguments)
    assert stopped.status is Status.CALLBACK
    same(minimize(PROBLEM, method, **arguments), whole)


# Ends and budgets


@pytest.mark.parametrize("way", ["raise", "fewer"])
@pytest.mark.parametrize("count", [3000, ROWS_PER_DRAW + 2000, MANY])
def test_a_source_that_ends_is_used_to_its_end(count, way):
    source = Limited(count, way)
    result = minimize(PROBLEM._replace(lower=Stream.of_rows(source, 4)), ActiveSet(samples=100_000))
    assert result.status is Status.SOLVED
    assert result.success
    if way == "fewer":
        assert source.left == 0
    # The rest was for the record of the first point; a source that returns nothing at its end keeps what a block lacks.
    assert (0.8 if way == "fewer" else 0.4) * count <= result.queries.lower <= count
    assert np.linalg.norm(result.x - TRUTH) <= 5.0 * NOISE * np.sqrt(6.25 / count)


def test_a_file_or_loader_that_ends_within_a_block_is_used_to_its_end():
    A, b = rows(np.random.default_rng(0), 1000)
    source = sources.Rows([(A[i : i + 64], b[i : i + 64]) for i in range(0, 1000, 64)])
    result = minimize(PROBLEM._replace(lower=Stream.of_rows(source, 4)), "active-set", max_queries=50_000)
    assert result.status is Status.SOLVED
    assert result.queries.lower >= 700


def test_a_source_that_has_nothing_left_for_the_method_keeps_the_first_point():
    source = Limited(240, "fewer")  # all for the record of the first point
    result = minimize(PROBLEM._replace(lower=Stream.of_rows(source, 4)), ActiveSet(samples=1000))
    assert result.status is Status.ENDED
    assert result.queries.lower == 0
    gathering = Gathering(PROBLEM._replace(lower=Stream.of_rows(Limited(0, "raise"), 4)), 100)
    with pytest.raises(EndOfStream, match="has no samples"):
        gathering.draw(keys_of([0]))


@pytest.mark.parametrize("budget", [60, 1000, 9000, 30_000])
def test_no_more_samples_are_drawn_than_are_allowed(budget):
    lower = LeastSquares([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]], [1.0, -1.5])
    for problem in (PROBLEM, Problem(STREAM, FLAT, L1Ball(5.0)), Problem(STREAM, lower, L1Ball(5.0))):
        result = minimize(problem, "active-set", max_queries=budget)
        assert result.queries.total <= budget
        assert result.status in (Status.QUERIES, Status.SOLVED)
        assert problem.domain.contains(result.x)
        if budget >= 1000:
            assert result.status is Status.SOLVED
            assert result.queries.total >= 0.5 * budget  # a budget is there to be used


def test_the_samples_follow_from_the_budget_or_are_given():
    assert minimize(PROBLEM, ActiveSet(samples=700), max_queries=50_000).queries.lower == 700
    with pytest.raises(ValueError, match="`samples` must be a whole number ≥ 1, got 0"):
        ActiveSet(samples=0)


def test_no_record_is_made_while_samples_are_drawn():
    result = minimize(PROBLEM, ActiveSet(samples=20 * ROWS_PER_DRAW))
    assert result.history.iteration[0] == 0
    assert result.history.iteration[1] >= 20


# What is refused


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Problem(SquaredNorm(), Stream.of_rows(rows, 4, "huber"), L1Ball(1.0)), "the lower objective is another one"),
        (Problem(Stream.of_rows(rows, 4, "huber"), STREAM, L1Ball(1.0)), "the upper objective is another one"),
        (Problem(SquaredNorm(), 2.0 * STREAM, L1Ball(1.0)), "the lower objective is another one: take 'sbcgi' or 'ir-scg'"),
        (Problem(SquaredNorm(), STREAM, L2Ball(1.0)), "L2Ball is not known to be one: take 'sbcgi' or 'ir-scg'"),
        (Problem(SquaredNorm(), Stream.of_rows(rows, 5001), L1Ball(1.0)), "a stream of at most 5,000 variables.*not 5,001"),
    ],
)
def test_other_streams_are_refused_and_an_alternative_named(problem, message):
    with pytest.raises(ValueError, match=message):
        minimize(problem, "active-set", max_queries=1000)
