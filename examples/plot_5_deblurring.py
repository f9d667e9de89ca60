"""
Sharpen an image: which of the images that explain the photograph?
==================================================================

A camera blurs a scene of 32 × 32 cells and records 16 × 16 pixels. There are endless scenes that explain the
photograph perfectly, all of them minimisers of the same least squares over the box 0 ≤ brightness ≤ 1. The second
objective chooses one: the scene of least norm, or of least roughness.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter1d

import tiebreak

SIDE = 32

# %%
# A scene and a camera
# --------------------

rows, columns = np.mgrid[:SIDE, :SIDE]
scene = np.zeros((SIDE, SIDE))
scene[np.hypot(rows - 11, columns - 10) < 7.5] = 1.0  # a moon …
scene[np.hypot(rows - 9, columns - 13) < 6.0] = 0.0
scene[(rows > 21) & (rows < 29) & (columns > 4) & (columns < 28)] = 0.6  # … above a wall …
scene[(rows > 23) & (rows < 27) & (columns > 17) & (columns < 23)] = 1.0  # … with a window
scene[7:10, 24:27] = 1.0

blur = gaussian_filter1d(np.eye(SIDE), 1.0, axis=0, mode="nearest")
pixels = 0.5 * (blur[0::2] + blur[1::2])  # a pixel is the mean of two cells
camera = np.kron(pixels, pixels)  # in both directions: 256 measurements of 1024 unknowns
photograph = camera @ scene.ravel()

# %%
# Two ways to choose
# ------------------

steps = np.diff(np.eye(SIDE), axis=0)
roughness = np.vstack([np.kron(steps, np.eye(SIDE)), np.kron(np.eye(SIDE), steps)])
box = tiebreak.Box(np.zeros(SIDE**2), np.ones(SIDE**2))
explains = tiebreak.LeastSquares(camera, photograph)
criteria = {
    "least norm": tiebreak.SquaredNorm(),
    "least roughness": tiebreak.LeastSquares(roughness, np.zeros(len(roughness))),
}
results = {
    name: tiebreak.minimize(tiebreak.Problem(criterion, explains, box), max_iterations=1500, max_queries=None)
    for name, criterion in criteria.items()
}
for name, result in results.items():
    print(f"{name}: misfit {result.lower:.1e}, proven to be within {result.lower_bound_gap:.1e} of the least")

# %%
# Without the box, the least norm is what the pseudoinverse gives; it swings below black and above white.

free = np.linalg.pinv(camera) @ photograph

# %%
# Three explanations
# ------------------
#
# The error is the root of the mean square over all cells; the misfit is what the photograph leaves unexplained, none.

shown = {
    "photograph": photograph,
    "pseudoinverse": free,
    "least norm in the box": results["least norm"].x,
    "least roughness in the box": results["least roughness"].x,
    "the scene": scene.ravel(),
}
figure, panels = plt.subplots(1, 5, figsize=(13, 3.3), layout="constrained")
for panel, (name, image) in zip(panels, shown.items(), strict=True):
    side = round(np.sqrt(image.size))
    drawn = panel.imshow(image.reshape(side, side), cmap="gray", vmin=-0.2, vmax=1.2)
    panel.set_title(name, fontsize=11)
    panel.set(xticks=[], yticks=[])
    if image.size == scene.size and name != "the scene":
        wrong = np.sqrt(np.mean((image - scene.ravel()) ** 2))
        panel.set_xlabel(f"error {wrong:.3f}\nmisfit {explains.value(image):.0e}")
panels[0].set_xlabel("16 × 16 pixels")
panels[-1].set_xlabel("32 × 32 cells")
figure.colorbar(drawn, ax=panels, label="brightness", shrink=0.7)
plt.show()
