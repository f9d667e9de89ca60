"""All kinds of trials: each file registers its own when it is imported."""

from __future__ import annotations

from campaign import oracles, proofs
from campaign.trials import KINDS

__all__ = ["KINDS", "oracles", "proofs"]
