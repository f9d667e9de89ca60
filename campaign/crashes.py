"""Processes that are killed, disks that are full, and many processes that compile the same code at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from campaign.trials import Round, kind

ROOT = Path(__file__).parents[1]
KILLS = 5  # kills per round
AT_ONCE = 6


def python(*arguments: str, **environment: str) -> Any:
    """Start Python in the folder of the project."""
    where = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": where, **environment}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)


@kind("kill -9 and full disks", weight=2.0, rounds=40)
def killed_runs(trial: Round) -> None:
    """Kill runs at random moments and resume them: all bits are those of an uninterrupted run."""
    if not hasattr(os, "fork"):
        return
    seed = int(trial.rng.integers(2**31))
    with tempfile.TemporaryDirectory() as folder:
        process = python("-m", "campaign.killing", str(seed), str(KILLS), folder)
        out, errors = process.communicate()
    again = f"mkdir /tmp/killed && python -m campaign.killing {seed} {KILLS} /tmp/killed"
    for line in out.splitlines():
        report = json.loads(line)
        trial.tried(max(report.get("kills", 1), 1))
        if report["differs"]:
            trial.wrong(
                f"the resumed run differs from the uninterrupted one in {report['differs']!r}", f"{again}\n# {report}"
            )
        elif not report["well"]:
            trial.lost(f"the run was lost: {report}", f"{again}\n{errors[-2000:]}")
    if process.returncode != 0:
        trial.tried()
        trial.lost("the process that starts runs ended", f"{again}\n{errors[-3000:]}")


COLD = """
import numpy as np, tiebreak
rng = np.random.default_rng(0)
A, c, a = rng.standard_normal((5, 8)), rng.standard_normal(8), rng.standard_normal(8)
value, gradient = tiebreak.LeastSquares(A, A @ c).value_and_gradient(a)
cut = tiebreak.L1Ball(1.0).cut_lmo(c, a, -0.1)
print(value.hex(), gradient.tobytes().hex(), cut.point.tobytes().hex(), cut.multiplier.hex())
"""


@kind("processes at once on a cold cache", weight=0.5, rounds=1)
def cold_cache(trial: Round) -> None:
    """Start some processes at once that compile and store the same code: all give the same bits, and so does one more."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [python("-c", COLD, TIEBREAK_CACHE=folder) for _ in range(AT_ONCE)]
        answers = [(*process.communicate(), process.returncode) for process in processes]
        last = python("-c", COLD, TIEBREAK_CACHE=folder)
        answers.append((*last.communicate(), last.returncode))
    trial.tried(len(answers))
    script = f"# {AT_ONCE} at once, with TIEBREAK_CACHE at an empty folder:\n{COLD}"
    for out, errors, status in answers:
        if status != 0:
            trial.lost(f"a process ended with {status}", f"{script}\n{errors[-2000:]}")
        elif out != answers[-1][0]:
            trial.wrong("two processes differ", f"{script}\n# {out}# {answers[-1][0]}")
        elif errors.strip():
            trial.wrong(f"a process complains: {errors.strip()[:300]}", script)
