"""The methods, one file per update rule. A new one is listed here."""

from __future__ import annotations

import difflib
from typing import Any

from tiebreak.methods.accelerated import BiFISTA
from tiebreak.methods.active_set import ActiveSet
from tiebreak.methods.agm_bio import AGMBiO
from tiebreak.methods.airg import AIRG
from tiebreak.methods.auto import Auto
from tiebreak.methods.barrier import DBGD, DBGDSpider, DBGDSto, DBGDStorm
from tiebreak.methods.base import Method
from tiebreak.methods.bigsam import BiGSAM
from tiebreak.methods.bisec_bio import BisecBiO
from tiebreak.methods.cutting import CGBiO
from tiebreak.methods.extragradient import ARIPSeG
from tiebreak.methods.fcbio import FCBiO
from tiebreak.methods.fista import FISTA
from tiebreak.methods.frank_wolfe import SpiderFW, StormFW
from tiebreak.methods.mng import MNG
from tiebreak.methods.penalised import PBAPG
from tiebreak.methods.regularised import IRCG, IRFSCG, IRSCG
from tiebreak.methods.sample_average import SampleAverage
from tiebreak.methods.sbcgf import SBCGF, SBCGFM
from tiebreak.methods.sbcgi import SBCGI, SBCGIM
from tiebreak.methods.switching import SwitchingGradient
from tiebreak.methods.variance_reduced import PAVR

STOCHASTIC = (
    *(SBCGI, SBCGF, SBCGIM, SBCGFM, StormFW, SpiderFW, ARIPSeG, DBGDSto, DBGDStorm, DBGDSpider, IRSCG, IRFSCG),
    *(PAVR, SampleAverage),
)
EXACT = (ActiveSet, CGBiO, IRCG, DBGD, BiGSAM, AIRG, MNG, PBAPG, BiFISTA, AGMBiO, FCBiO, BisecBiO, SwitchingGradient, FISTA)
METHODS: dict[str, type[Method]] = {cls.name: cls for cls in (Auto, *STOCHASTIC, *EXACT)}


def as_method(value: Any) -> Method:
    """Return a configured method from a name or a configured method."""
    if isinstance(value, Method):
        return value
    if isinstance(value, type) and issubclass(value, Method):
        return value()
    if isinstance(value, str) and value.lower() in METHODS:
        return METHODS[value.lower()]()
    near = difflib.get_close_matches(str(value).lower(), METHODS, n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(
        f"`method` must be one of {', '.join(METHODS)}, or a configured one such as SBCGI(batch_size=8), got {value!r}{hint}"
    )


__all__ = [
    "AIRG",
    "DBGD",
    "FISTA",
    "IRCG",
    "IRFSCG",
    "IRSCG",
    "METHODS",
    "MNG",
    "PAVR",
    "PBAPG",
    "SBCGF",
    "SBCGFM",
    "SBCGI",
    "SBCGIM",
    "AGMBiO",
    "ARIPSeG",
    "ActiveSet",
    "Auto",
    "BiFISTA",
    "BiGSAM",
    "BisecBiO",
    "CGBiO",
    "DBGDSpider",
    "DBGDSto",
    "DBGDStorm",
    "FCBiO",
    "Method",
    "SampleAverage",
    "SpiderFW",
    "StormFW",
    "SwitchingGradient",
    "as_method",
]
