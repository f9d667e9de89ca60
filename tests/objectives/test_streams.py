"""Streams: objectives that are seen through fresh samples alone."""

from __future__ import annotations

import numpy as np
import pytest

import tiebreak
from tiebreak import (
    SBCGI,
    EndOfStream,
    L1Ball,
    LeastSquares,
    OnPart,
    OracleError,
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
from tiebreak.methods import METHODS

SIZE = 5
ROOT = np.random.default_rng(0).standard_normal((3, SIZE))  # rows of the data lie in its span: g has many minimisers
TRUTH = np.array([0.5, 0.0, -0.5, 0.0, 0.0])
NOISE = 0.1
UPPER = SquaredNorm(np.array([0.2, 0.3, 0.0, -0.1, 0.4]))
DOMAIN = L1Ball(2.0)


def rows(rng, size):
    A = rng.standard_normal((size, 3)) @ ROOT
    return A, A @ TRUTH + NOISE * rng.standard_normal(size)


def squares(x, batch):
    A, b = batch
    residual = A @ x - b
    return 0.5 * np.mean(residual**2), residual @ A / b.size


def exact_lower(x):
    return 0.5 * np.sum((ROOT @ (x - TRUTH)) ** 2) + 0.5 * NOISE**2


LOWER = Stream(rows, squares, SIZE, convex=True)
PROBLEM = Problem(UPPER, LOWER, DOMAIN)


class Limited:
    """A source that ends after some rows, in the way that is said."""

    def __init__(self, count, way="raise", wrap=lambda batch: batch):
        self.left, self.way, self.wrap = count, way, wrap

    def __call__(self, rng, size):
        if size > self.left:
            if self.way == "raise":
                raise StopIteration
            size, self.left = self.left, 0
            return rows(rng, size)
        self.left -= size
        return self.wrap(rows(rng, size))


class Opaque:
    """A batch that does not say how large it is."""

    def __init__(self, batch):
        self.batch = batch


def test_a_run_reaches_the_solution_within_its_bounds():
    upper = LeastSquares(np.eye(SIZE) * np.sqrt(SIZE), UPPER.center * np.sqrt(SIZE))  # the same functions
    best = minimize(Problem(upper, LeastSquares(ROOT * np.sqrt(3), ROOT @ TRUTH * np.sqrt(3)), DOMAIN), max_queries=50_000)
    result = minimize(PROBLEM, max_queries=40_000)
    assert result.method.name == "sbcgi"
    assert result.certificate.confidence == 0.95
    assert result.upper - best.upper <= result.upper_gap_bound
    assert exact_lower(result.x) - 0.5 * NOISE**2 <= result.lower_gap_bound
    assert abs(result.lower - exact_lower(result.x)) <= result.certificate.lower_error
    assert result.certificate.upper_error < 1e-12
    assert exact_lower(result.x) < 0.5 * NOISE**2 + 0.05 * exact_lower(np.zeros(SIZE))
    assert abs(result.upper - best.upper) < 0.1  # f at points that nearly minimise g is from 0 to 2
    assert "confidence    0.95" in str(result)
    assert "confidence      0.95" in str(result.certificate)


def test_the_seed_makes_the_run():
    first, second, other = (minimize(PROBLEM, max_queries=4000, seed=seed) for seed in (3, 3, 4))
    assert first.x.tobytes() == second.x.tobytes()
    assert first.history.lower.tobytes() == second.history.lower.tobytes()
    assert first.x.tobytes() != other.x.tobytes()


def test_a_stream_of_a_generator_resumes_bit_for_bit(tmp_path):
    whole = minimize(PROBLEM, max_queries=6000)
    seen, arguments = [], {"max_queries": 6000, "checkpoint": tmp_path / "run.npz"}
    stopped = minimize(PROBLEM, callback=lambda snapshot: seen.append(snapshot) or len(seen) == 8, **arguments)
    assert stopped.status is Status.CALLBACK
    resumed = minimize(PROBLEM, **arguments)
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert resumed.history.lower.tobytes() == whole.history.lower.tobytes()
    assert resumed.certificate.lower_gap_bound == whole.certificate.lower_gap_bound
    again = minimize(PROBLEM, **arguments)  # a finished run is just read
    assert again.certificate.lower_gap_bound == whole.certificate.lower_gap_bound


@pytest.mark.parametrize("way", ["raise", "fewer"])
def test_a_stream_that_ends_ends_the_run_with_its_last_point(way):
    method = SBCGI(preset="auto", anchor_samples=200)
    problem = Problem(UPPER, Stream(Limited(5000, way), squares, SIZE, convex=True), DOMAIN)
    points = []
    result = minimize(problem, method, max_queries=20_000, callback=lambda snapshot: points.append(snapshot))
    assert result.status is Status.ENDED
    assert result.success
    assert "Limited" in result.message
    assert "lower: " in result.message
    assert result.error is None
    assert result.iterations > points[-1].iteration  # not the last one that was recorded
    assert result.x.tobytes() != points[-1].x.tobytes()
    assert len(result.history) == len(points) + 1
    assert result.queries.lower < 5000
    assert exact_lower(result.x) - 0.5 * NOISE**2 <= result.lower_gap_bound < np.inf


def test_samples_of_unknown_size_are_not_kept_and_the_last_record_is_the_result():
    def unwrapped(x, batch):
        return squares(x, batch.batch)

    problem = Problem(UPPER, Stream(Limited(5000, wrap=Opaque), unwrapped, SIZE, convex=True), DOMAIN)
    points = []
    method = SBCGI(preset="auto", anchor_samples=200)
    result = minimize(problem, method, max_queries=20_000, callback=lambda snapshot: points.append(snapshot))
    assert result.status is Status.ENDED
    assert result.x.tobytes() == points[-1].x.tobytes()


def test_a_stream_without_samples_for_a_first_record_is_an_error():
    with pytest.raises(EndOfStream, match="Limited` has come to its end"):
        minimize(Problem(UPPER, Stream(Limited(10), squares, SIZE, convex=True), DOMAIN), max_queries=1000)


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_need_all_samples_refuse_a_stream_by_name(name):
    with interpreted():
        facts = {"convex": True, "lipschitz": 9.0, "floor": 0.0}
        problem = Problem(UPPER, Stream(rows, squares, SIZE, **facts), DOMAIN)
        method = METHODS[name](level="lower") if name in ("spider-fw", "fista") else METHODS[name]()
        if name in (
            "auto",
            "sample-average",
            "sbcgi",
            "sbcgi-m",
            "storm-fw",
            "arip-seg",
            "dbgd-sto",
            "dbgd-storm",
            "ir-scg",
        ):
            result = minimize(problem, method, max_queries=400, x0=np.zeros(SIZE))
            assert result.status is (Status.SOLVED if name == "sample-average" else Status.QUERIES)
            assert np.isfinite(result.lower_gap_bound)
        else:
            what = "a stream of rows and squares" if name == "active-set" else "passes over all samples, and the lower"
            with pytest.raises(ValueError, match=f"^the method '{name}' needs {what}"):
                minimize(problem, method, max_queries=400)


def test_either_level_or_both_may_be_streams():
    known = LeastSquares(np.eye(SIZE), TRUTH)
    other = Stream(
        lambda rng, size: rng.random((size, SIZE)), lambda x, u: (np.mean(u @ x), u.mean(axis=0)), SIZE, convex=True
    )
    for upper, lower in ((other, known), (known, LOWER), (other, LOWER)):
        result = minimize(Problem(upper, lower, DOMAIN), max_queries=2000)
        assert result.success
        assert result.queries.total <= 2000
        assert np.isfinite([result.upper_gap_bound, result.lower_gap_bound]).all()
        assert (result.certificate.upper_error > 1e-12) == (upper is other)
        assert (result.certificate.lower_error > 1e-12) == (lower is LOWER)


def test_a_stream_is_scaled_added_to_what_is_exact_and_placed():
    mixed = 2.0 * LOWER + 0.5 * SquaredNorm()
    assert mixed.endless
    with interpreted():
        result = minimize(Problem(UPPER, mixed, DOMAIN), max_queries=400, seed=1)
    expected = 2.0 * exact_lower(result.x) + 0.25 * result.x @ result.x
    assert abs(result.lower - expected) <= result.certificate.lower_error
    both = Product(u=(L1Ball(1.0), 2), w=(DOMAIN, SIZE))
    with interpreted():
        result = minimize(Problem(SquaredNorm(), OnPart(LOWER, "w"), both), max_queries=400, seed=1)
    assert abs(result.lower - exact_lower(result.parts["w"])) <= result.certificate.lower_error
    assert LOWER.parameters(result).tolist() == result.parts["w"].tolist()
    with pytest.raises(ValueError, match="a stream can be added to objectives that are known exactly"):
        LOWER + LOWER


def test_no_more_samples_are_drawn_for_the_anchor_than_its_accuracy_takes():
    few = minimize(PROBLEM, SBCGI(preset="auto", anchor_samples=8000, anchor_error=0.05), x0=TRUTH, max_iterations=1)
    many = minimize(PROBLEM, SBCGI(preset="auto", anchor_samples=8000, anchor_error=0.0), x0=TRUTH, max_iterations=1)
    assert many.queries.lower == 8000
    assert few.queries.lower < 8000
    assert few.evaluations.lower == few.queries.lower


def test_the_anchor_s_samples_follow_from_the_budget():
    def samples(**budget):
        with interpreted():
            return minimize(PROBLEM, SBCGI(batch_size=1), x0=TRUTH, **budget).method.anchor_samples

    assert samples(max_queries=2000) == 100
    assert samples(max_iterations=40) == 40
    assert samples(max_queries=None, time_limit=1e-9) == 100_000


def test_the_constants_of_theory_are_estimated_from_a_stream():
    with interpreted():
        result = minimize(PROBLEM, SBCGI(preset="theory"), max_queries=300)
    assert result.success
    assert result.method.theory.lower_noise > 0.0


def test_a_tolerance_is_confirmed_by_other_samples():
    result = minimize(PROBLEM, tol=(3.0, 0.5), max_queries=100_000)
    assert result.status is Status.CERTIFIED
    assert result.queries.total < 100_000
    assert result.upper_gap_bound <= 3.0
    assert result.lower_gap_bound <= 0.5
    assert result.certificate.confidence == 0.95  # of all attempts together


def failing(rng, size):
    raise OSError("gone")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Stream(3, squares, 2), ValueError, "`draw` must be a function of \\(rng, size\\), got 3"),
        (lambda: Stream(rows, None, 2), ValueError, "`value_and_grad` must be a function of \\(x, batch\\), got None"),
        (lambda: Stream(rows, squares, 0), ValueError, "`dimension` must be a whole number ≥ 1, got 0"),
        (lambda: LOWER.value(np.zeros(SIZE)), ValueError, "a stream cannot be evaluated in full"),
        (lambda: Stream(failing, squares, 2).estimate([0.0, 0.0]), OracleError, "`failing` raised OSError: gone"),
        (lambda: Stream(lambda rng, size: np.zeros(7), squares, 2).estimate([0, 0], 6), OracleError, "got 7 for 6"),
        (lambda: Stream(rows, lambda x, batch: 1.0, SIZE).estimate(np.zeros(SIZE)), OracleError, "must return \\(value,"),
        (lambda: minimize(PROBLEM, confidence=1.5), ValueError, "`confidence` must be a probability between 0 and 1"),
        (lambda: certify(PROBLEM, TRUTH, samples=3), ValueError, "`samples` must be a whole number ≥ 40, got 3"),
        (lambda: certify(PROBLEM, TRUTH, bundle=5), ValueError, "`bundle` must be 1 for a stream"),
        (lambda: certify(Problem(UPPER, UPPER, DOMAIN), TRUTH, confidence=0.9), ValueError, "`confidence` is for streams"),
        (
            lambda: minimize(Problem(Stream(rows, squares, SIZE), LOWER, DOMAIN), max_queries=100),
            ValueError,
            "chooses its steps by whether the upper objective is convex, and that is not known",
        ),
    ],
)
def test_bad_arguments_and_answers_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_batches_are_cut_and_joined_to_the_sizes_that_are_wanted():
    parts = [(np.arange(3), np.arange(3.0)), (np.arange(3, 8), np.arange(3.0, 8.0))]
    source = sources.Rows(parts)
    assert [source(None, size)[0].tolist() for size in (2, 4, 1)] == [[0, 1], [2, 3, 4, 5], [6]]
    assert source(None, 5)[1].tolist() == [7.0]
    with pytest.raises(StopIteration):
        source(None, 1)
    again = sources.Rows(parts, repeat=True)
    assert again(None, 20)[1].size == 20
    with pytest.raises(ValueError, match="`repeat` needs batches that can be read again"):
        sources.Rows(iter(parts), repeat=True)
    with pytest.raises(StopIteration):
        sources.Rows([], repeat=True)(None, 1)
    assert sources.Rows([{"a": np.zeros((2, 3))}] * 2)(None, 3)["a"].shape == (3, 3)


def test_a_csv_file_is_read_in_pieces(tmp_path):
    pandas = pytest.importorskip("pandas")
    path, rng = tmp_path / "rows.csv", np.random.default_rng(0)
    A, b = rows(rng, 3000)
    frame = pandas.DataFrame(A, columns=list("abcde"))
    frame.assign(price=b).to_csv(path, index=False)
    source = sources.csv(path, target="price", rows=70)
    assert source.columns == list("abcde")
    features, targets = source(None, 100)
    np.testing.assert_allclose(features, A[:100])
    np.testing.assert_allclose(targets, b[:100])
    problem = Problem(UPPER, Stream(source, squares, len(source.columns), convex=True), DOMAIN)
    result = minimize(problem, max_queries=4000)
    assert result.status is Status.ENDED
    assert exact_lower(result.x) < 0.5 * exact_lower(np.zeros(SIZE))
    with pytest.raises(ValueError, match="`target` must name a column of the file, and 'cost' is none"):
        sources.csv(path, target="cost")
    with pytest.raises(ValueError, match="`path` must be a file, and there is none at"):
        sources.csv(tmp_path / "other.csv")


def test_a_missing_number_in_a_file_ends_the_run_and_is_named(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows(np.random.default_rng(0), 2000)[0], columns=list("abcde")).assign(price=0.0)
    frame.loc[1500, "c"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    source = sources.csv(tmp_path / "rows.csv", target="price", rows=100)
    problem = Problem(UPPER, Stream(source, squares, SIZE, convex=True), DOMAIN)
    with pytest.warns(RuntimeWarning, match="the column 'c' must hold finite numbers"):
        result = minimize(problem, SBCGI(preset="auto", anchor_samples=100), max_queries=20_000)
    assert result.status is Status.FAILED
    assert result.x.size == SIZE


def test_a_parquet_file_is_read_in_pieces(tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": np.arange(7.0), "b": np.arange(7)})
    frame.to_parquet(tmp_path / "rows.parquet")
    source = sources.parquet(tmp_path / "rows.parquet", target="b", rows=2)
    assert source(None, 5)[1].tolist() == [0, 1, 2, 3, 4]


def test_the_public_names_are_there():
    assert tiebreak.Stream is Stream
    assert tiebreak.sources is sources


def test_going_on_from_a_result_draws_other_samples():
    drawn = []

    def remembered(rng, size):
        drawn.append(rng.random((size, 2)))
        return drawn[-1]

    def squares(x, u):
        return 0.5 * np.mean(np.sum((x - u) ** 2, axis=1)), x - u.mean(axis=0)

    stream = Stream(remembered, squares, 2, convex=True)
    problem = Problem(SquaredNorm(), stream, L1Ball(2.0))
    result = minimize(problem, max_queries=600)
    before = {batch[0, 0] for batch in drawn}
    drawn.clear()
    minimize(problem, x0=result, max_queries=600)
    assert before.isdisjoint(batch[0, 0] for batch in drawn)


def test_a_list_is_one_of_samples():
    stream = Stream(lambda rng, size: [rng.random(3) for _ in range(size)], lambda x, u: (len(u), np.zeros(2)), 2)
    assert stream.estimate([0.0, 0.0], samples=10)[0] == 10.0


def test_an_estimate_draws_other_samples_than_a_run_with_its_seed():
    drawn = []

    def remembered(rng, size):
        drawn.append(rng.random((size, SIZE)))
        return drawn[-1]

    stream = Stream(remembered, lambda x, u: (0.5 * np.mean((x - u) ** 2), (x - u.mean(axis=0)) / SIZE), SIZE, convex=True)
    result = minimize(Problem(UPPER, stream, DOMAIN), SBCGI(preset="auto", anchor_samples=100), max_queries=2000, seed=0)
    used = np.concatenate([batch[:, 0] for batch in drawn])
    drawn.clear()
    stream.estimate(result.x, samples=500)
    assert not np.isin(drawn[0][:, 0], used).any()


def test_the_confidence_of_a_certified_answer_is_that_of_all_claims():
    result = minimize(PROBLEM, SBCGI(preset="auto"), tol=(50.0, 50.0), max_queries=50_000, confidence=0.9)
    assert result.status is Status.CERTIFIED
    assert result.certificate.confidence == pytest.approx(0.9)


def test_floors_are_refused_for_a_stream():
    with pytest.raises(ValueError, match="^`floors` must be left out for a stream"):
        certify(PROBLEM, TRUTH, floors=tiebreak.Floors(0.0, 0.0, 1.0))
