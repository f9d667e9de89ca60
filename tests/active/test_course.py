"""The way of λ: g alone, to the exact tie, and to a level of g."""

from __future__ import annotations

import math

import numpy as np
import pytest
from stated import assert_accurate

from tiebreak import Huber, L1Ball, LeastSquares, Logistic, Problem, Simplex, SquaredNorm, Status, minimize
from tiebreak.active.course import Course
from tiebreak.active.levels import Level
from tiebreak.engine import interpreted


@pytest.fixture(autouse=True)
def in_python():
    with interpreted():
        yield


def data(seed: int = 0, n: int = 4, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


PROBLEM = Problem(LeastSquares(*data(1, 9)), LeastSquares(*data(2)), L1Ball(1.0))
NORM = Problem(SquaredNorm(), LeastSquares([[1.0, 3.0]], [1.0]), L1Ball(2.0))  # the tie is (0.1, 0.3)


def followed(problem: Problem, x: np.ndarray | None = None, alone: bool = False) -> tuple[Course, list[tuple]]:
    """Return a course at its end, and (λ, f, g) where it arrived."""
    course, arrivals = Course(problem, problem.center if x is None else x, alone), []
    for _ in range(1000):
        course.cycle()
        if course.arrived:
            x = course.solver.x
            arrivals.append((course.weight, problem.upper.value(x), problem.lower.value(x)))
        if course.finished:
            return course, arrivals
    raise AssertionError("it does not end")


def test_g_alone_comes_first_and_is_all_that_is_minimised_if_so_asked():
    course, arrivals = followed(PROBLEM, alone=True)
    assert [weight for weight, *_ in arrivals] == [math.inf]
    assert course.solver.passes[0] == 0
    _, both = followed(PROBLEM)
    assert both[0][0] == math.inf
    assert both[0][2] == pytest.approx(arrivals[0][2], abs=1e-14)
    assert all(math.isfinite(weight) for weight, *_ in both[1:])


def test_a_tie_is_approached_by_growing_weights_along_which_f_grows_and_g_falls():
    course, arrivals = followed(PROBLEM)
    weights, f, g = np.array(arrivals[1:]).T
    assert len(weights) >= 2
    assert (np.diff(weights) > 0.0).all()
    assert (np.diff(f) > -1e-9).all()
    assert (np.diff(g) < 1e-12).all()
    assert np.array_equal(course.answer, course.solver.x)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3, 1e-1])
def test_a_level_is_bracketed_and_the_ends_are_mixed_to_a_point_on_it(epsilon):
    course, arrivals = followed(NORM._replace(tolerance=epsilon))
    assert course.bracket.inside is not None
    assert course.bracket.inside.g <= course.level
    if course.bracket.outside is not None:
        assert course.bracket.inside.weight > course.bracket.outside.weight
        assert course.bracket.inside.f >= course.bracket.outside.f
    g = NORM.lower.value(course.answer)
    assert g <= epsilon
    total = 1.0 - math.sqrt(2.0 * epsilon)  # x = (0.1, 0.3) (1 − √2ε)
    np.testing.assert_allclose(course.answer, total * np.array([0.1, 0.3]), rtol=1e-5)
    assert len(arrivals) <= 12


@pytest.mark.parametrize("f", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("g", [1e-12, 1.0, 1e12])
def test_weights_follow_the_units_of_both_levels(f, g):
    scaled = Problem(f * PROBLEM.upper, g * PROBLEM.lower, PROBLEM.domain)
    course, arrivals = followed(scaled)
    _, plain = followed(PROBLEM)
    assert len(arrivals) == len(plain)
    np.testing.assert_allclose([a[0] * g / f for a in arrivals[1:]], [a[0] for a in plain[1:]], rtol=1e-9)
    np.testing.assert_allclose(course.answer, followed(PROBLEM)[0].answer, atol=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 1e-2])
@pytest.mark.parametrize("offset", [1e-6, 1e-9, 1e-12])
def test_f_that_nearly_vanishes_in_the_middle_of_the_set_is_measured_elsewhere(offset, epsilon):
    """A centre of the norm that is nearly the origin changes the answer by no more than that."""
    lower, domain = LeastSquares(*data(0)), L1Ball(1.0)
    problem = Problem(SquaredNorm(np.zeros(8)), lower, domain, epsilon)
    expected = minimize(problem, "active-set")
    result = minimize(problem._replace(upper=SquaredNorm(np.full(8, offset))), "active-set")
    assert_accurate(result, f_unit=1.0)
    assert result.upper == pytest.approx(expected.upper, rel=1e-4 + 100.0 * offset)


@pytest.mark.parametrize("epsilon", [0.0, 1e-2])
@pytest.mark.parametrize("offset", [1e-6, 1e-9, 1e-12])
def test_g_that_nearly_vanishes_in_the_middle_of_the_set_is_measured_elsewhere(offset, epsilon):
    A, _ = data(3)
    upper, domain = SquaredNorm(np.linspace(0.0, 1.0, 8)), L1Ball(1.0)
    expected = minimize(Problem(upper, LeastSquares(A, np.zeros(4)), domain, epsilon), "active-set")
    result = minimize(Problem(upper, LeastSquares(A, np.full(4, offset)), domain, epsilon), "active-set")
    assert_accurate(result, g_unit=1.0)
    assert result.upper == pytest.approx(expected.upper, rel=1e-4 + 100.0 * offset)


@pytest.mark.parametrize("radius", [1.0, 1e2, 1e4, 1e7])
def test_g_that_is_least_in_the_middle_of_a_large_set(radius):
    """The corners of the set tell nothing of how much g varies where it matters."""
    for d in (1, 3):
        lower = LeastSquares(40.0 * np.vstack([np.eye(d), np.eye(d)]), np.repeat([2.0, -2.0], d))
        exact = minimize(Problem(SquaredNorm(np.full(d, -3.0)), lower, L1Ball(radius)), "active-set")
        np.testing.assert_allclose(exact.x, 0.0, atol=1e-5)
        assert_accurate(exact)
        near = minimize(Problem(SquaredNorm(np.full(d, -3.0)), lower, L1Ball(radius), 1e-2), "active-set")
        reach = math.sqrt(2e-2 * d) / 40.0  # g = 2 + 1600 ‖x‖² / 2 d
        np.testing.assert_allclose(near.x, -reach / math.sqrt(d), rtol=1e-3)
        assert_accurate(near)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
@pytest.mark.parametrize("seed", range(12))
def test_f_that_is_zero_in_the_middle_of_the_set_and_at_a_minimiser_of_g(seed, epsilon):
    """Nothing tells how much f varies but the minimiser of g that is found first, and f may be 0 there, too."""
    rng = np.random.default_rng(seed)
    A, a, B = rng.standard_normal((2, 6)), 0.5 * rng.standard_normal(2), rng.standard_normal((2, 6))
    problem = Problem(LeastSquares(B, np.zeros(2)), LeastSquares(A, a), L1Ball(2.0), epsilon)
    result = minimize(problem, "active-set", max_queries=2000)
    assert_accurate(result, f_unit=1.0)
    assert result.iterations <= 100


@pytest.mark.parametrize("epsilon", [1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("seed", range(4))
def test_a_level_is_found_in_few_stages_where_g_is_least_at_a_corner(seed, epsilon):
    """From some λ on x_λ is the corner, and g(x_λ) − g* is 0: it is no power of λ."""
    a = np.random.default_rng(seed).standard_normal(8)
    problem = Problem(LeastSquares(*data(1, 7)), LeastSquares(a[None], [3.0]), Simplex(1.0), epsilon)
    _, arrivals = followed(problem)
    assert len(arrivals) <= 30
    assert_accurate(minimize(problem, "active-set"))


@pytest.mark.parametrize("seed", [94, 184, 232, 286])
def test_a_mixture_ends_where_the_inner_end_is_nearly_on_the_level(seed, monkeypatch):
    calls, along = [], Level.along

    def counted(*arguments):
        calls.append(1)
        assert len(calls) < 5000, "a search along a line does not end"
        return along(*arguments)

    monkeypatch.setattr(Level, "along", counted)
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    A, B = rng.standard_normal((n, d)), rng.standard_normal((n + 1, d))
    a, b = rng.standard_normal(n), rng.standard_normal(n + 1)
    lower = LeastSquares(A, a)
    epsilon = 10.0 ** rng.uniform(-8, -1) * lower.value(np.ones(d) / d)
    result = minimize(Problem(Huber(B, b, delta=0.3), lower, L1Ball(1.0), epsilon), "active-set")
    assert_accurate(result)


@pytest.mark.parametrize("radius", [1.0, 1e-1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("kind", [Logistic, LeastSquares])
def test_the_level_is_kept_by_enough_to_be_proven_where_g_varies_little_beside_its_value(kind, radius):
    rng = np.random.default_rng(0)
    lower = kind(rng.standard_normal((6, 3)), np.sign(rng.standard_normal(6)))
    for domain in (Simplex(radius), L1Ball(radius)):
        result = minimize(Problem(SquaredNorm(np.full(3, radius)), lower, domain, 1e-3 * radius), "active-set")
        assert_accurate(result)


@pytest.mark.parametrize("rows", [1, 7, 20])
def test_levels_of_logistic_losses_are_kept_and_proven_to_be(rows):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 9))
        A, y = rng.standard_normal((rows, d)), np.where(rng.random(rows) < 0.5, 1.0, -1.0)
        domain = Simplex(1.0) if seed % 2 else L1Ball(1.0)
        problem = Problem(LeastSquares(*data(seed, 2, d)), Logistic(0.1 * A, y), domain)
        for share in (1e-6, 1e-3):
            near = problem._replace(tolerance=share * problem.lower.value(problem.center))
            result = minimize(near, "active-set", max_queries=10_000)
            assert result.within is True, (seed, share)
            assert result.upper_gap_bound <= 1e-6 * max(problem.upper.value(problem.center), result.upper), (seed, share)


@pytest.mark.parametrize("unit", [1e-16, 1.0, 1e16])
def test_f_that_is_zero_in_the_middle_of_the_set_where_every_point_is_near_enough(unit):
    A, _ = data(3, 7, 5)
    for lower in (Logistic(data(4, 1, 5)[0], [1.0]), LeastSquares(*data(5, 3, 5))):
        result = minimize(
            Problem(unit * LeastSquares(A, np.zeros(7)), lower, L1Ball(1.0), 1e3), "active-set", max_queries=4000
        )
        assert result.status is Status.SOLVED
        assert result.upper <= 1e-6 * unit
        assert result.within is True


def test_a_narrow_huber_loss_is_minimised_as_well_as_its_rounding_allows():
    """It is curved only where residuals are tiny, and the first weight is too large for f to be seen."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        lower = Huber(rng.standard_normal((1, 5)), 0.1 * rng.standard_normal(1), delta=1e-6)
        result = minimize(Problem(SquaredNorm(np.zeros(5)), lower, Simplex(1.0)), "active-set")
        assert_accurate(result, f_unit=1.0)


def test_a_course_that_was_stored_goes_on_with_the_same_bits():
    for problem in (
        PROBLEM,
        PROBLEM._replace(tolerance=1e-3),
        PROBLEM._replace(upper=Logistic(*labelled()), tolerance=1e-3),
    ):
        whole, _ = followed(problem)
        cycles = 0
        course = Course(problem, problem.center)
        while not course.finished:
            course.cycle()
            cycles += 1
            arrays = {name: array.copy() for name, array in course.stored().items()}
            course = Course(problem, np.zeros(8))
            course.restore(arrays)
            assert cycles < 1000
        assert course.answer.tobytes() == whole.answer.tobytes()
        assert course.weight == whole.weight


def labelled() -> tuple[np.ndarray, np.ndarray]:
    B, b = data(1, 9)
    return B, np.sign(b)


def test_hints_are_the_weight_that_bounds_f_best_and_where():
    course = Course(PROBLEM, PROBLEM.center)
    seen = set()
    while not course.finished:
        course.cycle()
        for weight, point in course.hints:
            assert course.arrived
            assert weight == course.weight
            seen.add(point is None)
        if not course.arrived:
            assert course.hints == ()
    assert seen <= {True, False}
    assert True in seen


def test_the_answer_of_a_near_tie_never_leaves_the_level_once_it_has_kept_it():
    problem = PROBLEM._replace(tolerance=1e-2)
    course, kept, values = Course(problem, problem.center), False, []
    while not course.finished:
        course.cycle()
        kept = kept or course.bracket.inside is not None
        if kept:
            values.append(problem.upper.value(course.answer))
            assert problem.lower.value(course.answer) <= course.floor + 1e-2
    assert values[-1] <= min(values) + 1e-9  # a closer look begins the search anew


@pytest.mark.parametrize("epsilon", [1e-13, 1e-14, 1e-15, 1e-16, 1e-18])
def test_a_tolerance_of_the_size_of_rounding_does_not_lead_back_to_any_minimiser_of_g(epsilon):
    A, a = data(0, 4)
    problem = Problem(PROBLEM.upper, LeastSquares(A, a), L1Ball(50.0))  # g* is 0
    exact, near = (minimize(each, "active-set") for each in (problem, problem._replace(tolerance=epsilon)))
    assert near.within is True
    assert near.upper <= exact.upper + 1e-5
    assert near.upper_gap_bound <= 1e-5


# From one course to the next


def ended(problem: Problem, memory: dict[str, np.ndarray] | None = None) -> tuple[Course, int]:
    """Return a course at its end, and how many cycles it took."""
    course = Course(problem, problem.center)
    if memory is not None:
        course.recall(memory)
    for cycles in range(1000):
        if course.finished:
            return course, cycles
        course.cycle()
    raise AssertionError("it does not end")


@pytest.mark.parametrize("upper", [PROBLEM.upper, Logistic(*labelled())], ids=["squares", "logistic"])
@pytest.mark.parametrize(("before", "after"), [(1e-2, 1e-3), (1e-3, 1e-2), (0.0, 1e-2), (1e-2, 0.0), (1e-2, 5.0)])
def test_a_course_continues_towards_another_level(before, after, upper):
    problem = PROBLEM._replace(upper=upper)
    first, _ = ended(problem._replace(tolerance=before))
    cold, cycles = ended(problem._replace(tolerance=after))
    warm, fewer = ended(problem._replace(tolerance=after), first.memory)
    unit = problem.upper.value(np.zeros(8))
    assert problem.upper.value(warm.answer) == pytest.approx(problem.upper.value(cold.answer), abs=2e-7 * unit)
    assert problem.lower.value(warm.answer) <= warm.floor + after + 1e-11
    assert fewer < cycles if upper is PROBLEM.upper else fewer < 1.5 * cycles  # along λ Newton's method costs more
    assert warm.tolerance == after


def test_a_course_that_is_recalled_for_its_own_level_is_at_its_end():
    for epsilon in (0.0, 1e-2):
        first, _ = ended(PROBLEM._replace(tolerance=epsilon))
        again, cycles = ended(PROBLEM._replace(tolerance=epsilon), first.memory)
        assert cycles == 0
        np.testing.assert_array_equal(again.answer, first.answer)
        assert again.solver.passes.tolist() == Course(PROBLEM, np.zeros(8)).solver.passes.tolist()


def test_a_level_that_does_not_bind_does_not_bind_when_it_is_larger():
    first, _ = ended(PROBLEM._replace(tolerance=50.0))
    again, cycles = ended(PROBLEM._replace(tolerance=100.0), first.memory)
    assert cycles == 0
    np.testing.assert_array_equal(again.answer, first.answer)


def test_a_share_that_is_kept_is_a_level_to_continue_towards():
    first, _ = ended(PROBLEM._replace(tolerance=1e-3))
    cold, _ = ended(PROBLEM._replace(keep=0.9))
    warm, _ = ended(PROBLEM._replace(keep=0.9), first.memory)
    assert warm.tolerance == pytest.approx(cold.tolerance, rel=1e-9)
    assert PROBLEM.upper.value(warm.answer) == pytest.approx(PROBLEM.upper.value(cold.answer), abs=1e-7)


def test_a_memory_serves_any_number_of_courses():
    first, _ = ended(PROBLEM._replace(tolerance=1e-2))
    memory = first.memory
    kept = {name: array.copy() for name, array in memory.items()}
    answers = [ended(PROBLEM._replace(tolerance=1e-3), memory)[0].answer.tobytes() for _ in range(2)]
    assert answers[0] == answers[1]
    for name, array in memory.items():
        np.testing.assert_array_equal(array, kept[name])


def test_there_is_nothing_to_remember_before_both_levels_are_known():
    course = Course(PROBLEM, PROBLEM.center)
    assert course.memory is None
    course.cycle()
    assert course.memory is None
    assert followed(PROBLEM, alone=True)[0].memory is None
