"""Several methods on one problem."""

from __future__ import annotations

import math
import sys

import pytest
from conftest import QUICK

from tiebreak import SBCGF, MethodTable, OracleError, Status, compare, minimize

MODULE = sys.modules["tiebreak.driver.compare"]
OTHER = SBCGF(step=1e-3, slack=1e-6)


@pytest.fixture
def table(problem) -> MethodTable:
    return compare(problem, {"quick": QUICK, "refusing": "mng", "careful": OTHER}, max_queries=3000, seeds=2)


def test_every_run_is_the_one_that_minimize_makes(problem, table):
    assert list(table.results) == ["quick", "careful"]
    for seed, result in enumerate(table.results["quick"]):
        assert result.x.tobytes() == minimize(problem, QUICK, max_queries=3000, seed=seed).x.tobytes()


def test_the_table_has_one_line_per_method_with_medians_and_presets(table):
    head, quick, refusing, careful, seeds = str(table).splitlines()
    assert head.split()[:4] == ["method", "preset", "f", "g"]
    assert quick.split()[:2] == ["quick", QUICK.preset] and quick.endswith("QUERIES")
    first, second = (result.upper for result in table.results["quick"])
    assert quick.split()[2] == f"{(first + second) / 2:.3g}"
    assert careful.startswith("careful")
    assert "refused: the method 'mng' needs an upper objective that is quadratic" in refusing
    assert seeds == "medians of 2 seeds"
    assert repr(table) == table.table() == str(table)


def test_a_frame_has_one_row_per_run_and_refusal(table):
    frame = table.to_frame()
    assert list(frame["method"]) == ["quick", "quick", "refusing", "careful", "careful"]
    assert list(frame["seed"]) == [0, 1, 0, 0, 1]
    assert frame["lower_gap_bound"][1] == table.results["quick"][1].lower_gap_bound
    assert math.isnan(frame["upper"][2]) and "quadratic" in frame["status"][2]


def test_a_frame_without_pandas_names_the_command(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install 'tiebreak\\[pandas\\]'"):
        table.to_frame()


def test_the_figure_has_one_colour_and_one_entry_per_method(table):
    figure = table.plot()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == [f"quick (preset {QUICK.preset})", f"careful (preset {OTHER.preset})"]
    assert all(label.startswith("while ") for label in labels[2:])  # what dotted and dashed parts are
    solid = [line for line in figure.axes[0].lines if line.get_linestyle() == "-"]
    assert len(solid) == 4
    assert len({line.get_color() for line in solid}) == 2


def test_methods_of_one_name_are_numbered_and_auto_tells_its_choice(problem):
    table = compare(problem, [QUICK, OTHER, "auto"], max_queries=3000)
    assert list(table.methods) == ["sbcgf", "sbcgf (2)", "auto"]
    assert table.rows[2].method == f"auto: {table.results['auto'][0].method.name}"


def test_where_all_methods_refuse_there_is_a_table_and_nothing_to_draw(problem):
    table = compare(problem, ["mng"], max_queries=3000)
    assert "refused" in str(table)
    with pytest.raises(ValueError, match="nothing to draw"):
        table.plot()


def interrupting(monkeypatch, at, after_a_result):
    made = []

    def run(*args, **kwargs):
        made.append(args)
        if len(made) < at:
            return minimize(*args, **kwargs)
        if not after_a_result:
            raise KeyboardInterrupt
        return minimize(*args, **kwargs, callback=raise_ctrl_c)

    def raise_ctrl_c(snapshot):
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "minimize", run)
    return made


def test_ctrl_c_keeps_the_runs_that_are_done(problem, monkeypatch):
    made = interrupting(monkeypatch, 2, after_a_result=False)
    table = compare(problem, [QUICK, OTHER, "cg-bio"], max_queries=3000)
    assert list(table.results) == ["sbcgf"] and len(made) == 2
    assert len(str(table).splitlines()) == 2


def test_ctrl_c_during_a_run_keeps_its_point_too(problem, monkeypatch):
    interrupting(monkeypatch, 2, after_a_result=True)
    table = compare(problem, [QUICK, OTHER, "cg-bio"], max_queries=3000)
    assert [results[0].status for results in table.results.values()] == [Status.QUERIES, Status.INTERRUPTED]


def test_ctrl_c_before_anything_is_done_is_raised(problem, monkeypatch):
    interrupting(monkeypatch, 1, after_a_result=False)
    with pytest.raises(KeyboardInterrupt):
        compare(problem, [QUICK], max_queries=3000)


def test_a_function_that_fails_is_no_refusal(problem, monkeypatch):
    def failing(*args, **kwargs):
        raise OracleError("`loss` raised OSError: gone", None)

    monkeypatch.setattr(MODULE, "minimize", failing)
    with pytest.raises(OracleError, match="gone"):
        compare(problem, [QUICK], max_queries=3000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": "sbcgf"}, "`methods` must be a list of names and configured methods, or a dict"),
        ({"methods": []}, "`methods` must name at least one method"),
        ({"methods": ["sbcgx"]}, "`method` must be one of"),
        ({"seeds": 0}, "`seeds` must be a whole number ≥ 1, got 0"),
        ({"max_queries": 0}, "`max_queries` must be a whole number ≥ 1, got 0"),
        ({"max_query": 100}, "`max_query` must be left out: compare passes on `max_queries`"),
        ({"checkpoint": "run.npz"}, "`checkpoint` must be left out"),
        ({"x0": [9.0] * 18}, "`x0` must lie in the domain"),
        ({"confidence": 2.0}, "`confidence` must be a probability between 0 and 1"),
        ({"check": "no"}, "`check` must be True or False"),
        ({"progress": "yes"}, "`progress` must be True or False"),
    ],
)
def test_a_wrong_argument_is_an_error_before_any_run(problem, monkeypatch, arguments, message):
    monkeypatch.setattr(MODULE, "minimize", None)
    with pytest.raises(ValueError, match=message):
        compare(problem, **{"methods": [QUICK], **arguments})
