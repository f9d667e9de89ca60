"""
Which minimiser? The cut in two dimensions
==========================================

A disc Z, an objective g whose minimisers are a whole line, and an objective f that decides which point of the line we
get. The picture shows the idea of the conditional gradient methods: each iteration minimises a linear model of f over
the part of Z that a moving half-space, the *cut*, leaves.
"""

import matplotlib.pyplot as plt
import numpy as np

import tiebreak

slope, offset = np.array([0.5, 1.0]), 0.1  # the line ⟨slope, x⟩ = offset minimises g
factor, centre = np.array([[1.0, 0.4], [-0.3, 0.8]]), np.array([-0.3, 0.9])

f = tiebreak.LeastSquares(factor, factor @ centre)
g = tiebreak.LeastSquares(slope[None], [offset])
problem = tiebreak.Problem(upper=f, lower=g, domain=tiebreak.L2Ball(1.0))

# %%
# The method by hand
# ------------------
#
# All minimisers of g lie in the half-space g(x) + ⟨∇g(x), s − x⟩ ≤ g(x₀), wherever x is, because g is convex. So a
# step towards the best point s of Z in that half-space follows f without losing the minimisers of g. These few lines
# are CG-BiO:

x = first = np.array([0.75, -0.31])  # near the line: ⟨slope, x⟩ − offset is −0.035
steps = []
for t in range(301):
    _, upper_slope = f.value_and_gradient(x)
    lower_value, lower_slope = g.value_and_gradient(x)
    bound = g.value(first) - lower_value + lower_slope @ x  # the cut is ⟨lower_slope, s⟩ ≤ bound
    atom = problem.domain.cut_lmo(upper_slope, lower_slope, bound).point
    steps.append((x, atom, lower_slope, bound))
    x = x + 2 / (t + 8) * (atom - x)

# %%
# ``minimize`` does the same with a method chosen for the problem, and proves how near the answer is.

result = tiebreak.minimize(problem, max_queries=20_000)
print(result)

# %%
# The cut moves
# -------------
#
# The grey part is cut off. The first iterate lies a little below the line of minimisers, and so does the first cut.
# When the iterates cross the line, the cut changes sides: it is far away while g is small, and closes in as f draws
# the iterates up. They end at most as far above the line as the first point lay below it, in the star up to that. A
# first point farther from the line would lead to an end farther from the star: ``minimize`` therefore looks for a good
# first point before it begins.

grid = np.linspace(-1.25, 1.25, 201)
across, up = np.meshgrid(grid, grid)
shift = np.stack([across - centre[0], up - centre[1]])
levels_of_f = 0.25 * np.sum(np.einsum("ij,jkl->ikl", factor, shift) ** 2, axis=0)
path = np.array([step[0] for step in steps])
foot = offset * slope / (slope @ slope)  # the point of the line that is nearest to the origin
along = np.array([-slope[1], slope[0]]) / np.linalg.norm(slope) * np.sqrt(1.0 - foot @ foot)

figure, panels = plt.subplots(2, 2, figsize=(8, 8.4), sharex=True, sharey=True, layout="constrained")
for panel, t in zip(panels.flat, (0, 1, 6, 300), strict=True):
    here, atom, normal, bound = steps[t]
    disc = plt.Circle((0, 0), 1.0, facecolor="#eef3fa", edgecolor="#2a6fbb", label="the set Z")
    panel.add_patch(disc)
    lines = panel.contour(across, up, levels_of_f, levels=12, colors="#e76300", linewidths=0.7, alpha=0.7)
    cut = panel.contourf(across, up, normal[0] * across + normal[1] * up, levels=[bound, np.inf], colors="0.55", alpha=0.5)
    for layer in (lines, cut):
        layer.set_clip_path(disc)
    (line,) = panel.plot(*np.stack([foot - along, foot + along]).T, color="#3a8f5c", linewidth=2.5)
    (walk,) = panel.plot(*path[: t + 1].T, ".-", color="black", markersize=4, linewidth=0.8)
    panel.plot(*here, "o", color="black", markersize=6)
    panel.annotate("", atom, here, arrowprops={"arrowstyle": "->", "color": "#2a6fbb", "linewidth": 1.4})
    (goal,) = panel.plot(*result.x, "*", color="#c2486d", markersize=14)
    panel.set_title(f"iteration {t}", fontsize=11)
    panel.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
for panel in panels[1]:
    panel.set_xlabel("$x_1$")
for panel in panels[:, 0]:
    panel.set_ylabel("$x_2$")
handles = [disc, line, lines.legend_elements()[0][0], cut.legend_elements()[0][0], walk, goal]
names = ["the set Z", "minimisers of g", "level lines of f", "cut off", "iterates, arrow: towards s", "the answer"]
figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
plt.show()
