"""Build the wheel and the sdist in dist/, look at them, and try the wheel in an empty environment outside the checkout.

``make package`` runs it. The steps end at the first that fails:

1. build both, and a wheel from the checkout, which must hold the same files as the one that the sdist gives, and all of src;
2. ``twine check --strict`` and ``check-wheel-contents``;
3. metadata: the licence, and a README whose links all have a host;
4. install the wheel, and nothing but what it asks for, into a new virtual environment;
5. there: the command, and the Python code of the README.
"""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
RELATIVE = re.compile(r'\]\((?![a-z]+:|#)([^)]*)\)|(?:src|srcset|href)="(?![a-z]+:|#)([^"]*)"')
WANTED = ("tests/conftest.py", "docs/conf.py", "examples", "CHANGELOG.md", "LICENSE", "CITATION.cff")  # what the sdist holds

SMOKE = """
import importlib.metadata, pathlib, sys
import tiebreak
home = pathlib.Path(tiebreak.__file__).resolve()
assert home.is_relative_to(pathlib.Path(sys.prefix).resolve()), f"{home} is not the installed package"
assert tiebreak.__version__ == importlib.metadata.version("tiebreak")
assert (home.parent / "py.typed").exists()
missing = [name for name in tiebreak.__all__ if not hasattr(tiebreak, name)]
assert not missing, missing
problem = tiebreak.Problem(tiebreak.SquaredNorm(), tiebreak.LeastSquares([[1.0, 1.0]], [1.0]), tiebreak.L1Ball(2.0))
result = tiebreak.minimize(problem, max_queries=10_000)
assert abs(result.x - 0.5).max() < 1e-6, result
print(f"tiebreak {tiebreak.__version__} on Python {sys.version.split()[0]}: {result.status.name}, x = {result.x}")
"""


def run(*command: object, **options: object) -> None:
    """Run a program; its failure ends this one."""
    began = time.monotonic()
    subprocess.run([str(word) for word in command], check=True, **options)
    print(
        f"-- {Path(str(command[0])).name} {' '.join(map(str, command[1:3]))[:60]!r}: {time.monotonic() - began:.0f} s",
        flush=True,
    )


def built() -> tuple[Path, Path]:
    """Return the wheel and the sdist; the wheel is built from the sdist, and holds what one from the checkout does."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT, stdout=subprocess.DEVNULL)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, stdout=subprocess.DEVNULL)
        (other,) = Path(folder).glob("*.whl")
        assert contents(wheel) == contents(other), "the wheel from the sdist differs from that of the checkout"
    lacking = sorted(sources(ROOT / "src") - set(contents(wheel)))
    assert not lacking, f"the wheel lacks {lacking}"
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    absent = [name for name in WANTED if not any(each == name or each.startswith(f"{name}/") for each in names)]
    assert not absent, f"the sdist lacks {absent}"
    return wheel, sdist


def sources(folder: Path) -> set[str]:
    """Return the files below a folder, without what Python has compiled."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in files}


def contents(wheel: Path) -> dict[str, str]:
    """Return a hash of each file in a wheel."""
    with zipfile.ZipFile(wheel) as file:
        return {name: hashlib.sha256(file.read(name)).hexdigest() for name in file.namelist()}


def check_metadata(wheel: Path) -> None:
    """Look at the licence and at the README as the package index shows it."""
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(file.read(name))
    assert metadata["License-Expression"] == "BSD-3-Clause", metadata["License-Expression"]
    prose = re.sub(r"^```.*?^```", "", metadata.get_payload(), flags=re.MULTILINE | re.DOTALL)
    links = [one or other for one, other in RELATIVE.findall(prose)]
    assert not links, f"links of the README that no package index can follow: {links}"


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment, and use it there."""
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python, work = binaries / "python", folder / "work"
    work.mkdir()
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=work)
    run(python, "-m", "pip", "check", cwd=work)
    size = sum(path.stat().st_size for path in (folder / "venv").rglob("*") if path.is_file() and not path.is_symlink())
    print(f"installed: {size / 1e6:.0f} MB")
    environment = {**os.environ, "MPLBACKEND": "agg"}
    environment.pop("PYTHONPATH", None)
    options = {"cwd": work, "env": environment}
    run(python, "-I", "-W", "error", "-c", SMOKE, **options)
    run(binaries / "tiebreak", "methods", stdout=subprocess.DEVNULL, **options)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks, "the README has no code"
    (work / "readme.py").write_text("\n".join(blocks), encoding="utf-8")
    run(python, "readme.py", **options)


def main() -> None:
    """Do all steps."""
    wheel, sdist = built()
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    run(Path(sys.executable).with_name("check-wheel-contents"), wheel)
    check_metadata(wheel)
    with tempfile.TemporaryDirectory() as folder:
        try_wheel(wheel, Path(folder))


if __name__ == "__main__":
    main()
