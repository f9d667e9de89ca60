"""
A stream, and bounds with a confidence
======================================

Readings of sensors arrive one by one and are never stored. Forty sensors measure six quantities, so that many ways to
weigh them predict equally well; we want the one of smallest norm, which is the least sensitive to noise in single
sensors. Nothing about the stream is known exactly. Still each answer has bounds, which hold with a probability that
you choose.
"""

import matplotlib.pyplot as plt
import numpy as np

import tiebreak

rng = np.random.default_rng(0)
SENSORS, QUANTITIES, NOISE = 40, 6, 0.3
mixing = rng.standard_normal((QUANTITIES, SENSORS)) / np.sqrt(QUANTITIES)
influence = rng.uniform(-1.0, 1.0, size=QUANTITIES)


def draw(rng, size):
    quantities = rng.standard_normal((size, QUANTITIES))
    return quantities @ mixing, quantities @ influence + NOISE * rng.standard_normal(size)


def value_and_grad(x, batch):
    readings, wanted = batch
    residual = readings @ x - wanted
    return 0.5 * np.mean(residual**2), readings.T @ residual / len(wanted)


stream = tiebreak.Stream(draw, value_and_grad, dimension=SENSORS, convex=True, floor=0.0)
problem = tiebreak.Problem(upper=tiebreak.SquaredNorm(), lower=stream, domain=tiebreak.L2Ball(1.5))

# %%
# One run
# -------
#
# The method is SBCGI, which needs two small batches an iteration. The callback keeps the points on the way, to
# compare them with the truth, which is known here because the data are generated.

points = []
result = tiebreak.minimize(
    problem,
    max_queries=200_000,
    delta=0.05,
    callback=lambda snapshot: points.append((sum(snapshot.record[2:4]), snapshot.x)),
)
print(result)


def true_gap(x):
    """g(x) − g*, by the distribution that the samples come from."""
    return 0.5 * np.sum((mixing @ x - influence) ** 2)


answer = np.linalg.pinv(mixing) @ influence
print(
    "distance to the least-norm answer:", np.linalg.norm(result.x - answer).round(4), "of", np.linalg.norm(answer).round(4)
)

# %%
# More fresh samples, better bounds
# ---------------------------------
#
# ``certify`` looks at the answer with samples that the run has not seen. Of a hundred such certificates, one or none
# fails with ``delta=0.01``.

sizes = np.array([1000, 4000, 16_000, 64_000, 256_000])
certificates = [tiebreak.certify(problem, result.x, samples=int(size), delta=0.01) for size in sizes]

# %%
# What is known, and what is true
# -------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
left.plot([n for n, _ in points], [true_gap(x) for _, x in points], color="#2a6fbb", label="true gap")
left.plot(result.history.queries, result.history.lower_bound_gap, color="#c2486d", label="bound, 95 % confidence")
left.set(xscale="log", yscale="log", xlabel="samples drawn by the run", ylabel="lower gap g(x) − g*")
left.set_title("during the run", fontsize=11)
right.plot(
    sizes, [c.lower_bound_gap for c in certificates], "*-", color="#c2486d", markersize=10, label="bound, 99 % confidence"
)
right.axhline(true_gap(result.x), color="#2a6fbb", label="true gap of the answer")
right.set(xscale="log", xlabel="fresh samples for the certificate")
right.set_title("the answer, certified", fontsize=11)
for panel in (left, right):
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False)
plt.show()
