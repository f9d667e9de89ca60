"""Fair classifiers: the least unfairness at a proven price."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import tiebreak
from tiebreak.learn import FairClassifier

CRITERIA = ("demographic_parity", "equalized_odds")
ADULT = Path(os.environ.get("TIEBREAK_DATA", ""), "adult.mat")


def people(seed=0, n=80, d=4):
    """Features, labels, and attributes that features and labels tell of: two groups, four groups, an age."""
    rng = np.random.default_rng(seed)
    sex, town, age = rng.integers(2, size=n), rng.integers(4, size=n), rng.uniform(18.0, 80.0, n)
    bias = np.column_stack([sex, town == 1, town == 2, age / 40.0])
    X = rng.standard_normal((n, d)) + bias @ (0.6 * rng.standard_normal((4, d)))
    y = X.sum(axis=1) + 0.5 * sex + rng.logistic(size=n) > np.median(X.sum(axis=1))
    return X, y, {"binary": np.array(["f", "m"])[sex], "groups": np.array(list("abcd"))[town], "continuous": age}


def loss(model, X, y, weights=None):
    return np.average(np.logaddexp(0.0, np.where(y, -1.0, 1.0) * model.decision_function(X)), weights=weights)


def columns_of(kind, attributes):
    """The columns of numbers with which decisions should not vary, made by hand."""
    if kind == "binary":
        return [attributes["binary"] == "m"]
    if kind == "groups":
        return [attributes["groups"] == each for each in "abcd"]
    if kind == "continuous":
        return [attributes["continuous"]]
    pairs = [(attributes["binary"] == sex) & (attributes["groups"] == town) for sex in "fm" for town in "abcd"]
    return [attributes["continuous"], *pairs]


def by_hand(X, y, columns, criterion):
    """The matrix of covariances, from NumPy's corrcoef."""
    strata = [np.ones(y.size, dtype=bool)] if criterion == "demographic_parity" else [~y, y]
    rows = []
    for members in strata:
        for column in columns:
            if np.std(column[members]) > 0.0:
                parts = [np.cov(column[members].astype(float), X[members, j], bias=True)[0, 1] for j in range(X.shape[1])]
                rows.append(np.array(parts) / np.std(column[members]))
    return np.array(rows)


def given(kind, attributes):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(attributes) if kind == "mixed" else attributes[kind]


class TestAgainstASolver:
    @pytest.mark.parametrize("criterion", CRITERIA)
    @pytest.mark.parametrize("kind", ["binary", "groups", "continuous", "mixed"])
    def test_unfairness_is_the_least_of_all_models_within_the_promise(self, kind, criterion):
        cvxpy = pytest.importorskip("cvxpy")
        X, y, attributes = people()
        model = FairClassifier(0.02, criterion, radius=3.0).fit(X, y, sensitive_features=given(kind, attributes))

        w, c = cvxpy.Variable(X.shape[1]), cvxpy.Variable()
        training = cvxpy.sum(cvxpy.logistic(cvxpy.multiply(np.where(y, -1.0, 1.0), X @ w + c))) / y.size
        ball = [cvxpy.norm1(w) <= 3.0]
        best = cvxpy.Problem(cvxpy.Minimize(training), ball).solve(solver="CLARABEL")
        rows = by_hand(X, y, columns_of(kind, attributes), criterion)
        unfair = cvxpy.sum_squares(rows @ w)
        least = cvxpy.Problem(cvxpy.Minimize(unfair), [*ball, training <= 1.02 * best]).solve(solver="CLARABEL")

        assert model.loss_floor_ == pytest.approx(best, abs=1e-7)
        assert model.unfairness_ == pytest.approx(least, abs=1e-5)
        assert model.unfairness_floor_ <= least + 1e-6
        assert model.unfairness_ <= model.unfairness_floor_ + 1e-5
        assert model.unfairness_ == pytest.approx(np.sum((rows @ model.coef_[0]) ** 2), abs=1e-12)
        assert np.sum(model.covariances_**2) == pytest.approx(model.unfairness_, abs=1e-12)
        assert np.sum(model.plain_covariances_**2) == pytest.approx(model.plain_unfairness_, abs=1e-12)
        assert len(model.covariance_names_) == len(rows)

    @pytest.mark.parametrize("measure", ["score", "probability"])
    def test_a_set_with_curved_sides_takes_longer_and_keeps_the_promise(self, measure):
        cvxpy = pytest.importorskip("cvxpy")
        X, y, attributes = people(1)
        model = FairClassifier(0.05, constraint="l2", radius=2.0, measure=measure)
        model.fit(X, y, sensitive_features=attributes["binary"])
        assert model.loss_increase_ <= 0.05
        assert model.certificate_.within
        assert model.unfairness_floor_ <= model.unfairness_ < 0.9 * model.plain_unfairness_
        if measure == "probability":
            return
        w, c = cvxpy.Variable(X.shape[1]), cvxpy.Variable()
        training = cvxpy.sum(cvxpy.logistic(cvxpy.multiply(np.where(y, -1.0, 1.0), X @ w + c))) / y.size
        best = cvxpy.Problem(cvxpy.Minimize(training), [cvxpy.norm2(w) <= 2.0]).solve(solver="CLARABEL")
        rows = by_hand(X, y, columns_of("binary", attributes), "demographic_parity")
        limits = [cvxpy.norm2(w) <= 2.0, training <= 1.05 * best]
        least = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(rows @ w)), limits).solve(solver="CLARABEL")
        assert least - 1e-6 <= model.unfairness_ <= least + 1e-3
        assert model.unfairness_floor_ <= least + 1e-6


class TestThePromise:
    @pytest.mark.parametrize("seed", range(20))
    def test_it_holds_on_random_data_and_is_proven(self, seed):
        rng = np.random.default_rng(seed)
        X, y, attributes = people(seed, n=int(rng.integers(20, 200)), d=int(rng.integers(1, 12)))
        increase = 10.0 ** rng.uniform(-3.0, -0.5)
        weights = rng.uniform(0.1, 2.0, y.size) if seed % 2 else None
        kind = list(attributes)[seed % 3]
        model = FairClassifier(increase, CRITERIA[seed % 2]).fit(X, y, weights, sensitive_features=attributes[kind])
        free = LogisticRegression(C=np.inf, max_iter=10_000, tol=1e-9).fit(X, y, weights)  # of all models, without a set

        assert model.loss_ == pytest.approx(loss(model, X, y, weights), rel=1e-12)
        assert model.loss_floor_ <= model.plain_loss_ <= model.loss_
        assert loss(free, X, y, weights) <= model.plain_loss_ * (1.0 + 1e-6)
        assert model.loss_ <= (1.0 + increase) * model.loss_floor_
        assert model.loss_increase_ <= increase
        assert model.certificate_.within
        assert model.unfairness_floor_ <= model.unfairness_ <= model.plain_unfairness_ + 1e-12

    def test_a_larger_increase_buys_less_unfairness_until_none_is_left(self):
        X, y, attributes = people(1, n=150)
        sex, increases = attributes["binary"], (0.0, 0.01, 0.05, 0.8)
        found = [FairClassifier(increase).fit(X, y, sensitive_features=sex) for increase in increases]
        unfairness = [model.unfairness_ for model in found]
        assert unfairness == sorted(unfairness, reverse=True)
        assert unfairness[0] == pytest.approx(found[0].plain_unfairness_, rel=1e-3)  # there is one model of least loss
        assert found[0].loss_increase_ <= 1e-9
        assert unfairness[-1] <= 1e-9 < unfairness[-2]
        assert found[-1].loss_increase_ < 0.5  # what is allowed, and buys nothing, is not spent

    @pytest.mark.parametrize("measure", ["score", "probability"])
    def test_samples_that_can_be_separated_leave_room_too(self, measure):
        rng = np.random.default_rng(0)
        group = rng.integers(2, size=40)
        X = rng.standard_normal((40, 60)) + group[:, None] * rng.standard_normal(60)
        y = rng.integers(2, size=40) == 1
        model = FairClassifier(0.01, measure=measure).fit(X, y, sensitive_features=group)
        share = y.mean()
        constant = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
        assert model.loss_floor_ < 1e-3 * constant
        assert model.loss_ <= model.loss_floor_ + 0.01 * 1e-3 * constant
        assert model.loss_increase_ <= 0.01
        assert model.score(X, y) == 1.0
        if measure == "score":  # probabilities are those of the labels
            assert model.unfairness_ < 1e-3 * model.plain_unfairness_
        assert model.unfairness_ <= model.plain_unfairness_

    def test_a_promise_that_is_not_proven_is_no_secret(self):
        X, y, attributes = people(3, n=100)
        model = FairClassifier(0.05, max_iter=5)
        with pytest.warns(ConvergenceWarning, match="more than `max_loss_increase`=0.05: raise `max_iter`"):
            model.fit(X, y, sensitive_features=attributes["binary"])
        assert model.loss_increase_ > 0.05
        assert model.loss_ <= (1.0 + model.loss_increase_) * model.loss_floor_ * (1.0 + 1e-12)

    @pytest.mark.parametrize("criterion", CRITERIA)
    @pytest.mark.parametrize("kind", ["generated", "adult"])
    def test_it_holds_on_a_census(self, kind, criterion):
        if kind == "adult" and not ADULT.is_file():
            pytest.skip("adult.mat is not at hand")
        census = tiebreak.data.adult(ADULT) if kind == "adult" else tiebreak.data.adult_like()
        model = FairClassifier(0.01, criterion).fit(census.X, census.y, sensitive_features=census.sensitive)
        assert model.loss_increase_ <= 0.01
        assert model.unfairness_ < 0.5 * model.plain_unfairness_
        assert model.unfairness_ - model.unfairness_floor_ <= 1e-6 * model.plain_unfairness_


class TestCriteria:
    def test_covariances_of_equalised_odds_are_those_within_the_classes(self):
        X, y, attributes = people(4, n=200)
        model = FairClassifier(0.05, "equalized_odds").fit(X, y, sensitive_features=attributes["binary"])
        scores, male = model.decision_function(X), attributes["binary"] == "m"
        within = [np.cov(scores[each], male[each], bias=True)[0, 1] / male[each].std() for each in (~y, y)]
        assert model.covariances_ == pytest.approx(within, abs=1e-12)
        assert model.covariance_names_ == ["m | y=False", "m | y=True"]

    def test_unfairness_does_not_depend_on_the_units_of_a_number(self):
        X, y, attributes = people(5)
        years, months = (
            FairClassifier(0.05).fit(X, y, sensitive_features=factor * attributes["continuous"]) for factor in (1.0, 12.0)
        )
        assert years.coef_ == pytest.approx(months.coef_, abs=1e-5)
        assert years.unfairness_ == pytest.approx(months.unfairness_, rel=1e-6)

    def test_a_weight_counts_like_repeated_samples(self):
        X, y, attributes = people(6, n=60)
        weights = np.arange(60) % 3
        repeated = np.repeat(np.arange(60), weights)
        model = FairClassifier(0.03, radius=4.0)
        weighted = clone(model).fit(X, y, weights, sensitive_features=attributes["groups"])
        other = clone(model).fit(X[repeated], y[repeated], sensitive_features=attributes["groups"][repeated])
        assert weighted.unfairness_ == pytest.approx(other.unfairness_, rel=1e-5)
        assert weighted.loss_floor_ == pytest.approx(other.loss_floor_, rel=1e-9)

    def test_an_attribute_that_is_the_same_within_one_class_is_judged_in_the_other(self):
        X, y, _ = people(7)
        group = np.where(y, "a", np.where(np.arange(y.size) % 2, "a", "b"))
        model = FairClassifier(0.01, "equalized_odds").fit(X, y, sensitive_features=group)
        assert model.covariance_names_ == ["b | y=False"]

    def test_without_an_intercept_covariances_are_the_same_measure(self):
        X, y, attributes = people(8)
        model = FairClassifier(0.05, fit_intercept=False).fit(X, y, sensitive_features=attributes["binary"])
        male = attributes["binary"] == "m"
        assert model.intercept_ == [0.0]
        assert model.covariances_[0] == pytest.approx(
            np.cov(model.decision_function(X), male, bias=True)[0, 1] / male.std(), abs=1e-12
        )


class TestProbabilities:
    @pytest.mark.parametrize("criterion", CRITERIA)
    def test_covariances_are_those_of_probabilities(self, criterion):
        X, y, attributes = people(20, n=200)
        weights = np.random.default_rng(0).uniform(0.0, 1.0, 200)
        model = FairClassifier(0.05, criterion, measure="probability")
        model.fit(X, y, weights, sensitive_features=attributes["binary"])
        chances, male = model.predict_proba(X)[:, 1], attributes["binary"] == "m"
        found = []
        for members in [np.ones(200, dtype=bool)] if criterion == "demographic_parity" else [~y, y]:
            both = np.cov(chances[members], male[members], aweights=weights[members], bias=True)
            found.append(both[0, 1] / np.sqrt(both[1, 1]))
        assert model.covariances_ == pytest.approx(found, abs=1e-12)
        assert model.unfairness_ == pytest.approx(np.sum(np.square(found)), abs=1e-12)
        assert model.unfairness_ < 0.8 * model.plain_unfairness_
        assert model.unfairness_floor_ == 0.0

    @pytest.mark.parametrize("seed", range(10))
    def test_the_promise_is_proven_for_them_too(self, seed):
        X, y, attributes = people(seed, n=100)
        increase, kind = (0.01, 0.1)[seed % 2], list(attributes)[seed % 3]
        model = FairClassifier(increase, CRITERIA[seed % 2], measure="probability")
        model.fit(X, y, sensitive_features=attributes[kind])
        assert model.loss_ == pytest.approx(loss(model, X, y), rel=1e-12)
        assert model.loss_ <= (1.0 + increase) * model.loss_floor_
        assert model.loss_increase_ <= increase
        assert model.certificate_.within
        assert model.unfairness_ <= model.plain_unfairness_

    @pytest.mark.parametrize("seed", range(3))
    def test_a_general_solver_finds_nothing_fairer(self, seed):
        X, y, attributes = people(seed, n=100, d=3)
        age = attributes["continuous"]
        model = FairClassifier(0.05, measure="probability").fit(X, y, sensitive_features=age)

        def unfairness(x):
            return np.cov(expit(X @ x[:-1] + x[-1]), age, bias=True)[0, 1] ** 2 / np.var(age)

        def room(x):
            signed = np.where(y, -1.0, 1.0) * (X @ x[:-1] + x[-1])
            return 1.05 * model.loss_floor_ - np.logaddexp(0.0, signed).mean()

        start = np.append(model.plain_coef_, model.plain_intercept_)
        limits = {"type": "ineq", "fun": room}
        found = minimize(unfairness, start, method="SLSQP", constraints=[limits], options={"ftol": 1e-14, "maxiter": 500})
        assert room(found.x) >= -1e-9
        assert model.unfairness_ <= 1.01 * found.fun + 1e-9

    def test_sparse_features_give_the_same_model(self):
        X, y, attributes = people(12, d=6)
        X[np.abs(X) < 0.5] = 0.0
        dense, sparse = (
            FairClassifier(0.02, radius=5.0, measure="probability").fit(form, y, sensitive_features=attributes["groups"])
            for form in (X, scipy.sparse.csr_matrix(X))
        )
        assert sparse.unfairness_ == pytest.approx(dense.unfairness_, rel=1e-3)

    def test_its_problem_says_that_it_is_not_convex(self):
        X, y, attributes = people(21)
        model = FairClassifier(0.05, measure="probability").fit(X, y, sensitive_features=attributes["groups"])
        problem = model.problem(X, y, sensitive_features=attributes["groups"])
        assert not problem.upper.convex
        assert problem.upper.value(model.result_.x) == pytest.approx(model.unfairness_, rel=1e-9)


class TestForms:
    def test_arrays_lists_series_and_frames_are_the_same(self):
        pandas = pytest.importorskip("pandas")
        X, y, attributes = people(9)
        sex = attributes["binary"]
        forms = [
            *(sex, list(sex), sex[:, None], [[each] for each in sex], sex == "m", (sex == "m").astype(float)),
            *(pandas.Series(sex), pandas.Series(sex, name="sex"), pandas.Series(sex).astype("category")),
            pandas.DataFrame({"sex": sex}),
        ]
        models = [FairClassifier(0.02).fit(X, y, sensitive_features=form) for form in forms]
        assert all(np.array_equal(model.coef_, models[0].coef_) for model in models)
        assert [model.covariance_names_[0] for model in models] == [*"mmmm", "True", "1", "m", "sex=m", "m", "sex=m"]

    def test_several_columns_of_groups_are_combined_and_numbers_stand_alone(self):
        pandas = pytest.importorskip("pandas")
        X, y, attributes = people(10, n=200)
        frame = pandas.DataFrame(attributes).rename(columns={"binary": "sex", "groups": "town", "continuous": "age"})
        names = FairClassifier().fit(X, y, sensitive_features=frame).covariance_names_
        assert names == ["age", *(f"sex={sex}, town={town}" for sex in "fm" for town in "abcd")]
        rows = frame.to_numpy().tolist()  # texts and numbers in each row
        assert len(FairClassifier().fit(X, y, sensitive_features=rows).covariance_names_) == len(names)

    @pytest.mark.parametrize(
        ("values", "kind", "count"),
        [
            (np.arange(80) % 5, "auto", 5),
            (np.arange(80) % 5, "continuous", 1),
            (np.arange(80) % 25, "auto", 1),
            (np.arange(80) % 25, "groups", 25),
            (0.5 * (np.arange(80) % 5), "auto", 1),
            (0.5 * (np.arange(80) % 2), "auto", 1),
            ((np.arange(80) % 5).astype(str), "auto", 5),
            (np.column_stack([np.arange(80) % 5, np.arange(80) % 4]), ["continuous", "groups"], 5),
        ],
    )
    def test_kinds_are_told_or_given(self, values, kind, count):
        X, y, _ = people(11)
        model = FairClassifier(sensitive_kind=kind).fit(X, y, sensitive_features=values)
        assert len(model.covariance_names_) == count

    def test_sparse_features_give_the_same_model(self):
        X, y, attributes = people(12, d=6)
        X[np.abs(X) < 0.5] = 0.0
        dense, sparse = (
            FairClassifier(0.02, radius=5.0).fit(form, y, sensitive_features=attributes["groups"])
            for form in (X, scipy.sparse.csr_matrix(X))
        )
        assert sparse.unfairness_ == pytest.approx(dense.unfairness_, rel=1e-5)
        assert sparse.predict_proba(X) == pytest.approx(dense.predict_proba(X), abs=1e-4)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"max_loss_increase": -0.1}, "`max_loss_increase` must be a finite number ≥ 0, got -0.1"),
            ({"max_loss_increase": np.nan}, "`max_loss_increase` must be a finite number ≥ 0, got nan"),
            ({"max_loss_increase": "1 %"}, "`max_loss_increase` must be a finite number ≥ 0, got '1 %'"),
            ({"criterion": "parity"}, '`criterion` must be one of "demographic_parity", "equalized_odds", got \'parity\''),
            ({"sensitive_kind": "numbers"}, "`sensitive_kind` must be one of"),
            ({"sensitive_kind": ["groups", "groups"]}, "one for each of the 1 columns"),
            ({"sensitive_kind": "continuous"}, "must hold numbers where `sensitive_kind` is \"continuous\", got .*'f'|'m'"),
            ({"max_iter": 0}, "`max_iter` must be a whole number ≥ 1, got 0"),
            ({"measure": "logit"}, '`measure` must be one of "score", "probability", got \'logit\''),
        ],
    )
    def test_a_wrong_parameter_is_named(self, options, words):
        X, y, attributes = people()
        with pytest.raises(ValueError, match=words):
            FairClassifier(**options).fit(X, y, sensitive_features=attributes["binary"])

    @pytest.mark.parametrize(
        ("form", "words"),
        [
            (lambda s: None, "`sensitive_features` must be given to `fit`"),
            (lambda s: s[:-1], "one row for each of the 80 samples, got an array of shape \\(79,\\)"),
            (lambda s: s[:, None, None], "got an array of shape \\(80, 1, 1\\)"),
            (lambda s: "f", "one row for each of the 80 samples"),
            (lambda s: np.full(80, "f"), "must differ between samples"),
            (lambda s: np.full(80, 3.3), "must differ between samples"),
            (lambda s: [None, *s[1:]], "no missing values, got 1, the first at \\[0\\]"),
            (lambda s: np.append(np.arange(79.0), np.nan), "no missing values, got 1, the first at \\[79\\]"),
            (lambda s: np.append(np.arange(79.0), np.inf), "must hold finite numbers"),
            (lambda s: [[1.0], *([[1.0, 2.0]] * 79)], "rows of one length"),
            (lambda s: np.ma.masked_array(np.arange(80), np.arange(80) == 3), "1 masked"),
        ],
    )
    def test_wrong_attributes_are_named(self, form, words):
        X, y, attributes = people()
        with pytest.raises(ValueError, match=words):
            FairClassifier().fit(X, y, sensitive_features=form(attributes["binary"]))

    def test_an_attribute_that_is_the_class_leaves_nothing_to_equalise(self):
        X, y, _ = people()
        with pytest.raises(ValueError, match="must differ between samples within a class of `y`"):
            FairClassifier(criterion="equalized_odds").fit(X, y, sensitive_features=y)

    def test_more_than_two_classes_and_fewer_are_refused(self):
        X, _, attributes = people()
        with pytest.raises(ValueError, match="`y` must hold two classes, got 3"):
            FairClassifier().fit(X, np.arange(80) % 3, sensitive_features=attributes["binary"])
        with pytest.raises(ValueError, match="`y` must hold two classes, got one class"):
            FairClassifier().fit(X, np.ones(80), sensitive_features=attributes["binary"])


class TestScikitLearn:
    def test_metadata_routing_carries_the_attribute_to_each_fold(self):
        X, y, attributes = people(13, n=120)
        with config_context(enable_metadata_routing=True):
            model = FairClassifier().set_fit_request(sensitive_features=True)
            pipeline = make_pipeline(StandardScaler(), model)
            grid = {"fairclassifier__max_loss_increase": [0.01, 0.1]}
            search = GridSearchCV(pipeline, grid, cv=3, error_score="raise")
            search.fit(X, y, sensitive_features=attributes["binary"])
        assert search.best_estimator_[-1].loss_increase_ <= search.best_params_["fairclassifier__max_loss_increase"]

    def test_a_pipeline_takes_the_attribute_by_its_name(self):
        X, y, attributes = people(14)
        pipeline = make_pipeline(StandardScaler(), FairClassifier())
        pipeline.fit(X, y, fairclassifier__sensitive_features=attributes["binary"])
        assert pipeline[-1].loss_increase_ <= 0.01
        with pytest.raises(ValueError, match="`sensitive_features` must be given"):
            pipeline.fit(X, y)

    def test_a_fitted_model_is_pickled_without_its_data(self):
        X, y, attributes = people(15, n=2000, d=20)
        model = FairClassifier().fit(X, y, sensitive_features=attributes["binary"])
        stored = pickle.dumps(model)
        assert len(stored) < X.nbytes / 4
        assert np.array_equal(pickle.loads(stored).predict(X), model.predict(X))

    def test_labels_and_probabilities_agree_with_decisions(self):
        X, y, attributes = people(16)
        model = FairClassifier().fit(X, np.where(y, "yes", "no"), sensitive_features=attributes["binary"])
        assert list(model.classes_) == ["no", "yes"]
        assert np.array_equal(model.predict(X) == "yes", model.decision_function(X) > 0.0)
        assert np.array_equal(model.predict_proba(X)[:, 1] > 0.5, model.decision_function(X) > 0.0)
        assert np.exp(model.predict_log_proba(X)) == pytest.approx(model.predict_proba(X))


class WithAttribute(FairClassifier):
    """The first feature as the attribute, so that ``fit`` needs nothing else."""

    def fit(self, X, y, sample_weight=None):
        rows = X.toarray() if scipy.sparse.issparse(X) else X
        try:
            sensitive = [float(row[0]) for row in np.asarray(rows)]
        except Exception:  # data that FairClassifier is to refuse
            sensitive = []
        return super().fit(X, y, sample_weight, sensitive_features=sensitive)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([WithAttribute(radius=1.0, sensitive_kind="continuous", max_iter=100)])
def test_it_keeps_the_rules_of_scikit_learn(estimator, check):
    check(estimator)


def test_its_problem_has_a_frontier():
    X, y, attributes = people(17)
    model = FairClassifier(0.05).fit(X, y, sensitive_features=attributes["binary"])
    problem = model.problem(X, y, sensitive_features=attributes["binary"])
    front = tiebreak.frontier(problem, [0.05 * model.loss_floor_])
    assert front.at(0.05 * model.loss_floor_).upper == pytest.approx(model.unfairness_, abs=1e-6)
