"""
From one level to the other: the path
=====================================

The training loss of these page views has exactly one minimiser in the ball, so that the validation loss has nothing to
choose from. Models that are nearly as good are many, and most of them are better. How much of the training loss is a
better validation loss worth? ``tiebreak.path`` answers that for every trade-off at once: it follows the models x_λ that
minimise f + λ g, each of which has the least f of all models whose g is no larger, and proves it.
"""

import matplotlib.pyplot as plt
import numpy as np

import tiebreak

data = tiebreak.data.split(tiebreak.data.pageviews(seed=0), seed=0)  # daily visits of pages: predict one day from all others
f, g, test = (tiebreak.LeastSquares(*part) for part in (data.validation, data.train, data.test))
problem = tiebreak.Problem(upper=f, lower=g, domain=tiebreak.L1Ball(10.0))

path = tiebreak.path(problem, weights=np.logspace(-4, 8, 25))
print(path)

# %%
# The price of an exact tie
# -------------------------
#
# The least f for a given g falls with infinite slope where g leaves its minimum: where g is some 1e-6 of g(0) above it,
# f is half of f*. So f* says little about models that are nearly as good, and they are the ones that predict best: the
# test loss is least in between. The grey line is proven, and no model lies below it.

zero = np.zeros(problem.dimension)
points = [point for point in path.points if np.isfinite(point.weight)]
excess = np.array([point.lower - path.floors.lower for point in points]) / g.value(zero)
grid = np.geomspace(excess.min(), excess.max(), 300)
floors = np.array([path.floor(share * g.value(zero)) for share in grid]) / f.value(zero)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
left.plot(excess, [point.upper / f.value(zero) for point in points], "o", color="#2a6fbb", markersize=4, label="$f(x_λ)$")
left.plot(grid, floors, color="0.6", linewidth=1.2, label="proven: no model is below")
left.axhline(path.floor() / f.value(zero), color="#d1642b", linestyle="--", linewidth=1.0, label="proven floor of f*")
left.set_ylabel("validation loss $f / f(0)$")
right.plot(excess, [100 * test.value(point.x) / test.value(zero) for point in points], "o-", color="#3a8f5c", markersize=4)
right.set_ylabel("test loss, % of that of x = 0")
right.set_ylim(0, None)
for panel in (left, right):
    panel.set_xscale("log")
    panel.set_xlabel("training loss above its minimum, $(g − g^*) / g(0)$")
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False)
plt.show()

# %%
# The model that you want
# -----------------------
#
# A tolerance says how much of g you give for f. A thousandth of g(0) makes the test loss about half of what it is at the
# exact tie, and the answer is proven to keep it.

for share in (0.0, 1e-4, 1e-3, 1e-2):
    result = tiebreak.minimize(problem._replace(tolerance=share * g.value(zero)))
    known = {True: "within, proven", False: "above g*, proven", None: "perhaps above g*"}[result.within]
    print(f"ε = {share:6g} g(0): f = {result.upper:.3e}, test loss {test.value(result.x):.3e}, {known}")
