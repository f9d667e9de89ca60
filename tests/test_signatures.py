"""Functions outside kernels have full signatures, and no registered function is nameless."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tiebreak

ROOT = Path(tiebreak.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
COMPILED = {"kernel", "generic", "register", "overload"}  # decorators of what Numba compiles, or may


def functions(path):
    """Yield the functions of a file that are neither kernels, nor generic, nor inside other functions."""
    waiting = [ast.parse(path.read_text())]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.ClassDef):
                waiting.append(node)
            elif isinstance(node, ast.FunctionDef):
                yield node


def decorators(function):
    for node in function.decorator_list:
        node = node.func if isinstance(node, ast.Call) else node
        yield node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_outside_kernels_say_what_they_take_and_return(path):
    for function in functions(path):
        if COMPILED.isdisjoint(decorators(function)):
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            missing = [each.arg for each in arguments if each.annotation is None and each.arg not in ("self", "cls")]
            assert not missing, f"{function.name} at line {function.lineno} does not say what {missing} are"
            assert function.returns is not None, f"{function.name} at line {function.lineno} does not say what it returns"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_registered_for_a_type_has_a_name(path):
    assert not [function.lineno for function in functions(path) if function.name == "_"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_longer_than_a_reader_can_hold(path):
    assert len(path.read_text().splitlines()) <= 450
