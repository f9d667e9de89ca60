"""All kinds of trials: each file registers its own when it is imported."""

from __future__ import annotations

from campaign import crashes, faults, oracles, proofs, runs, streams, surveys, ties, users
from campaign.trials import KINDS

__all__ = ["KINDS", "crashes", "faults", "oracles", "proofs", "runs", "streams", "surveys", "ties", "users"]
