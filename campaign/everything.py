"""All kinds of trials: each file registers its own when it is imported."""

from __future__ import annotations

from campaign import faults, oracles, proofs, runs, streams, users
from campaign.trials import KINDS

__all__ = ["KINDS", "faults", "oracles", "proofs", "runs", "streams", "users"]
