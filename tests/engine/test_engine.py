"""Generic functions, the two ways to run, and the disk cache."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tiebreak
from tiebreak.engine import NO_KERNELS, compilable, generic, interpreted, kernel

SOURCE = Path(tiebreak.__file__).parent


@generic
def area(shape, factor):
    """The area of a shape."""


class Square(NamedTuple):
    side: float


class Shape:
    __slots__ = ()


class _Disk(NamedTuple):
    radius: float
    points: np.ndarray


class Disk(Shape, _Disk):
    __slots__ = ()


class Named:
    """Not a named tuple: Numba cannot see it."""

    def __init__(self, size):
        self.size = size


@area.register(Square)
def _(shape, factor):
    return factor * shape.side**2


@area.register(Shape)
def _(shape, factor):
    return factor * 3.0 * shape.radius**2


@area.register(Named)
def _(shape, factor):
    return f"{factor} × {shape.size}"


@kernel
def total(first, second, factor):
    return area(first, factor) + area(second, factor)


def test_an_implementation_is_chosen_by_the_first_argument_in_both_ways_to_run():
    disk = Disk(1.0, np.zeros(2))
    assert total(Square(2.0), disk, 2.0) == 14.0
    assert total.compiled.signatures
    with interpreted():
        assert total(Square(2.0), disk, 2.0) == 14.0
    assert area(disk, 1.0) == 3.0  # inherited from Shape


def test_a_value_that_numba_cannot_see_runs_as_python():
    assert area(Named("large"), 2) == "2 × large"
    assert not compilable((1.0, Named("large")))
    assert compilable((1.0, np.zeros(2), Square(1.0), None))


def test_a_missing_capability_is_named():
    with pytest.raises(TypeError, match="str cannot do `area`: no implementation is registered for it"):
        area("x", 1.0)
    assert not area.supports("x")
    assert area.supports(Square(1.0))


def test_an_implementation_cannot_be_replaced():
    with pytest.raises(TypeError, match="area is already registered for Square.*define a new class"):
        area.register(Square)(lambda shape, factor: 0.0)


def test_interpreted_mode_ends_with_its_block():
    with pytest.raises(ZeroDivisionError), interpreted():
        1 / 0
    calls = []

    @kernel
    def seen(x):
        calls.append(x)  # a compiled kernel cannot do this

    with interpreted():
        seen(1.0)
    assert calls == [1.0]
    with pytest.raises(Exception, match="calls|list"):
        seen(1.0)


PROGRAM = """
import json, sys, numpy as np, tiebreak
problem = tiebreak.Problem(
    tiebreak.SquaredNorm(), tiebreak.LeastSquares(np.array([[1.0, 2.0, 0.5]]), np.array([1.0])), tiebreak.L1Ball(2.0)
)
result = tiebreak.minimize(problem, tiebreak.SBCGF(step=0.01, slack=0.0), max_queries=300)
loop = tiebreak.SBCGF.loop.compiled
print(json.dumps({"g": result.lower, "hits": sum(loop.stats.cache_hits.values()),
                  "misses": sum(loop.stats.cache_misses.values())}))
"""


def run_program(package: Path, cache: Path, program: str = PROGRAM) -> dict:
    environment = {**os.environ, "PYTHONPATH": str(package), "TIEBREAK_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def package(tmp_path):
    shutil.copytree(SOURCE, tmp_path / "source" / "tiebreak", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "source"


def test_the_cache_hits_in_a_new_process_and_never_runs_an_old_kernel(package, tmp_path):
    cache = tmp_path / "cache"
    first = run_program(package, cache)
    again = run_program(package, cache)
    assert (first["hits"], first["misses"]) == (0, 1)
    assert (again["hits"], again["misses"]) == (1, 0)
    assert again["g"] == first["g"]

    # A larger loss in another file than the loop's must be seen by the loop.
    losses = package / "tiebreak" / "objectives" / "losses.py"
    text = losses.read_text()
    losses.write_text(text.replace("return 0.5 * residual * residual,", "return 5.0 * residual * residual,"))
    assert losses.read_text() != text
    changed = run_program(package, cache)
    assert (changed["hits"], changed["misses"]) == (0, 1)
    assert changed["g"] != first["g"]

    losses.write_text(text)
    back = run_program(package, cache)
    assert (back["hits"], back["g"]) == (1, first["g"])


LATE_EDIT = """
import json, pathlib, sys, tiebreak
source = pathlib.Path(tiebreak.__file__).parent / "objectives" / "losses.py"
if len(sys.argv) > 1:
    source.write_text(source.read_text().replace("return 0.5 * residual * residual,", "return 7.0 * residual * residual,"))
print(json.dumps({"value": tiebreak.LeastSquares([[1.0]], [1.0]).value([0.0])}))
"""


def test_an_edit_after_the_import_does_not_store_old_code_under_the_new_name(package, tmp_path):
    before = run_program(package, tmp_path / "cache", LATE_EDIT.replace("len(sys.argv) > 1", "True"))
    after = run_program(package, tmp_path / "cache", LATE_EDIT)
    assert (before["value"], after["value"]) == (0.5, 7.0)


FOREIGN = PROGRAM.replace(
    "problem =",
    """
from typing import NamedTuple
from tiebreak.objectives import accumulate, draw
class Tilt(NamedTuple):
    weight: float
class Own(tiebreak.Objective, Tilt):
    dimension, n_samples, convex = None, 1, True
@draw.register(Own)
def draw_own(objective, moment, batch):
    return batch
@accumulate.register(Own)
def _(objective, batch, x, w, y, v, out):
    out[0] += (w + v) * objective.weight
    return objective.weight * x[0], objective.weight * y[0]
problem =""",
    1,
).replace("tiebreak.SquaredNorm()", "Own(1.0)")


def test_a_loop_over_a_type_from_outside_is_compiled_but_not_stored(package, tmp_path):
    for _ in range(2):
        assert run_program(package, tmp_path / "cache", FOREIGN)["hits"] == 0


def test_a_damaged_cache_file_is_compiled_anew(package, tmp_path):
    cache = tmp_path / "cache"
    first = run_program(package, cache)
    damaged = list(cache.rglob("advance-*"))
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:50])
    assert run_program(package, cache)["g"] == first["g"]


def test_a_cache_folder_that_cannot_be_written_does_not_stop_a_run(package, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run_program(package, blocked)["misses"] == 1


def test_importing_compiles_nothing_and_leaves_heavy_packages_alone():
    program = """
import json, sys, tiebreak
from numba.core.dispatcher import Dispatcher
import gc
compiled = [d for d in gc.get_objects() if isinstance(d, Dispatcher) and d.py_func.__module__.startswith("tiebreak")]
heavy = [name for name in ("sklearn", "matplotlib", "typer", "pandas", "cvxpy", "jax", "torch") if name in sys.modules]
print(json.dumps({"compiled": [str(d) for d in compiled if d.signatures], "heavy": heavy}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"compiled": [], "heavy": []}


def test_files_that_do_not_count_for_stored_kernels_hold_none_and_give_none_a_constant():
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in NO_KERNELS:
            assert not re.search(r"^@(kernel|generic|\w+\.register)", path.read_text(), re.M), path
        elif path.name != "torch_losses.py":  # which is never compiled
            left_out = "|".join(name.removesuffix(".py") for name in NO_KERNELS if not name.startswith("__"))
            assert not re.search(rf"^from tiebreak\.({left_out})\b", path.read_text(), re.M), path
