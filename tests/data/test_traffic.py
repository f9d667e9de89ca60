"""Visits of pages and passengers at stops: what is generated, and what is read from files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data import montevideo, pageviews, split, wikimath

VISITS = {"0": {"y": [5, 0, 2]}, "1": {"y": [7, 1, 3]}, "time_periods": 2, "edges": [[0, 1]], "node_ids": {"Pi": 0}}
MATRIX = [[5, 7], [0, 1], [2, 3]]


@pytest.fixture(scope="module")
def visits():
    return pageviews()


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
