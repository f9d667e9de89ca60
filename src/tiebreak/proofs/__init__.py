"""What is known: certificates, bounds that are exact or from samples, and the lines of which they are made."""

from tiebreak.proofs.certificate import (
    APPROXIMATE,
    Certificate,
    HalfSpace,
    packed,
    proven,
    unpacked,
)
from tiebreak.proofs.certify import certify
from tiebreak.proofs.floors import NOTHING, Allowance, ContradictionError, Floors
from tiebreak.proofs.gradients import Comparison, GradientError, GradientReport, check_gradient, check_gradients
from tiebreak.proofs.prover import Prover, prover_of

__all__ = [
    "APPROXIMATE",
    "NOTHING",
    "Allowance",
    "Certificate",
    "Comparison",
    "ContradictionError",
    "Floors",
    "GradientError",
    "GradientReport",
    "HalfSpace",
    "Prover",
    "certify",
    "check_gradient",
    "check_gradients",
    "packed",
    "proven",
    "prover_of",
    "unpacked",
]
