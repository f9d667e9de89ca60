"""What SECURITY.md promises: no pickle, no eval, no other programs."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import tiebreak

SOURCE = Path(tiebreak.__file__).parent
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "subprocess", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "compile", "os.system", "os.popen", "joblib.load", "pandas.read_pickle"}


def offences(code: str) -> list[str]:
    """Return what in a source could run what it reads."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found += [name for name in names if name.split(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            plain = any(word.arg == "allow_pickle" and ast.unparse(word.value) == "False" for word in node.keywords)
            found += [name] * (name in UNSAFE_CALLS or (name in {"np.load", "numpy.load"} and not plain))
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_of_the_package_runs_nothing_that_it_reads(path):
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "code",
    ["import pickle", "from subprocess import run", "eval('1')", "np.load(path)", "np.load(path, allow_pickle=True)"],
)
def test_unsafe_code_is_found(code):
    assert len(offences(code)) == 1


class Trap:
    """An object whose unpickling would be noticed."""

    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_a_result_with_a_pickle_in_it_is_refused_and_runs_nothing(tmp_path):
    path = tmp_path / "result.npz"
    np.savez(path, meta=np.array([Trap()], dtype=object), x=np.zeros(2))
    with pytest.raises(ValueError, match="no saved result"):
        tiebreak.Result.load(path)
    assert not Trap.sprung
