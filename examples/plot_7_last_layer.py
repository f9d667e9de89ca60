"""
The last layer of a small network, in JAX
=========================================

A network with 200 hidden units separates 40 points in many ways, even if the hidden layer is kept as it is and only
the last one is trained. Among the last layers that fit best, we ask for the one that is best on noisy copies of the
points: both losses are written in JAX.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import tiebreak

rng = np.random.default_rng(0)
HIDDEN = 200
points, label = make_moons(40, noise=0.1, random_state=1)
target = 2.0 * label - 1.0
inner = 2.5 * rng.standard_normal((2, HIDDEN)), 2.0 * rng.standard_normal(HIDDEN)  # the hidden layer


def network(params, inputs):
    hidden = jnp.tanh(inputs @ inner[0] + inner[1])
    return hidden @ params["weight"] + params["bias"]


def loss(params, batch):
    inputs, wanted = batch
    return 0.5 * jnp.mean((network(params, inputs) - wanted) ** 2)


# %%
# Two objectives
# --------------
#
# The lower one has 40 samples and 201 parameters. The upper one is the same loss where points may be anywhere in a
# cloud around the samples. A smoothness constant is given, so that accelerated gradients can be used; the squared
# norm of hidden units is at most 200.

noisy = np.repeat(points, 10, axis=0) + 0.2 * rng.standard_normal((400, 2))
params = {"bias": 0.0, "weight": np.zeros(HIDDEN)}
exact = tiebreak.from_jax(loss, params, (points, target), convex=True, lipschitz=HIDDEN + 1.0)
cloud = tiebreak.from_jax(loss, params, (noisy, np.repeat(target, 10)), convex=True, lipschitz=HIDDEN + 1.0)
problem = tiebreak.Problem(upper=cloud, lower=exact, domain=tiebreak.L2Ball(10.0))
robust = tiebreak.minimize(problem, "pb-apg", max_iterations=3000)
print(robust)

# %%
# For comparison: the last layer that gradients on the training loss alone find from a random start.

start = problem.domain.project(rng.standard_normal(HIDDEN + 1))
usual = tiebreak.minimize(problem, tiebreak.FISTA(level="lower"), x0=start, max_iterations=3000)

# %%
# Two networks that fit the same points
# -------------------------------------
#
# Dots are the training points, the black line is where the decision changes.

grid = np.stack(np.meshgrid(np.linspace(-1.7, 2.7, 160), np.linspace(-1.2, 1.7, 120)), axis=-1)
new_points, new_label = make_moons(4000, noise=0.2, random_state=2)
figure, panels = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True, layout="constrained")
for panel, result, name in zip(panels, (usual, robust), ("some best fit", "the best fit for noisy points"), strict=True):
    found = jax.tree.map(np.float32, exact.parameters(result))  # enough for a picture
    score = np.asarray(network(found, grid))
    right = np.mean((np.asarray(network(found, new_points)) > 0) == new_label)
    colours = panel.contourf(
        *np.moveaxis(grid, -1, 0), score, levels=np.linspace(-2, 2, 17), cmap="RdBu_r", alpha=0.6, extend="both"
    )
    panel.contour(*np.moveaxis(grid, -1, 0), score, levels=[0.0], colors="black", linewidths=1.5)
    panel.scatter(*points.T, c=np.where(label, "#b2182b", "#2166ac"), edgecolor="white", s=45)
    panel.set_title(f"{name}\ntraining loss {result.lower:.0e}, {100 * right:.0f} % of new points right", fontsize=10)
    panel.set(xlabel="first input", aspect="equal")
panels[0].set_ylabel("second input")
figure.colorbar(colours, ax=panels, label="output of the network", ticks=[-2, -1, 0, 1, 2], shrink=0.85)
plt.show()
