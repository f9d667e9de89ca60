"""
A stream, and bounds with a confidence
======================================

Parcels take one of twelve routes. How long a route takes is seen only from trips, which come one by one and are not
stored. Four routes are equally fast on average, and faster than all others, but nobody knows which. We want the least
expected time and, among all ways to reach it, the one that spreads the parcels most evenly. On a stream nothing is known
exactly. Still each answer has bounds, which hold with a probability that you choose. They are approximate here: nobody
knows how long a trip may take at most, so they assume that the mean of many trips is nearly normal.
"""

import matplotlib.pyplot as plt
import numpy as np

import tiebreak

times = np.array([38.0, 30.0, 41.0, 34.0, 30.0, 36.0, 45.0, 30.0, 35.0, 30.0, 33.0, 39.0])  # minutes, in the mean
SPREAD = 0.05  # standard deviation of the logarithm of the time of a trip


def draw(rng, size):
    """Return the times of some days, one trip per route."""
    return times * np.exp(SPREAD * rng.standard_normal((size, times.size)) - 0.5 * SPREAD**2)


def value_and_grad(x, trips):
    mean = trips.mean(axis=0)
    return mean @ x, mean


stream = tiebreak.Stream(draw, value_and_grad, dimension=times.size, convex=True, floor=0.0)
problem = tiebreak.Problem(upper=tiebreak.SquaredNorm(), lower=stream, domain=tiebreak.Simplex(1.0))

# %%
# One run
# -------
#
# The method is SBCGI, which needs a few samples per iteration. It moves its cut outwards by three standard errors of its
# estimates. The callback keeps the points on the way, to compare them with the truth. The truth is known here because
# the data are generated.

points = []
result = tiebreak.minimize(problem, max_queries=200_000, callback=lambda snapshot: points.append(snapshot.x))
print(result)
gaps = np.array(points) @ times - times.min()

# %%
# Runs with smaller budgets end farther from the least time, as they know the times of the routes less well.

budgets = [5000, 20_000, 50_000]
runs = [*(tiebreak.minimize(problem, max_queries=budget) for budget in budgets), result]

# %%
# More fresh samples, better bounds
# ---------------------------------
#
# ``certify`` looks at the answer with samples that the run has not seen. With ``confidence=0.99`` it should err at most
# once in a hundred times.

sizes = [500, 2000, 8000, 32_000, 128_000]
certificates = [tiebreak.certify(problem, result.x, samples=size, confidence=0.99) for size in sizes]

# %%
# What is known, and what is true
# -------------------------------
#
# The true gap *rises* during a run. It begins with all parcels on one of the fastest routes: no minute is lost, and
# nothing is spread. From the dotted line on it spreads the parcels, as far as its cut lets it, which is three standard
# errors beyond the least time that it knows of. So some parcels take a route of 33 minutes, which the run cannot yet tell
# from the fastest ones. What falls is the gap at the *end*, with the budget. No bound is below the truth, which the bounds
# do not know.

figure, ((left, middle), (ended, right)) = plt.subplots(2, 2, figsize=(9.6, 7.0), layout="constrained")
order = np.argsort(times, kind="stable")
fastest = times[order] == times.min()
left.bar(np.arange(1, 13), 100 * result.x[order], color=np.where(fastest, "#3a8f5c", "#b9b9b9"))
left.set_xticks(np.arange(1, 13), [f"{time:.0f}" for time in times[order]])
left.set(xlabel="expected time of the route, minutes", ylabel="share of the parcels, %")
left.set_title("the answer: even among the fastest", fontsize=11)

queries = result.history.queries[: len(gaps)]
middle.plot(queries, result.history.lower_gap_bound[: len(gaps)], color="#c2486d", label="bound, 95 % confidence")
middle.plot(queries, gaps, color="#2a6fbb", label="true gap")
middle.axvline(queries[result.history.phase[: len(gaps)] == 1][0], color="0.5", linewidth=1.0, linestyle=":")
middle.set(xscale="log", ylim=(0, 1.2), xlabel="samples drawn by the run", ylabel="g(x) − g*, minutes")
middle.set_title("during the run; dotted: from here on it spreads parcels", fontsize=11)

drawn = [run.queries.total for run in runs]
ended.plot(drawn, [run.lower_gap_bound for run in runs], "*-", color="#c2486d", label="bound, 95 % confidence")
ended.plot(drawn, [run.x @ times - times.min() for run in runs], "o-", color="#2a6fbb", label="true gap")
ended.set(xscale="log", ylim=middle.get_ylim(), xlabel="samples drawn by the run, in all", ylabel="g(x) − g*, minutes")
ended.set_title("at the end of runs with other budgets", fontsize=11)

right.plot(sizes, [c.lower_gap_bound for c in certificates], "*-", color="#c2486d", label="bound, 99 % confidence")
right.axhline(result.x @ times - times.min(), color="#2a6fbb", label="true gap of the answer")
right.set(xscale="log", xlabel="fresh samples for the certificate", ylim=middle.get_ylim())
right.set_title("the answer, certified", fontsize=11)
for panel in (left, middle, ended, right):
    panel.spines[["top", "right"]].set_visible(False)
for panel in (middle, ended, right):
    panel.legend(frameon=False, loc="upper right")
plt.show()
