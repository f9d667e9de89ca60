import hashlib
import http.server
import json
import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak import data
from tiebreak.data import adult, adult_like, dictionary, montevideo, pageviews, split, wikimath

VISITS = {"0": {"y": [5, 0, 2]}, "1": {"y": [7, 1, 3]}, "time_periods": 2, "edges": [[0, 1]], "node_ids": {"Pi": 0}}
MATRIX = [[5, 7], [0, 1], [2, 3]]


@pytest.fixture(scope="module")
def visits():
    return pageviews()


# The generator


def test_pageviews_are_whole_counts_of_1068_pages_on_731_days(visits):
    assert visits.shape == (1068, 731)
    assert visits.dtype == np.float64
    assert visits.min() >= 0
    np.testing.assert_array_equal(visits, np.round(visits))


def test_pageviews_depend_on_the_seed_alone(visits):
    np.random.default_rng().random(3)
    np.testing.assert_array_equal(pageviews(0), visits)
    assert (pageviews(1) != visits).mean() > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_one_per_cent_of_the_pages_hold_a_large_but_not_absurd_share_of_the_visits(seed):
    totals = np.sort(pageviews(seed).sum(axis=1))[::-1]
    assert 0.15 < totals[:10].sum() / totals.sum() < 0.5
    assert totals[0] / totals.sum() < 0.25


def test_visits_repeat_after_a_week_more_than_after_three_days(visits):
    logs = np.log1p(visits)
    logs -= logs.mean(axis=1, keepdims=True)

    def autocorrelation(lag):
        return (logs[:, lag:] * logs[:, :-lag]).mean(axis=1) / logs.var(axis=1)

    popular = np.argsort(visits.sum(axis=1))[-200:]
    assert np.median((autocorrelation(7) - autocorrelation(3))[popular]) > 0.1


def test_the_strength_of_the_week_differs_between_pages(visits):
    weekday = np.arange(731) % 7
    popular = visits[np.argsort(visits.sum(axis=1))[-200:]]
    ratio = np.median(popular[:, weekday >= 2], axis=1) / np.median(popular[:, weekday < 2], axis=1)
    low, high = np.percentile(ratio, [10, 90])
    assert low > 1.0
    assert high > low + 0.15


def test_visits_are_fewer_in_the_summer_than_in_autumn(visits):
    day = np.arange(731) % 365  # from 16 March
    summer, autumn = (day > 115) & (day < 155), (day > 200) & (day < 240)
    medians = np.median(visits, axis=0)
    assert np.median(medians[summer]) < 0.85 * np.median(medians[autumn])


def test_a_page_follows_the_pages_of_its_topic(visits):
    popular = np.log1p(visits[np.argsort(visits.sum(axis=1))[-200:]])
    weekly = popular[:, 312:634].reshape(200, 46, 7).mean(axis=2)  # without the end of December, which all pages share
    changes = np.diff(weekly, axis=1)
    together = np.corrcoef(changes - np.median(changes, axis=0))
    np.fill_diagonal(together, 0.0)
    assert np.median(np.sort(together, axis=1)[:, -10]) > 0.35  # about 25 of the 200 share a topic; 0.29 without topics


def test_days_are_correlated_over_the_pages(visits):
    assert np.median(np.corrcoef(visits.T)) > 0.8


def test_bursts_are_rare_and_counts_vary_more_than_poisson(visits):
    usual = np.median(visits, axis=1, keepdims=True)
    assert 1e-5 < (visits > 4 * usual + 50).mean() < 0.02
    logs = np.log(visits[np.argsort(visits.sum(axis=1))[-100:]] + 1)
    noise = np.median(np.abs(logs[:, 7:] - logs[:, :-7]), axis=1)
    assert np.median(noise) > 0.1  # Poisson alone would leave about 1/√1000


@pytest.mark.parametrize("seed", [-1, 0.5, "one", None])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        pageviews(seed)


# Files


def saved(folder: Path, content) -> Path:
    path = folder / "made.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_wikimath_reads_days_as_columns(tmp_path):
    matrix = wikimath(saved(tmp_path, VISITS))
    np.testing.assert_array_equal(matrix, MATRIX)
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous


def test_wikimath_reads_days_in_the_order_of_numbers_not_of_keys(tmp_path):
    content = {str(t): {"y": [t, 2 * t]} for t in reversed(range(12))}
    np.testing.assert_array_equal(wikimath(str(saved(tmp_path, content)))[0], np.arange(12))


def test_wikimath_counts_the_days_if_the_file_does_not(tmp_path):
    content = {key: value for key, value in VISITS.items() if key != "time_periods"}
    np.testing.assert_array_equal(wikimath(saved(tmp_path, content)), MATRIX)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"0": {"y": [1', "made.json: .*line 1"),
        pytest.param("[" * 100_000, "made.json: ", id="nested without end"),
        ("[1, 2]", "made.json: must hold a JSON object, got .1, 2."),
        ({"nodes": []}, "must have the key \"0\".*got the keys .'nodes'"),
        ({**VISITS, "time_periods": 3}, 'must have the key "2"'),
        ({"0": {"y": [1]}, "2": {"y": [1]}}, 'must have the key "1"'),
        ({**VISITS, "time_periods": "many"}, "made.json: `time_periods` must be a whole number.*'many'"),
        ({**VISITS, "time_periods": 0}, "`time_periods` must be a whole number ≥ 1, got 0"),
        ({**VISITS, "1": [7, 1, 3]}, 'made.json: time period 1: must be an object with a list "y"'),
        ({**VISITS, "1": {"x": [7, 1, 3]}}, 'time period 1: must be an object with a list "y"'),
        ({**VISITS, "1": {"y": [7, 1]}}, r"time period 1: `y` must be a vector of 3 numbers.*\(2,\)"),
        ({**VISITS, "1": {"y": [7, [1], 3]}}, "made.json: time period 1: "),
        ({**VISITS, "0": {"y": []}}, "time period 0: `y` must be a non-empty vector"),
        ({**VISITS, "1": {"y": [7, "1", 3]}}, "time period 1: `y` must hold real numbers"),
        ({**VISITS, "1": {"y": [7, None, 3]}}, "time period 1: `y` must hold real numbers"),
        ({**VISITS, "1": {"y": [7, float("nan"), 3]}}, r"time period 1: `y` must hold finite numbers, got nan at \[1\]"),
        ({**VISITS, "1": {"y": [7, 1, -3]}}, r"made.json: time period 1: `y` must hold counts ≥ 0, got -3 at \[2\]"),
    ],
)
def test_wikimath_says_what_is_wrong_in_which_file(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        wikimath(saved(tmp_path, content))


@pytest.mark.parametrize("load", [wikimath, montevideo])
def test_a_missing_file_is_named(tmp_path, load):
    with pytest.raises(FileNotFoundError, match=r"`path` must name an existing file, got .*absent\.json"):
        load(tmp_path / "absent.json")
    with pytest.raises(FileNotFoundError, match="`path` must name an existing file"):
        load(tmp_path)
    with pytest.raises(ValueError, match="`path` must be the path of a JSON file, got 7"):
        load(7)


def test_montevideo_reads_nodes_as_rows(tmp_path):
    content = {"nodes": [{"y": [0, 2, 1], "id": 4}, {"y": [3, 0, 0.5], "id": 2}], "links": []}
    np.testing.assert_array_equal(montevideo(saved(tmp_path, content)), [[0, 2, 1], [3, 0, 0.5]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nodes", "made.json: .*line 1"),
        ({"edges": []}, 'made.json must have a non-empty list "nodes", got None'),
        ({"nodes": []}, 'must have a non-empty list "nodes"'),
        ({"nodes": {"y": [1]}}, 'must have a non-empty list "nodes"'),
        ({"nodes": [{"y": [1]}, {"x": [1]}]}, 'made.json: node 1: must be an object with a list "y"'),
        ({"nodes": [{"y": [1, 2]}, {"y": [1]}]}, "node 1: `y` must be a vector of 2 numbers"),
        ({"nodes": [{"y": [1, 2]}, {"y": [1, -1]}]}, "node 1: `y` must hold counts ≥ 0"),
        ({"nodes": [{"y": [1, float("inf")]}]}, "node 0: `y` must hold finite numbers"),
    ],
)
def test_montevideo_says_what_is_wrong_in_which_file(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        montevideo(saved(tmp_path, content))


def test_montevideo_reads_the_real_file():
    path = Path(os.environ.get("TIEBREAK_DATA", ""), "montevideo_bus.json")
    if "TIEBREAK_DATA" not in os.environ or not path.is_file():
        pytest.skip("TIEBREAK_DATA names no folder that holds montevideo_bus.json")
    matrix = montevideo(path)
    assert matrix.shape == (675, 744)
    assert 0.7 < (matrix == 0).mean() < 0.9
    for seed in range(20):  # many hours are constant on a third of the stops
        assert np.ptp(split(matrix, seed).train.b) > 0


# Adult


def people(folder, **changes):
    """A file of three people, with some of its variables replaced, or left out if they are None."""
    content = {"X": np.array([[1.0, 20.0], [0.0, 40.0], [1.0, 10.0]]), "y": [1, -1, 1], "x_control": [0, 1, 1]} | changes
    scipy.io.savemat(folder / "made.mat", {name: value for name, value in content.items() if value is not None})
    return folder / "made.mat"


def test_adult_reads_people_with_columns_between_0_and_1(tmp_path):
    found = adult(people(tmp_path))
    np.testing.assert_array_equal(found.X, [[1, 0.5], [0, 1], [1, 0.25]])
    np.testing.assert_array_equal(found.y, [1, -1, 1])
    np.testing.assert_array_equal(found.sensitive, [0, 1, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": None}, "made.mat: must have the variables X, y and x_control, got .* without X"),
        ({"x_control": None}, "without x_control"),
        ({"y": [1, 0, 1]}, "made.mat: `y` must hold -1 and 1 only, got 0"),
        ({"x_control": [0, 1, 2]}, "`x_control` must hold 0 and 1 only, got 2"),
        ({"y": [1, -1]}, "`y` must be a vector of 3 numbers"),
        ({"X": [[1.0, np.nan]] * 3}, "`X` must hold finite numbers"),
        ({"X": [[1.0, -2.0]] * 3}, "`X` must hold numbers ≥ 0, got -2"),
        ({"X": np.zeros((0, 2))}, "`X` must be a matrix of people × features"),
    ],
)
def test_adult_says_what_is_wrong_in_which_file(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        adult(people(tmp_path, **changes))


def test_adult_names_a_file_that_is_not_matlabs_or_not_there(tmp_path):
    (tmp_path / "text.mat").write_text("age, income, and so on; a text that is no MATLAB file at all. " * 10)
    with pytest.raises(ValueError, match="text.mat must be a MATLAB file with the variables X, y and x_control"):
        adult(tmp_path / "text.mat")
    (tmp_path / "empty.mat").touch()
    with pytest.raises(ValueError, match="empty.mat must be a MATLAB file with the variables X, y and x_control"):
        adult(tmp_path / "empty.mat")
    with pytest.raises(FileNotFoundError, match="absent.mat"):
        adult(tmp_path / "absent.mat")
    with pytest.raises(ValueError, match="`path` must be the path of a MATLAB file, got 7"):
        adult(7)


@pytest.mark.parametrize("damage", [lambda content: content[:300], lambda content: content[:200] + b"\x55" * 80])
def test_adult_names_a_damaged_file(tmp_path, damage):
    rng = np.random.default_rng(0)
    content = {"X": rng.random((40, 3)), "y": rng.choice([-1, 1], 40), "x_control": rng.integers(2, size=40)}
    path = tmp_path / "made.mat"
    scipy.io.savemat(path, content, do_compression=True)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="made.mat must be a MATLAB file with the variables X, y and x_control"):
        adult(path)


def test_adult_reads_the_real_file():
    path = Path(os.environ.get("TIEBREAK_DATA", ""), "adult.mat")
    if "TIEBREAK_DATA" not in os.environ or not path.is_file():
        pytest.skip("TIEBREAK_DATA names no folder that holds adult.mat")
    found = adult(path)
    assert found.X.shape == (10_000, 50)
    assert found.X.max() == 1.0
    assert (found.y == 1).mean() == pytest.approx(0.245, abs=0.001)


def census(**changes):
    pandas = pytest.importorskip("pandas")
    rows = {
        "age": [30, 60, 20, 50], "workclass": ["Private", "?", "State-gov", None],
        "fnlwgt": [1, 2, 3, 4], "education": ["5th-6th", "HS-grad", "Preschool", "HS-grad"], "education-num": [3, 9, 1, 9],
        "marital-status": ["Divorced"] * 4, "occupation": ["Sales", "Sales", "Tech-support", "Sales"],
        "relationship": ["Husband"] * 4, "race": ["White"] * 4, "sex": ["Male", "Male", "Female", "Male"],
        "capital-gain": [0, 0, 100, 0], "capital-loss": [0, 0, 0, 0], "hours-per-week": [40, 40, 20, 40],
        "native-country": ["United-States", "Cuba", "Cuba", "Cuba"], "class": [">50K", "<=50K", "<=50K", "<=50K"],
    }  # fmt: skip
    return pandas.DataFrame(rows)


def test_the_table_of_adult_is_prepared_with_one_column_a_value(monkeypatch):
    monkeypatch.setattr(data, "_fetched", census)
    found = adult()
    np.testing.assert_array_equal(found.y, [1, -1])  # two people lack their work
    np.testing.assert_array_equal(found.sensitive, [1, 0])
    # Work (2), school (1: neither went on after the 8th year), family, occupation (2), relationship, country; then numbers.
    np.testing.assert_allclose(
        found.X, [[1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1], [0, 1, 1, 1, 0, 1, 1, 0, 2 / 3, 1 / 3, 1, 0, 0.5]]
    )


def test_a_download_of_adult_that_fails_says_what_to_do(monkeypatch):
    import sklearn.datasets

    def fails(*arguments, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fails)
    with pytest.raises(ConnectionError, match="could not download Adult from OpenML \\(no route to host\\); .* as `path`"):
        adult()


def test_generated_people_resemble_those_of_adult():
    found = adult_like(3)
    assert found.X.shape == (10_000, 50)
    assert found.X.min() == 0.0
    assert found.X.max() == 1.0
    np.testing.assert_array_equal(found.X, adult_like(3).X)
    assert (found.X != adult_like(4).X).any()
    large = found.y == 1
    assert large.mean() == pytest.approx(0.245, abs=0.002)
    assert large[found.sensitive == 1].mean() > 1.5 * large[found.sensitive == 0].mean()
    assert found.sensitive.mean() == pytest.approx(0.675, abs=0.02)
    with pytest.raises(ValueError, match="`seed`"):
        adult_like(-1)


# The download


class Server:
    """Serves one content on loopback, counts the requests; ``promised`` is the size that its headers announce."""

    def __init__(self):
        self.content, self.promised, self.status, self.requests = b"", None, 200, 0
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests += 1
                self.send_response(server.status)
                self.send_header("Content-Length", str(server.promised or len(server.content)))
                self.end_headers()
                self.wfile.write(server.content)

            def log_message(self, *args):
                pass

        self.http = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/visits.json"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "cache_folder", lambda: tmp_path)
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path


@pytest.fixture
def server(cache, monkeypatch):
    server = Server()
    server.content = json.dumps(VISITS).encode()
    monkeypatch.setattr(data, "WIKIMATH_URL", server.url)
    header = f"blob {len(server.content)}\0".encode()
    monkeypatch.setattr(data, "WIKIMATH_BLOB", hashlib.sha1(header + server.content).hexdigest())
    yield server
    server.close()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_blob_id_is_the_one_of_git():
    assert data._blob(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert data._blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_wikimath_is_downloaded_once(server, cache):
    np.testing.assert_array_equal(wikimath(), MATRIX)
    np.testing.assert_array_equal(wikimath(), MATRIX)
    assert server.requests == 1
    assert [path.relative_to(cache) for path in cache.rglob("*.json")] == [Path("data", "visits.json")]
    assert len(files(cache)) == 1


def test_a_cached_file_needs_no_network(server):
    wikimath()
    server.status = 500
    np.testing.assert_array_equal(wikimath(), MATRIX)


def test_a_damaged_cached_file_is_downloaded_anew(server, cache):
    wikimath()
    file = cache / "data" / "visits.json"
    file.write_bytes(file.read_bytes()[:-5])
    np.testing.assert_array_equal(wikimath(), MATRIX)
    assert server.requests == 2
    assert file.read_bytes() == server.content


def test_a_file_with_another_blob_id_is_refused_and_not_kept(server, cache):
    server.content = server.content.replace(b"5", b"6")
    with pytest.raises(OSError, match=r"must have the git blob id .*, got .*`path`") as caught:
        wikimath()
    assert server.url in str(caught.value)
    assert data.WIKIMATH_BLOB in str(caught.value)
    assert not files(cache)


def test_a_download_that_breaks_off_leaves_nothing(server, cache):
    server.promised = len(server.content) + 10
    with pytest.raises(ConnectionError, match=r"could not download .*IncompleteRead"):
        wikimath()
    assert not files(cache)


def test_a_write_that_breaks_off_leaves_nothing(server, cache, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(data.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        wikimath()
    assert not files(cache)


def test_a_server_that_refuses_is_reported(server):
    server.status = 404
    with pytest.raises(ConnectionError, match=r"could not download .*404"):
        wikimath()


def test_without_network_the_error_says_where_to_get_the_file(cache, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening, so that nobody answers there
        monkeypatch.setattr(data, "WIKIMATH_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/visits.json")
        with pytest.raises(ConnectionError, match=r"could not download http://.*/visits.json \(.*`path`"):
            wikimath()
    assert not files(cache)


def test_a_silent_server_is_given_up(cache, monkeypatch):
    monkeypatch.setattr(data, "TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(data, "WIKIMATH_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/visits.json")
        with pytest.raises(ConnectionError, match="timed out"):
            wikimath()


# The task


def numbered(rows: int, columns: int) -> np.ndarray:
    """A matrix whose entries tell their row and column."""
    return np.arange(rows)[:, None] + np.arange(columns) / 1000.0


@settings(deadline=None, max_examples=50)
@given(rows=st.integers(4, 40), columns=st.integers(2, 12), seed=st.integers(0, 100))
def test_a_split_cuts_all_rows_in_thirds_and_takes_the_target_out(rows, columns, seed):
    task = split(numbered(rows, columns), seed, scaling=None)
    parts = [task.train, task.validation, task.test]
    sizes = [part.A.shape[0] for part in parts]
    assert max(sizes) - min(sizes) <= 1
    targets = np.concatenate([part.b for part in parts])
    np.testing.assert_array_equal(np.sort(targets), numbered(rows, columns)[:, task.target])  # each row once
    others = np.delete(np.arange(columns), task.target)
    for part in parts:
        assert part.b.shape == (part.A.shape[0],)
        row = np.floor(part.b).astype(int)
        np.testing.assert_array_equal(part.A, numbered(rows, columns)[np.ix_(row, others)])


def test_rows_are_shuffled():
    rows = split(numbered(60, 3), scaling="none").train.b.astype(int)
    assert not np.array_equal(rows, np.sort(rows))
    assert rows.max() > 20


def test_a_split_depends_on_the_seed_alone(visits):
    first, again = split(visits, 3), split(visits, 3)
    assert first.target == again.target
    np.testing.assert_array_equal(first.test.A, again.test.A)
    others = [split(visits, seed) for seed in range(4, 8)]
    assert len({first.target, *(task.target for task in others)}) > 1
    assert all(not np.array_equal(first.train.b, task.train.b) for task in others)


def test_columns_divided_by_their_maximum_lie_between_zero_and_one(visits):
    task = split(visits)
    features = np.concatenate([part.A for part in task[:3]])
    targets = np.concatenate([part.b for part in task[:3]])
    assert features.min() >= 0
    np.testing.assert_array_equal(features.max(axis=0), 1)
    assert (targets.min() >= 0, targets.max()) == (True, 1)


def test_columns_divided_by_their_deviation_have_deviation_one_and_are_not_shifted(visits):
    task = split(visits, scaling="std")
    features = np.concatenate([part.A for part in task[:3]])
    np.testing.assert_allclose(features.std(axis=0), 1)
    assert features.min() >= 0
    assert features.mean() > 0.1


@pytest.mark.parametrize("scaling", ["column-max", "std"])
def test_constant_columns_are_scaled_without_division_by_zero(scaling):
    A = np.column_stack([np.zeros(30), np.full(30, 0.1), np.full(30, -4e6), np.arange(30.0)])
    task = split(A, scaling=scaling)
    assert task.target == 3
    np.testing.assert_allclose(task.test.A, np.tile([0.0, 1.0, -1.0], (10, 1)))


@pytest.mark.parametrize("seed", range(10))
def test_a_target_that_is_nearly_constant_on_the_training_third_is_passed_over(seed):
    A = np.ones((30, 8))
    A[:, 2] += 1e-12 * np.arange(30)
    A[:, 5] = np.arange(30)
    assert split(A, seed).target == 5


def test_a_target_that_varies_only_outside_the_training_third_is_passed_over():
    rows = np.arange(30.0)
    training = split(np.column_stack([rows, rows]), scaling=None).train.b.astype(int)
    outside = np.setdiff1d(np.arange(30), training)
    A = np.zeros((30, 2))
    A[outside, 0] = outside
    A[:, 1] = rows
    assert split(A).target == 1
    with pytest.raises(ValueError, match="`A` must have a column that varies on the training third"):
        split(A[:, [0, 0]])


def test_the_data_are_not_changed():
    A = numbered(12, 4)
    task = split(A, scaling=None)
    task.train.A[:] = -1
    np.testing.assert_array_equal(A, numbered(12, 4))


def test_whole_numbers_and_lists_are_accepted():
    assert split([[1, 2], [3, 4], [5, 6], [7, 8]]).train.A.shape == (2, 1)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones(9), r"`A` must be a matrix of at least 4 rows and 2 columns, got an array of shape \(9,\)"),
        (np.ones((3, 5)), "at least 4 rows"),
        (np.ones((9, 1)), "2 columns"),
        (np.ones((9, 2, 2)), "`A` must be a matrix"),
        (np.full((9, 2), np.nan), "`A` must hold finite numbers, got nan"),
        (np.full((9, 2), "x"), "`A` must hold real numbers"),
        (np.full((9, 2), 3.0), "`A` must have a column that varies on the training third"),
        (np.zeros((9, 2)), "`A` must have a column that varies on the training third"),
    ],
)
def test_a_matrix_that_makes_no_task_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        split(A)


def test_an_unknown_scaling_or_seed_is_refused():
    with pytest.raises(ValueError, match='`scaling` must be "column-max", "std", "none" or None, got \'max\''):
        split(numbered(9, 3), scaling="max")
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        split(numbered(9, 3), seed=-2)


# Points made of atoms


def test_a_dictionary_has_the_sizes_of_the_paper():
    task = dictionary()
    assert task.old.shape == task.new.shape == (25, 250)
    assert task.old_codes.shape == task.new_codes.shape == (50, 250)
    assert (task.old_atoms.size, task.new_atoms.size) == (40, 20)
    assert np.intersect1d(task.old_atoms, task.new_atoms).size == 10
    np.testing.assert_allclose(np.linalg.norm(task.dictionary, axis=0), np.ones(50), rtol=1e-14)


@pytest.mark.parametrize("time", ["old", "new"])
def test_points_are_few_atoms_of_their_time_and_noise(time):
    task = dictionary(seed=3, noise=0.02)
    points, codes, atoms = (getattr(task, name) for name in (time, f"{time}_codes", f"{time}_atoms"))
    np.testing.assert_array_equal(np.flatnonzero(codes.any(axis=1)), atoms)
    assert (np.count_nonzero(codes, axis=0) == 5).all()
    sizes = np.abs(codes[codes != 0.0])
    assert 0.2 <= sizes.min() < 0.22
    assert 0.98 < sizes.max() <= 1.0
    assert 0.45 < np.mean(codes[codes != 0.0] > 0.0) < 0.55
    assert np.std(points - task.dictionary @ codes) == pytest.approx(0.02, rel=0.05)


def test_a_dictionary_depends_on_the_seed_alone():
    for first, again, other in zip(dictionary(1), dictionary(1), dictionary(2), strict=True):
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 6), st.integers(1, 4))
def test_sizes_of_a_dictionary_are_free_as_long_as_they_fit(old, new, shared, sparsity):
    if max(old + new - 8, 0) <= shared <= min(old, new) and sparsity <= min(old, new):
        sizes = {"old_atoms": old, "new_atoms": new, "shared": shared, "sparsity": sparsity}
        task = dictionary(shape=(3, 8), n_old=5, n_new=7.0, noise=0.0, **sizes)
        assert (task.old_atoms.size, task.new_atoms.size) == (old, new)
        assert np.intersect1d(task.old_atoms, task.new_atoms).size == shared
        np.testing.assert_array_equal(task.new, task.dictionary @ task.new_codes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "`seed` must be a whole number"),
        ({"shape": 3}, "`shape` must be two whole numbers"),
        ({"shape": (25, 0)}, r"`shape\[1\]` must be a whole number ≥ 1, got 0"),
        ({"old_atoms": 51}, "`old_atoms` must be at most 50, the number of all atoms, got 51"),
        ({"shared": 9}, "`shared` must be from 10 to 20 for 40 old and 20 new of 50 atoms, got 9"),
        ({"shared": 21}, "`shared` must be from 10 to 20"),
        ({"sparsity": 21}, "`sparsity` must be at most 20, the number of atoms, got 21"),
        ({"n_old": 0}, "`n_old` must be a whole number"),
        ({"noise": -0.1}, "`noise` must be a finite number ≥ 0, got -0.1"),
    ],
)
def test_a_dictionary_that_cannot_be_made_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dictionary(**arguments)
