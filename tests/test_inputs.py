"""Bad input: every public callable refuses it, by the name of the argument, in words of its own."""

from __future__ import annotations

import math
import re
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse

import tiebreak
from tiebreak import METHODS, FiniteSum, L1Ball, LeastSquares, Problem, SquaredNorm, Stream, certify, data, minimize
from tiebreak.methods.parameters import parameters_of

RAW = ("ufunc", "inhomogeneous", "ARPACK", "could not convert", "unsupported operand", "not supported between", "LAPACK")


def refuses(name, make):
    """Check that a call raises an error of ours that names an argument, and nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, TypeError)) as raised:
            make()
    text = str(raised.value)
    assert re.search(rf"`{re.escape(name)}(\[\d\])?`", text), text
    assert not any(raw in text for raw in RAW), text


A, b = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]), np.array([1.0, 2.0])
RAGGED = [[1.0, 2.0], [3.0]]
MASKED = np.ma.masked_array(A, mask=A == 2.0)
NOT_NUMBERS = {"text": "1", "complex": 1j, "truth": True, "list": [1.0], "none": object(), "nan": math.nan}
NOT_ARRAYS = {
    "ragged": RAGGED,
    "masked": MASKED,
    "masked rows": list(MASKED),
    "text": [["1", "2"], ["3", "4"]],
    "complex": 1j * A,
    "nan": np.full((2, 3), np.nan),
    "object": object(),
    "tiny": 1e-310 * A,
    "huge": 1e200 * A,
}
NOT_VECTORS = {
    name: np.asarray(value)[0] if name in ("nan", "tiny", "huge", "complex") else value for name, value in NOT_ARRAYS.items()
}
NOT_VECTORS["masked"] = np.ma.masked_array(b, mask=[True, False])
NOT_FLAGS = {"yes": "yes", "one": 1, "none": object()}


def squares(x, indices):
    return 0.5 * float(x @ x), x.copy()


def nothing(rng, size):
    return rng.random(size)


known = partial(FiniteSum, 2, 3, squares)
TAKES_ARRAYS = {
    "LeastSquares A": ("A", lambda bad: LeastSquares(bad, b)),
    "Logistic A": ("A", lambda bad: tiebreak.Logistic(bad, [0, 1])),
    "Huber A": ("A", lambda bad: tiebreak.Huber(bad, b)),
    "SquaredCovariance A": ("A", lambda bad: tiebreak.SquaredCovariance(bad, [0, 1])),
    "DictionaryLoss A": ("A", lambda bad: tiebreak.DictionaryLoss(bad, np.ones((1, 3)))),
    "DictionaryLoss codes": ("codes", lambda bad: tiebreak.DictionaryLoss(A, bad)),
    "JointDictionaryLoss A": ("A", lambda bad: tiebreak.JointDictionaryLoss(bad)),
    "ConeDistance matrices": ("matrices", lambda bad: tiebreak.ConeDistance(bad, [[1.0]], "orthant")),
}
TAKES_VECTORS = {
    "LeastSquares b": ("b", lambda bad: LeastSquares(A, bad)),
    "LeastSquares sample_weight": ("sample_weight", lambda bad: LeastSquares(A, b, bad)),
    "Logistic y": ("y", lambda bad: tiebreak.Logistic(A, bad)),
    "SquaredNorm center": ("center", SquaredNorm),
    "SquaredCovariance sensitive": ("sensitive", lambda bad: tiebreak.SquaredCovariance(A, bad)),
}
TAKES_POINTS = {  # names for which small numbers are as good as any
    "Hull points": ("points", tiebreak.Hull),
    "Box lower": ("lower", lambda bad: tiebreak.Box(bad, [1.0, 1.0])),
    "L2Ball center": ("center", lambda bad: tiebreak.L2Ball(1.0, bad)),
    "value x": ("x", lambda bad: SquaredNorm().value(bad)),
    "lmo c": ("c", lambda bad: L1Ball(1.0).lmo(bad)),
    "split A": ("A", data.split),
    "Polytope A_ub": ("A_ub", lambda bad: tiebreak.Polytope(bad, [1.0, 1.0], bounds=(0.0, 1.0))),
    "Polytope b_ub": ("b_ub", lambda bad: tiebreak.Polytope(A, bad, bounds=(0.0, 1.0))),
    "Polytope bounds": ("bounds", lambda bad: tiebreak.Polytope(bounds=(bad, np.ones(3)))),
    "WeightedL1Ball weights": ("weights", lambda bad: tiebreak.WeightedL1Ball(bad, 1.0)),
    "GroupBall groups": ("groups", lambda bad: tiebreak.GroupBall(bad, 1.0)),
}
TAKES_NUMBERS = {
    "L1Ball radius": ("radius", L1Ball),
    "L2Ball radius": ("radius", tiebreak.L2Ball),
    "Simplex scale": ("scale", tiebreak.Simplex),
    "NuclearBall radius": ("radius", lambda bad: tiebreak.NuclearBall((2, 2), bad)),
    "KSparse k": ("k", lambda bad: tiebreak.KSparse(bad, 1.0, 3)),
    "Birkhoff rows": ("rows", tiebreak.Birkhoff),
    "Huber delta": ("delta", lambda bad: tiebreak.Huber(A, b, bad)),
    "power scale": ("scale", lambda bad: tiebreak.power(bad, 1.0)),
    "power exponent": ("exponent", lambda bad: tiebreak.power(1.0, bad)),
    "power shift": ("shift", lambda bad: tiebreak.power(1.0, 1.0, bad)),
    "constant value": ("value", tiebreak.constant),
    "FiniteSum n": ("n", lambda bad: FiniteSum(bad, 3, squares)),
    "FiniteSum floor": ("floor", lambda bad: known(floor=bad)),
    "FiniteSum strong_convexity": ("strong_convexity", lambda bad: known(strong_convexity=bad)),
    "Stream floor": ("floor", lambda bad: Stream(nothing, squares, 3, floor=bad)),
    "Theory confidence": ("confidence", lambda bad: tiebreak.Theory(confidence=bad)),
    "CappedSimplex cap": ("cap", lambda bad: tiebreak.CappedSimplex(1.0, bad, 3)),
    "Scaled factor": ("factor", lambda bad: tiebreak.Scaled(bad, SquaredNorm())),
    "dictionary noise": ("noise", lambda bad: data.dictionary(noise=bad)),
    "split seed": ("seed", lambda bad: data.split(np.eye(6), seed=bad)),
}
TAKES_FLAGS = {
    "Polytope warm_start": ("warm_start", lambda bad: tiebreak.Polytope(bounds=(np.zeros(2), np.ones(2)), warm_start=bad)),
    "Rows repeat": ("repeat", lambda bad: tiebreak.sources.Rows([A], bad)),
    "JointDictionaryLoss sums": ("sums", lambda bad: tiebreak.JointDictionaryLoss(A, bad)),
    "FiniteSum convex": ("convex", lambda bad: known(convex=bad)),
}


def cases(callables, values):
    return [
        pytest.param(name, partial(make, value), id=f"{where}-{kind}")
        for where, (name, make) in callables.items()
        for kind, value in values.items()
    ]


ordinary = {name: value for name, value in NOT_ARRAYS.items() if name not in ("tiny", "huge")}


@pytest.mark.parametrize(
    ("name", "make"),
    [
        *cases(TAKES_ARRAYS, NOT_ARRAYS),
        *cases(TAKES_VECTORS, NOT_VECTORS),
        *cases(TAKES_POINTS, ordinary),
        *cases(TAKES_NUMBERS, NOT_NUMBERS),
        *cases(TAKES_FLAGS, NOT_FLAGS),
    ],
)
def test_bad_arguments_are_refused_by_name(name, make):
    refuses(name, make)


def bad_values(parameter):
    """Return values that make no sense for a parameter of a method, by what it is declared as."""
    limits = getattr(parameter.check, "keywords", {})
    match parameter.kind:
        case "int":
            return ["1", limits["least"] - 1, -1, 1.5, True, math.nan, [1], 1j]
        case "float":
            below = [] if limits["above"] is limits["least"] is None else [-1.0]
            return ["1", True, math.nan, math.inf, [1.0], 1j, *below]
        case "number or function of t":
            above = [] if math.isinf(limits["largest"]) else [1.5]
            return ["1", -1.0, True, math.nan, math.inf, [0.1], np.array([0.1, 0.2]), 1j, object(), *above]
        case "bool":
            return ["yes", 1, 0.0, []]
    return {
        "solver": ["pavr", tiebreak.PAVR, tiebreak.FISTA(level="lower"), tiebreak.SampleAverage(), 3],
        "initial": ["fista", tiebreak.FISTA, tiebreak.FISTA(level="upper"), tiebreak.StormFW(), 3],
        "settle": ["fista", tiebreak.FISTA, tiebreak.FISTA(level="upper"), tiebreak.StormFW(), True, 3],
        "preset": ["papier", 3, ["paper"]],
        "level": ["Lower", None, 3, ["upper"]],
        "theory": ["auto", 0.1, {"confidence": 0.9}],
        "smoothness": [
            "1",
            1.0,
            (1.0,),
            (1.0, 0.0),
            (1.0, math.nan),
            ("1", 1.0),
            (True, 1.0),
            {1.0, 2.0},
            (1.0, 1.0, -1.0, 0.0),
        ],
    }[parameter.name]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_each_wrong_parameter_of_each_method_is_named(method):
    for parameter in parameters_of(method):
        wrong = bad_values(parameter)
        if parameter.default is not None and parameter.name != "initial":
            wrong = [*wrong, None]
        for value in wrong:
            refuses(parameter.name, lambda: method(**{parameter.name: value}))


BAD_SCHEDULES = [
    lambda t: "0.1",
    lambda t: 0.1j,
    lambda t: [0.1, 0.2],
    lambda t: np.full(3, 0.1),
    lambda t: None,
    lambda t: -0.1,
    lambda t: math.nan,
    lambda t: 1.0 / t,
    lambda t: {}[t],
]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_schedules_that_return_no_numbers_are_named_before_anything_is_computed(method):
    problem = Problem(known(convex=True, lipschitz=1.0), known(convex=True, lipschitz=1.0, floor=0.0), L1Ball(1.0))
    for name in [each.name for each in parameters_of(method) if each.kind == "number or function of t"]:
        if method in (tiebreak.MNG, tiebreak.BiGSAM):  # which need a strongly convex quadratic
            problem = problem._replace(upper=SquaredNorm())
        for schedule in BAD_SCHEDULES:
            refuses(name, lambda: minimize(problem, method(**{name: schedule}), max_queries=10_000))


def test_a_number_of_all_iterations_is_not_taken_for_that_of_each():
    values = tiebreak.schedules.evaluate(lambda t: 1.0 / (1.0 + np.max(t)), np.arange(4), "step")
    np.testing.assert_allclose(values, 1.0 / np.arange(1, 5))


SMALL = Problem(SquaredNorm(), LeastSquares(A, b), L1Ball(2.0))
ARGUMENTS = {
    "problem": ["p", (SquaredNorm(), SquaredNorm(), L1Ball(1.0))],
    "method": ["sbcgx", 3, None],
    "max_queries": ["100", 0, 1.5, True],
    "max_iterations": ["100", 0, True],
    "time_limit": ["1", 0.0, -1.0, math.nan, True],
    "tol": [1e-3, "ab", (1e-3,), (1e-3, -1.0), ("1", "1"), (math.nan, 1.0), (True, True)],
    "x0": [RAGGED, "abc", np.ones(2), [9.0, 9.0, 9.0], np.ma.masked_array(np.zeros(3), mask=[1, 0, 0]), [1j, 0, 0]],
    "seed": ["1", -1, 0.5, True],
    "callback": [3, "print"],
    "checkpoint": [3, "/no/such/folder/run.npz"],
    "confidence": ["0.9", 0.0, 1.0, 95, -0.5, math.nan, True],
    "progress": ["yes", 1],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_each_wrong_argument_of_minimize_is_named(name):
    for value in ARGUMENTS[name]:
        arguments = {"problem": SMALL, "max_queries": 1000, name: value}
        refuses(name, lambda: minimize(**arguments))


def test_each_wrong_argument_of_certify_is_named():
    for name, value in [
        ("problem", 3),
        ("x", RAGGED),
        ("x", np.ma.masked_array(np.zeros(3), mask=[1, 0, 0])),
        ("x", "abc"),
        ("bundle", "2"),
        ("bundle", True),
        ("points", [RAGGED]),
        ("points", 3),
        ("samples", 100),
        ("floors", 3),
    ]:
        arguments = {"problem": SMALL, "x": np.zeros(3), name: value}
        refuses(name, lambda: certify(**arguments))


@pytest.mark.parametrize("level", ["upper", "lower"])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_nan_written_into_data_afterwards_is_found_before_anything_is_computed(level, kind):
    matrix = kind(A.copy())
    objective = LeastSquares(matrix, b)
    stored = objective.matrix.array if kind is np.asarray else objective.matrix.data
    stored.flat[0] = math.nan
    problem = SMALL._replace(**{level: 2.0 * objective + objective})
    for call in (lambda: minimize(problem, max_queries=1000), lambda: certify(problem, np.zeros(3))):
        refuses(level, call)


def spoiled(kind, attribute, value):
    matrix = kind(A)
    getattr(matrix, attribute)[-1] = value
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        spoiled(scipy.sparse.csr_array, "indptr", 9),
        spoiled(scipy.sparse.csr_array, "indices", 7),
        spoiled(scipy.sparse.csr_array, "indices", -1),
        spoiled(scipy.sparse.csc_array, "indptr", 9),
        spoiled(scipy.sparse.csc_array, "indices", 7),
        spoiled(scipy.sparse.bsr_array, "indices", 7),
        spoiled(scipy.sparse.coo_array, "row", 7),
        spoiled(scipy.sparse.coo_array, "col", -1),
        spoiled(scipy.sparse.csr_array, "data", math.nan),
        scipy.sparse.csr_array(1e-310 * A),
        scipy.sparse.csr_array(1j * A),
        scipy.sparse.coo_array(b),
    ],
)
def test_sparse_matrices_that_are_none_are_refused(matrix):
    refuses("A", lambda: LeastSquares(matrix, b))


def test_data_of_zeros_and_of_any_usual_size_are_taken():
    for factor in (0.0, 1e-130, 1.0, 1e130):
        assert math.isfinite(LeastSquares(factor * A, factor * b).value(np.zeros(3)))


def test_knowledge_that_makes_no_sense_is_refused_where_it_is_given():
    for bad in (-1, -math.inf, math.inf, "1", True, 1j):
        refuses("lipschitz", lambda: known(lipschitz=bad))
    refuses("strong_convexity", lambda: known(strong_convexity=-1))
    refuses("floor", lambda: known(floor=math.inf))
    assert math.isnan(known().lipschitz)


@pytest.mark.parametrize("steps", [[0.01] * 500, np.full(500, 0.01)], ids=["list", "array"])
def test_a_schedule_needs_no_more_entries_than_the_run_has_iterations(steps):
    method = tiebreak.SBCGI(step=lambda t: steps[t], slack=0.0)
    result = minimize(SMALL, method, max_iterations=500, x0=np.zeros(3))
    assert result.iterations == 500
    assert result.success


def test_a_schedule_that_ends_within_the_budget_is_named_with_the_iteration():
    steps = [0.01] * 100
    method = tiebreak.SBCGI(step=lambda t: steps[t], slack=0.0)
    for limit, first in ((101, 100), (500, 128)):
        with pytest.raises(ValueError, match=f"`step` raised IndexError at iteration {first}: list index out of range"):
            minimize(SMALL, method, max_iterations=limit, x0=np.zeros(3))


def test_a_schedule_that_ends_between_the_iterations_looked_at_ends_the_run_with_what_was_found():
    steps = [0.01] * 9500
    method = tiebreak.SBCGI(step=lambda t: steps[t], slack=0.0, preset="paper")
    with pytest.warns(RuntimeWarning, match="`step` raised IndexError at iteration 9500"):
        result = minimize(SMALL, method, max_queries=10_000, x0=np.zeros(3))
    assert result.iterations == 9500
    assert result.status is tiebreak.Status.FAILED


def test_other_results_to_draw_must_be_results():
    result = minimize(SMALL, max_queries=1000)
    refuses("foo", lambda: result.plot(foo=3))


def test_estimators_refuse_what_a_mask_hides_and_flags_that_are_none():
    learn = pytest.importorskip("tiebreak.learn")
    X, y = np.random.default_rng(0).standard_normal((6, 4)), np.arange(6.0)
    hidden, targets = np.ma.masked_array(X, mask=X > 1.0), np.ma.masked_array(y, mask=y > 3.0)
    refuses("X", lambda: learn.MinNormRegressor().fit(hidden, y))
    refuses("y", lambda: learn.MinNormRegressor().fit(X, targets))
    refuses("y_val", lambda: learn.TieBreakRegressor().fit(X, y, X_val=X, y_val=targets))
    refuses("X", lambda: learn.ContinualDictionaryLearning().fit(hidden))
    refuses("fit_intercept", lambda: learn.MinNormRegressor(fit_intercept="no").fit(X, y))


def test_the_first_of_few_bad_numbers_in_many_is_named_and_all_are_counted():
    A = np.zeros((1000, 300))
    A[1, 7], A[999, 299] = 1.0, np.nan
    A[600, 3] = np.inf
    with pytest.raises(ValueError, match=r"`A` must hold finite numbers, got inf at \[600, 3\] \(2 such entries\)"):
        tiebreak.LeastSquares(A, np.ones(1000))
