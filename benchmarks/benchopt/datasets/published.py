"""Problems that papers of the field have in common: logistic losses on a1a and on breast cancer, integral equations.

a1a is read from the folder that ``TIEBREAK_DATA`` names, and skipped if it is not there.
"""

from __future__ import annotations

from typing import Any

from benchmark_utils.problems import PUBLISHED, makers
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A published problem: the minimiser of g that has the least norm."""

    name = "published"
    parameters = {"problem": list(PUBLISHED)}  # noqa: RUF012
    parameter_template = "{problem}"
    test_config = {"problem": "breast-cancer"}  # noqa: RUF012

    def get_data(self) -> dict[str, Any]:
        return {"make": makers()[self.problem]}
