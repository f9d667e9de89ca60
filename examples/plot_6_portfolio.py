"""
A robust portfolio, with as little trading as possible
======================================================

A portfolio must keep a promise in each of thirty market scenarios: even in a bad month, its return is not below a
floor. These are thirty second-order cone constraints. Of all portfolios that keep all promises, which one is nearest
to what we hold today? And if no portfolio keeps them all, which one is nearest among those that break them least?
"""

import matplotlib.pyplot as plt
import numpy as np

import tiebreak

rng = np.random.default_rng(4)
ASSETS, SCENARIOS, FLOOR, CAUTION = 12, 30, -4.0, 1.64  # floor in per cent per month; 1.64 deviations: one month in twenty

# %%
# Scenarios
# ---------
#
# Each scenario has expected returns and a covariance, given by a factor L with covariance L Lᵀ, in per cent per month.
# The later assets earn more and are riskier.

risk = np.linspace(1.0, 7.0, ASSETS)
returns = 0.15 * risk + 0.5 * rng.standard_normal((SCENARIOS, ASSETS))
market = rng.uniform(0.3, 1.0, size=(SCENARIOS, 1, 1))
factors = risk[:, None] * np.concatenate(
    [market * np.ones((SCENARIOS, ASSETS, 1)), 0.5 * rng.standard_normal((SCENARIOS, ASSETS, 3))], axis=2
)
today = rng.dirichlet(np.linspace(0.3, 2.0, ASSETS))


def bad_month(weights):
    """The return of one month in twenty in each scenario, in per cent."""
    return returns @ weights - CAUTION * np.linalg.norm(weights @ factors, axis=1)


# %%
# Promises as cones
# -----------------
#
# ``bad_month(w) ≥ FLOOR`` says that (⟨returns, w⟩ − FLOOR, CAUTION · Lᵀ w) lies in the second-order cone.
# ``ConeDistance`` is the mean squared distance from that: zero if all promises are kept.

matrices = np.concatenate([-returns[:, None, :], -CAUTION * factors.transpose(0, 2, 1)], axis=1)
offsets = np.zeros(matrices.shape[:2])
offsets[:, 0] = FLOOR
problem = tiebreak.Problem(
    upper=tiebreak.SquaredNorm(center=today),
    lower=tiebreak.ConeDistance(matrices, offsets, "second-order"),
    domain=tiebreak.Simplex(1.0),
)
result = tiebreak.minimize(problem, max_queries=400_000)
print(result)

# %%
# What changes
# ------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
place = np.arange(1, ASSETS + 1)
left.bar(place - 0.2, 100 * today, 0.4, color="#b9b9b9", label="today")
left.bar(place + 0.2, 100 * result.x, 0.4, color="#c2486d", label="robust, nearest to today")
left.set(xlabel="asset, by risk", ylabel="weight, %", xticks=place, ylim=(0, 28))
left.legend(frameon=False)

order = np.argsort(bad_month(today))
right.axhspan(-20, FLOOR, color="#f6e3de")
right.text(0.98, 0.05, "promise broken", color="#a04a3a", ha="right", transform=right.transAxes)
right.plot(bad_month(today)[order], "o", color="#8b8b8b", label="today")
right.plot(bad_month(result.x)[order], "*", color="#c2486d", markersize=9, label="robust, nearest to today")
right.set(
    xlabel="scenario, worst first", ylabel="return of one month in twenty, %", ylim=(bad_month(today).min() - 0.7, None)
)
right.legend(frameon=False, loc="upper left")
for panel in (left, right):
    panel.spines[["top", "right"]].set_visible(False)
plt.show()
