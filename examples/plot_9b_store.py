"""
A store on disk: from Parquet files to a proven answer
======================================================

Twelve months of measurements are in Parquet files, one per month. Each quantity is measured by two sensors. They agreed
while the data for training were taken, so the training loss cannot tell them apart: it has many minimisers. In the last
month one sensor of each pair has begun to drift. Of all best fits, the one with the least loss on that month relies on the
other one.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow
import pyarrow.parquet

import tiebreak
from tiebreak.data import store

rng = np.random.default_rng(0)
quantities, rows = 8, 5_000
truth = rng.uniform(0.5, 2.0, quantities)
drifting = rng.random(quantities) < 0.5  # whether it is the first sensor of a pair that drifts


def month(number):
    real = rng.standard_normal((rows, quantities))
    drift = (number == 12) * rng.standard_normal((rows, quantities))
    first, second = real + drift * drifting, real + drift * ~drifting
    columns = {f"{kind}{k}": sensor[:, k] for k in range(quantities) for kind, sensor in (("a", first), ("b", second))}
    return pyarrow.table({**columns, "y": real @ truth + 0.5 * rng.standard_normal(rows)})


# %%
# ``store`` reads the files piece by piece and writes their rows, shuffled, to a folder. From there objectives read them in
# place, however large they are; what they take of memory is a few vectors. Before a number is used, the checksums of all
# blocks are verified.

with tempfile.TemporaryDirectory() as folder:
    files = [Path(folder) / f"{number:02}.parquet" for number in range(1, 13)]
    for number, file in enumerate(files, start=1):
        pyarrow.parquet.write_table(month(number), file)
    train = store(files[:11], Path(folder) / "train", target="y", chunk_bytes=1 << 20)
    recent = store(files[11], Path(folder) / "recent", target="y", chunk_bytes=1 << 20)
    print(f"{train.shape[0]:,} rows of {train.shape[1]} columns, and {recent.shape[0]:,}")

    problem = tiebreak.Problem(
        upper=tiebreak.LeastSquares(recent), lower=tiebreak.LeastSquares(train), domain=tiebreak.L1Ball(2.0 * truth.sum())
    )
    result = tiebreak.minimize(problem)
    print(result)
    even = tiebreak.minimize(tiebreak.Problem(tiebreak.SquaredNorm(), problem.lower, problem.domain))
    losses = [problem.upper.value(answer.x) for answer in (even, result)]

# %%
# The answer of least norm relies on both sensors of each pair alike, and pays for it in the last month. Both answers fit the
# training data equally well; that no best fit has a smaller loss in the last month is proven by ``result.upper_gap_bound``.

assert result.upper_gap_bound < 1e-9 * result.upper
figure, panel = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
places = np.arange(quantities)
for k, (answer, label, colour) in enumerate([(even, "least norm", "#d1642b"), (result, "least loss there", "#2a6fbb")]):
    steady = np.where(drifting, answer.x[1::2], answer.x[::2])  # of each pair, the sensor that does not drift
    panel.bar(places + 0.38 * k, steady / truth, 0.36, color=colour, label=f"{label}: {losses[k]:.3f}")
panel.axhline(1.0, color="black", linestyle="--", linewidth=1.0)
panel.set(xlabel="quantity", ylabel="share of the steady sensor", ylim=(0.0, 1.3))
panel.set_xticks(places + 0.19, places + 1)
panel.spines[["top", "right"]].set_visible(False)
panel.legend(frameon=False, loc="upper center", ncols=2, title="loss in the last month")
plt.show()
