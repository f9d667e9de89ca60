"""The studies, by the names of the command."""

from __future__ import annotations

from tiebreak.experiments.ablation import Ablation
from tiebreak.experiments.coverage import Coverage
from tiebreak.experiments.dictionary import ContinualDictionary
from tiebreak.experiments.examples import Examples
from tiebreak.experiments.fairness import Fairness
from tiebreak.experiments.rates import Rates
from tiebreak.experiments.regression import Regression
from tiebreak.experiments.rivals import Rivals
from tiebreak.experiments.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Regression(),
        ContinualDictionary(),
        Ablation(),
        Rates(),
        Coverage(),
        Fairness(),
        Rivals(),
        Examples(),
    )
}
