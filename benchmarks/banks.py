"""Banks of cuts, and compiled loops over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.domains import cut_lmo, lmo
from tiebreak.engine import kernel


class Bank(NamedTuple):
    """Instances min ⟨c, s⟩ : s ∈ Z, ⟨a, s⟩ ≤ b, one per row."""

    c: np.ndarray
    a: np.ndarray
    b: np.ndarray


@kernel
def cut_all(domain, bank, out, repeats):
    total = 0.0
    for _ in range(repeats):
        for k in range(bank.b.size):
            _, multiplier = cut_lmo(domain, bank.c[k], bank.a[k], bank.b[k], out)
            total += multiplier
    return total


@kernel
def lmo_all(domain, bank, out, repeats):
    total = 0.0
    for _ in range(repeats):
        for k in range(bank.b.size):
            lmo(domain, bank.c[k], out)
            total += out[0]
    return total
