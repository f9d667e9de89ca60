"""The problems of the paper: regression on page views that are generated, and a dictionary that learns without forgetting.

J. Cao, R. Jiang, N. Abolfazli, E. Yazdandoost Hamedani, A. Mokhtari, *Projection-free methods for stochastic simple bilevel
optimization with convex lower-level problem*, NeurIPS 2023.
"""

from __future__ import annotations

from typing import Any

from benchmark_utils.problems import PAPER, makers
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A problem of the paper; f of the dictionary is not convex, and its best known value takes some minutes to find."""

    name = "paper"
    parameters = {"problem": list(PAPER)}  # noqa: RUF012
    parameter_template = "{problem}"
    test_config = {"problem": "regression"}  # noqa: RUF012

    def get_data(self) -> dict[str, Any]:
        return {"make": makers()[PAPER[self.problem]]}
