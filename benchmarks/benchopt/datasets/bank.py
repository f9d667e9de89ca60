"""The bank: problems with known answers, most of them planted, that methods are raced on (``benchmarks/bank``)."""

from __future__ import annotations

from typing import Any

from benchmark_utils.problems import ELSEWHERE, makers
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A problem of the bank, by its name."""

    name = "bank"
    parameters = {"problem": [name for name in makers() if name not in ELSEWHERE]}  # noqa: RUF012
    parameter_template = "{problem}"
    test_config = {"problem": "least-norm"}  # noqa: RUF012

    def get_data(self) -> dict[str, Any]:
        return {"make": makers()[self.problem]}
