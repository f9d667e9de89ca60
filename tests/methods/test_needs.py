"""What a method needs and a problem lacks is refused, by a message that names both and says what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import make_objective

from tiebreak import (
    Birkhoff,
    Columns,
    FiniteSum,
    Hull,
    L1Ball,
    L2Ball,
    LeastSquares,
    Polytope,
    Problem,
    Product,
    SquaredCovariance,
    SquaredNorm,
    minimize,
)
from tiebreak.engine import interpreted
from tiebreak.methods import (
    AIRG,
    DBGD,
    IRCG,
    IRFSCG,
    IRSCG,
    METHODS,
    MNG,
    PBAPG,
    SBCGF,
    SBCGI,
    ActiveSet,
    ARIPSeG,
    BiFISTA,
    BiGSAM,
    FCBiO,
    SwitchingGradient,
)

LOWER = make_objective("least-squares", seed=2)
PROJECTING = {"arip-seg", "dbgd-sto", "dbgd", "big-sam", "a-irg", "mng", "pb-apg", "bi-fista", "fc-bio", "fista", "agm-bio"}
PROJECTING |= {"bisec-bio", "switching-gradient", "dbgd-storm", "dbgd-spider", "pavr"}


@pytest.fixture(autouse=True)
def without_compiling():
    with interpreted():
        yield


def asked(objective, **known):
    """The same objective as a Python function that knows what is said here alone."""
    return FiniteSum(objective.n_samples, objective.dimension, lambda x, i: objective.value_and_gradient(x, i), **known)


def domains():
    points = np.random.default_rng(0).standard_normal((12, 4))
    cube = Polytope(A_ub=np.vstack([np.eye(4), -np.eye(4)]), b_ub=np.ones(8))
    return {
        "Birkhoff": Birkhoff(2),
        "Hull": Hull(points),
        "Polytope": cube,
        "Hull in Columns": Columns(Hull(points[:, :2]), (2, 2)),
        "Hull in Product": Product(a=(L1Ball(1.0), 2), b=Product(c=Hull(points[:, :2]))),
    }


@pytest.mark.parametrize("kind", domains())
def test_methods_that_project_refuse_a_set_without_projection(kind):
    rng, domain = np.random.default_rng(1), domains()[kind]
    upper, lower = (LeastSquares(rng.standard_normal((9, 4)), rng.standard_normal(9)) for _ in range(2))
    problem = Problem(upper, lower, domain)
    assert {name for name, cls in METHODS.items() if cls.projects} == PROJECTING
    for name, cls in METHODS.items():
        if name in PROJECTING:
            missing = (
                f"the method {name!r} needs the projection onto the domain, and {kind.split()[0]} has none: take a method"
            )
            with pytest.raises(ValueError, match=f"^{missing} that does without"):
                cls().for_problem(problem)
        elif cls.finite:
            cls().for_problem(problem)
    with pytest.raises(ValueError, match="the method 'fc-bio' needs the projection"):  # not that which seeks its first point
        minimize(problem, "fc-bio", max_iterations=3)
    assert minimize(problem, "cg-bio", max_iterations=3).success


def test_methods_for_convex_objectives_refuse_others():
    rng = np.random.default_rng(3)
    lower = LeastSquares(rng.standard_normal((9, 4)), rng.standard_normal(9))
    upper = SquaredCovariance(rng.standard_normal((9, 4)), rng.integers(0, 2, 9).astype(float))
    assert upper.convex is False
    problem = Problem(upper, lower, L1Ball(1.0))
    refusing = {"active-set", "agm-bio", "big-sam", "bisec-bio", "a-irg", "fc-bio", "switching-gradient", "pavr"}
    assert {name for name, cls in METHODS.items() if cls.convex} == refusing
    for name in METHODS:
        if name in refusing:
            with pytest.raises(
                ValueError, match=f"^the method {name!r} needs a convex upper objective, and SquaredCovariance is not: "
            ):
                minimize(problem, name, max_iterations=3)
    assert minimize(problem, "cg-bio", max_iterations=3).success


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.near_ties])
def test_methods_for_exact_ties_refuse_near_ones(name):
    for allowed in ({"tolerance": 0.1}, {"keep": 0.9}):
        problem, ((word, number),) = Problem(SquaredNorm(), LOWER, L1Ball(1.0), **allowed), allowed.items()
        message = f"^the method '{name}' is for exact ties, and the problem has {word}={number}: take 'auto', which chooses"
        with pytest.raises(ValueError, match=message):
            minimize(problem, name, max_iterations=3)


def test_the_first_estimate_of_a_stream_needs_enough_samples_for_its_error():
    problem = Problem(SquaredNorm(), LOWER, L1Ball(1.0))
    with pytest.raises(ValueError, match="^`anchor_samples` must be at least 8, for the error of g"):
        minimize(problem, SBCGI(anchor_samples=7), max_iterations=3)


def test_a_set_without_projection_is_not_said_to_have_one():
    problem = Problem(SquaredNorm(), make_objective("squared-norm", seed=1), Columns(Birkhoff(3), (9, 2)))
    with pytest.raises(ValueError, match="`x0` must lie in the domain, and it does not$"):
        minimize(problem, "sbcgf", x0=np.ones(18))


SMOOTH_UPPER = "needs a smoothness constant of the upper objective, and it has none (lipschitz = nan): give it one, or pass"
SMOOTH_LOWER = SMOOTH_UPPER.replace("upper", "lower")


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("dbgd", "floor", f"{SMOOTH_UPPER} step=... to DBGD, or take 'pb-apg' or 'bi-fista', which begin with an estimate"),
        ("dbgd", "lipschitz", "needs a lower bound of g*, and the lower objective knows none: pass floor=... to DBGD"),
        ("dbgd-sto", "", f"{SMOOTH_UPPER} step=... to DBGDSto"),
        (
            "dbgd-sto",
            "lipschitz",
            "needs a lower bound of g*, and the lower objective knows none: pass floor=... to DBGDSto",
        ),
        ("big-sam", "", f"{SMOOTH_LOWER} step=... to BiGSAM"),
        ("a-irg", "", f"{SMOOTH_LOWER} step=... to AIRG"),
        ("switching-gradient", "", f"{SMOOTH_LOWER} slack=... to SwitchingGradient"),
        ("fc-bio", "", SMOOTH_UPPER.replace("pass", "take 'pb-apg' or 'bi-fista', which begin with an estimate")),
        ("big-sam", "lipschitz", "needs an upper objective that is strongly convex, and it is not known to be"),
        ("bisec-bio", "lipschitz", "needs an upper objective whose level sets are balls, such as SquaredNorm()"),
        ("mng", "lipschitz", "needs an upper objective that is quadratic and strongly convex, such as SquaredNorm()"),
    ],
)
def test_unknown_constants_are_named(name, known, message):
    facts = {"lipschitz": 4.0} if known == "lipschitz" else {"floor": 0.0} if known == "floor" else {}
    upper, lower = (asked(make_objective("least-squares", seed=seed), convex=True, **facts) for seed in (1, 2))
    with pytest.raises(ValueError) as caught:
        minimize(Problem(upper, lower, L1Ball(2.0)), name, x0=np.zeros(18), max_iterations=2)
    assert str(caught.value).startswith(f"the method {name!r} {message}")


@pytest.mark.parametrize("method", [MNG(), BiGSAM()], ids=lambda method: method.name)
@pytest.mark.parametrize("seed", range(6))
def test_a_loss_of_two_equal_columns_is_not_strongly_convex(method, seed):
    A = np.random.default_rng(seed).standard_normal((30, 18))
    strong, b = LeastSquares(A, np.ones(30)), np.ones(30)
    A = A.copy()
    A[:, 1] = A[:, 0]
    assert strong.strong_convexity > 0.01
    method.for_problem(Problem(strong, LOWER, L1Ball(2.0)))
    with pytest.raises(ValueError, match="strongly convex"):
        method.for_problem(Problem(LeastSquares(A, b), LOWER, L1Ball(2.0)))


def test_fc_bio_takes_python_functions_with_known_constants():
    objectives = [make_objective("least-squares", seed=seed) for seed in (1, 2)]
    problem = Problem(*objectives, L1Ball(2.0))
    slow = Problem(*(asked(each, convex=True, lipschitz=each.lipschitz) for each in objectives), problem.domain)
    method = FCBiO(inner_iterations=5)
    start = problem.center  # FISTA, which would seek it, stays within the set where functions are Python's
    found, expected = (minimize(each, method, x0=start, max_iterations=30) for each in (slow, problem))
    np.testing.assert_allclose(found.x, expected.x, atol=1e-12)


@pytest.mark.parametrize("cls", [IRCG, IRSCG, IRFSCG], ids=lambda cls: cls.name)
def test_the_regularisation_may_be_a_function_of_one_iteration(cls):
    problem = Problem(make_objective("least-squares", seed=1), LOWER, L1Ball(2.0))
    one, many = (lambda t: 1 / math.sqrt(t + 1)), (lambda t: 1 / np.sqrt(t + 1))
    found, expected = (minimize(problem, cls(regularization=sigma), max_iterations=20) for sigma in (one, many))
    np.testing.assert_allclose(found.x, expected.x, atol=1e-14)


@pytest.mark.parametrize(
    "method",
    [
        AIRG(step=lambda t: 0.01 * t, regularization=1.0),
        ARIPSeG(step=0.01, penalty=lambda t: 1.0 * t),
        SwitchingGradient(step=lambda t: 0.01 * t, slack=0.1),
    ],
    ids=lambda method: method.name,
)
def test_a_first_weight_of_zero_leaves_the_mean_to_later_points(method):
    problem = Problem(make_objective("least-squares", seed=1), LOWER, L1Ball(2.0))
    x0 = problem.domain.project(np.ones(18))
    assert minimize(problem, method, x0=x0, max_iterations=1).x.tolist() == x0.tolist()
    result = minimize(problem, method, x0=x0, max_iterations=20)
    assert result.success
    assert np.abs(result.x - x0).max() > 1e-3


def test_the_active_set_of_the_lower_level_asks_nothing_of_the_upper_one():
    hill = FiniteSum(3, 18, lambda x, indices: (-0.5 * float(x @ x), -x), convex=False)
    problem = Problem(hill, LOWER, L1Ball(2.0))
    with pytest.raises(ValueError, match="needs a convex upper objective"):
        minimize(problem, "active-set")
    alone = minimize(problem, ActiveSet(level="lower"))
    assert alone.lower_gap_bound < 1e-12
    begun = minimize(problem, SBCGF(initial=ActiveSet(level="lower")), max_queries=2000)
    assert begun.history.lower.min() == pytest.approx(alone.lower, abs=1e-12)


@pytest.mark.parametrize("allowed", [{}, {"tolerance": 0.1}, {"keep": 0.9}])
def test_what_the_active_set_cannot_take_is_sent_to_methods_that_take_it(allowed):
    problem = Problem(SquaredNorm(), LOWER, L2Ball(1.0), **allowed)
    with pytest.raises(ValueError, match="L2Ball is not known to be one: take 'pb-apg' or 'cg-bio'$"):
        minimize(problem, "active-set")
    for method in ("auto", "pb-apg", "cg-bio"):
        assert minimize(problem, method, max_iterations=3).success


def test_a_penalty_of_ones_own_is_for_exact_ties():
    with pytest.raises(ValueError, match="^`penalty` must be left out where the problem has keep=0.9: it is sought then$"):
        minimize(Problem(SquaredNorm(), LOWER, L1Ball(1.0), keep=0.9), PBAPG(penalty=2.0), max_iterations=3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ARIPSeG(average_power="r"), "`average_power` must be a finite number, got 'r'"),
        (lambda: DBGD(alpha=-1.0), "`alpha` must be a finite number > 0, got -1.0"),
        (lambda: DBGD(floor=math.nan), "`floor` must be a finite number, got nan"),
        (lambda: IRSCG(strength=0.0), "`strength` must be a finite number > 0, got 0.0"),
        (lambda: FCBiO(inner_iterations=0), "`inner_iterations` must be a whole number ≥ 1, got 0"),
        (lambda: FCBiO(tolerance=-1e-3), "`tolerance` must be a finite number > 0, got -0.001"),
        (lambda: BiFISTA(inertia=0), "`inertia` must be a finite number > 0, got 0"),
        (lambda: minimize(Problem(SquaredNorm(), LOWER, L1Ball(1.0)), MNG(step=0.0)), "`step` of MNG must be positive"),
    ],
)
def test_parameters_that_make_no_sense_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
