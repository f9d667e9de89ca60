"""
Least norm, and how well to fit
===============================

An equation that blurs, A x = b, has many solutions that differ by what the blur hides. The one of least norm is the usual
choice, and with noise in b it is useless: it fits the noise. Regularisation adds a penalty, whose weight means nothing by
itself. A near tie asks the question the other way round: how well is b to be fitted? Of all x that fit as well, it takes
the one of least norm.
"""

import matplotlib.pyplot as plt
import numpy as np

import tiebreak

# %%
# Phillips' integral equation (1962): the kernel 1 + cos(π s / 3) on −3 < s < 3 blurs a function of the same shape.

n, noise = 64, 0.02
s = -6.0 + 12.0 * (np.arange(n) + 0.5) / n
apart = s[:, None] - s[None]
A = np.where(np.abs(apart) < 3.0, 1.0 + np.cos(np.pi * apart / 3.0), 0.0) * 12.0 / n
truth = np.where(np.abs(s) < 3.0, 1.0 + np.cos(np.pi * s / 3.0), 0.0)
b = A @ truth + noise * np.random.default_rng(0).standard_normal(n)

norm, fit = tiebreak.SquaredNorm(), tiebreak.LeastSquares(A, b)
box = tiebreak.Box(-10.0, 10.0, n)
problem = tiebreak.Problem(upper=norm, lower=fit, domain=box)
print(tiebreak.ties(problem))

# %%
# Fit as well as the noise
# ------------------------
#
# The mean squared residual of the truth is about noise². So is the level of g that a good answer should have: it is what
# ``tolerance`` says. The minimum of g is far below it.

least = tiebreak.minimize(problem)
near = tiebreak.minimize(tiebreak.Problem(norm, fit, box, tolerance=0.5 * noise**2))
print(near)

# %%
# What is left of the noise
# -------------------------
#
# On the right the frontier: the norm against the fit. It falls steeply at first, by what the exact answer spends on noise.
# Beyond the level of the noise it costs more and more of the fit to make the norm a little smaller.

front = tiebreak.frontier(problem, np.geomspace(1e-2, 1e4, 25) * 0.5 * noise**2)
tolerances = np.array([point.tolerance for point in front.points]) / (0.5 * noise**2)
norms = np.sqrt([2 * point.upper for point in front.points])

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained", width_ratios=[3, 2])
left.plot(s, least.x, color="#d1642b", linewidth=0.9, label="least norm of the best fits")
left.plot(s, near.x, color="#2a6fbb", linewidth=2.0, label="least norm where the fit is that of the noise")
left.plot(s, truth, color="black", linestyle="--", linewidth=1.2, label="truth")
left.set(xlabel="s", ylabel="x(s)", ylim=(-11.0, 16.0))
right.plot(tolerances, norms, "o-", color="#2a6fbb", markersize=4)
right.axhline(np.linalg.norm(truth), color="black", linestyle="--", linewidth=1.2)
right.annotate("truth", (tolerances[-1], np.linalg.norm(truth)), xytext=(0, 5), textcoords="offset points", ha="right")
right.axvline(1.0, color="0.6", linewidth=1.0)
right.annotate("noise", (1.0, norms.max()), xytext=(5, 0), textcoords="offset points", color="0.4", va="top")
right.set(xscale="log", yscale="log", xlabel="tolerance ε / (noise² / 2)", ylabel="norm of the answer")
right.set_yticks([4, 6, 10, 20, 40], ["4", "6", "10", "20", "40"])
right.minorticks_off()
for panel in (left, right):
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False, loc="upper center")
plt.show()
