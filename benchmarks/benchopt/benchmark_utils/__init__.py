"""What the files of this benchmark share.

The problems and their answers are those of ``benchmarks/bank``, and sets are stated for CVXPY as in ``tests/domains``: both
folders are made importable here.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
for _folder in (_ROOT / "benchmarks", _ROOT / "tests" / "domains"):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))
