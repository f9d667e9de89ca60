"""The studies, by the names of the command."""

from __future__ import annotations

from tiebreak.experiments.regression import Regression
from tiebreak.experiments.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (Regression(),)}
