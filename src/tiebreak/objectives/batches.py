"""Batches of sums: how the samples of two terms become one array of integers.

A batch of a sum of N samples holds indices below N, as the batch of all samples does; or N + 2 c for a sample c that the
first term drew and N + 2 c + 1 for one that the second drew, in whatever way they code their samples. If one term alone is
sampled, its batch is that of the sum.
"""

from __future__ import annotations

import numpy as np

from tiebreak.engine import kernel


@kernel
def batches_of_terms(objective, batch):
    """Return the batches of both terms, in their own codes, and what the means over them count in the mean over all."""
    n, m = objective.n_first, objective.n_second
    if n == 0 or m == 0:
        return batch if n > 0 else objective.only, batch if m > 0 else objective.only, 1.0, 1.0
    ordered = np.empty_like(batch)
    count = decode(batch, n, n + m, ordered)
    scale = (n + m) / batch.size
    return ordered[:count], ordered[count:], (count / n) * scale, ((batch.size - count) / m) * scale


@kernel
def encode(drawn, unit, start, out):
    """Set the batch of a sum to samples that a term drew."""
    for k in range(out.size):
        out[k] = start + unit * drawn[k]


@kernel
def decode(batch, n, total, out):
    """Sort a batch by term, in the terms' own codes: first those of the first term, whose number is returned."""
    count = 0
    for k in range(batch.size):
        code = batch[k]
        if code < n:
            out[count] = code
            count += 1
        elif code >= total and (code - total) % 2 == 0:
            out[count] = (code - total) // 2
            count += 1
    place = count
    for k in range(batch.size):
        code = batch[k]
        if n <= code < total:
            out[place] = code - n
            place += 1
        elif code >= total and (code - total) % 2 == 1:
            out[place] = (code - total) // 2
            place += 1
    return count
