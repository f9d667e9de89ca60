"""The studies, by the names of the command."""

from __future__ import annotations

from tiebreak.studies.ablation import Ablation
from tiebreak.studies.coverage import Coverage
from tiebreak.studies.dictionary import ContinualDictionary
from tiebreak.studies.examples import Examples
from tiebreak.studies.fairness import Fairness
from tiebreak.studies.levels import NearTies
from tiebreak.studies.published import Published
from tiebreak.studies.rates import Rates
from tiebreak.studies.regression import Regression
from tiebreak.studies.rivals import Rivals
from tiebreak.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Regression(),
        NearTies(),
        ContinualDictionary(),
        Ablation(),
        Rates(),
        Coverage(),
        Fairness(),
        Rivals(),
        Examples(),
        Published(),
    )
}
