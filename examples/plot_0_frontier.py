"""
What a little of the fit buys: the frontier
===========================================

Among all models that fit the training data best, ``minimize`` finds the one with the least validation loss. Often these
models are few, and models that fit *nearly* as well are many and better. How much of the fit should you give up? The
frontier shows the least validation loss for every share of the fit, and proves where it lies.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler, scale

import tiebreak

features, target = load_diabetes(return_X_y=True)
A = scale(PolynomialFeatures(2, include_bias=False).fit_transform(StandardScaler().fit_transform(features)))
b = scale(target)
thirds = np.array_split(np.random.default_rng(0).permutation(len(b)), 3)
train, validation, test = (tiebreak.LeastSquares(A[rows], b[rows]) for rows in thirds)
problem = tiebreak.Problem(upper=validation, lower=train, domain=tiebreak.L1Ball(10.0))

# %%
# Is there a tie?
# ---------------
#
# One of the ten features has two values, so that its square says the same as the feature itself: ``ties`` finds that the
# best fits are a line. Along it the predictions do not change, and neither does f. Nothing is won by the exact tie.

found = tiebreak.ties(problem, keep=0.99)
print(found)

# %%
# The frontier
# ------------
#
# Each answer comes with two proven bounds of the least f. The third objective is the loss on data that no model has seen.

front = tiebreak.frontier(problem, points=12, also=test)
print(front)

# %%
# Keep 90 %
# ---------
#
# In the blue band lies the least validation loss for *every* tolerance, proven. The test loss falls with it, as long as
# both samples have a say. Beyond some tenth of the fit the validation data are all that counts, and the model adapts to
# their noise.

points = [point for point in front.points if point.tolerance > 0.0]
shares = np.array([point.share for point in points])
grid = np.geomspace(shares[0], shares[-1], 300)
floors, ceilings = (
    np.array([bound(front.gain * share) for share in grid]) for bound in (front.band.floor, front.band.ceiling)
)
exact = front.points[0]

figure, panel = plt.subplots(figsize=(8.0, 4.6), layout="constrained")
panel.fill_between(100 * grid, floors, ceilings, color="#2a6fbb", alpha=0.25, label="least validation loss: proven band")
panel.plot(100 * shares, [point.upper for point in points], "o", color="#2a6fbb", markersize=4, label="validation, answers")
panel.plot(100 * shares, [point.also for point in points], "o-", color="#c2486d", markersize=4, label="test, answers")
panel.axhline(exact.upper, color="#2a6fbb", linestyle="--", linewidth=1.0, label="validation, exact tie")
panel.axhline(exact.also, color="#c2486d", linestyle="--", linewidth=1.0, label="test, exact tie")
panel.set(
    xscale="log", xlabel="share of the training fit that is given up, %", ylabel="loss, in units of the target's variance"
)
panel.set_ylim(0.0, None)
panel.grid(alpha=0.25, linewidth=0.6)
panel.spines[["top", "right"]].set_visible(False)
panel.legend(frameon=False, ncols=2, loc="lower left")
plt.show()

# %%
# The answer for a share is a result like any other; ``within`` says that the share is kept, proven.

kept = tiebreak.minimize(tiebreak.Problem(validation, train, tiebreak.L1Ball(10.0), keep=0.9))
print(f"test loss {test.value(kept.x):.3f} (exact tie {exact.also:.3f}), within the tolerance: {kept.within}")
