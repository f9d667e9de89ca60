"""
Sharpen an image: which of the scenes that explain the photograph?
==================================================================

A camera blurs a scene of 32 × 32 cells and records 16 × 16 pixels. Infinitely many scenes explain the photograph
perfectly: all of them are minimisers of the same least squares over the box 0 ≤ brightness ≤ 1. The second objective
chooses the one of least norm, so that nothing is in the picture that the photograph does not ask for.
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
# Some scene, and the one of least norm
# -------------------------------------
#
# Accelerated gradients on the misfit alone find a scene that explains the photograph. Which one they find depends on
# where they start.

explains = tiebreak.LeastSquares(camera, photograph)
problem = tiebreak.Problem(tiebreak.SquaredNorm(), explains, tiebreak.Box(np.zeros(SIDE**2), np.ones(SIDE**2)))
start = np.random.default_rng(0).random(SIDE**2)
some = tiebreak.minimize(problem, tiebreak.FISTA(level="lower"), x0=start, max_iterations=1000)
smallest = tiebreak.minimize(problem, max_iterations=3000)
print(smallest)

# %%
# Both explain the photograph
# ---------------------------
#
# Where the scene is black or white the box leaves no choice, but in the grey wall it does. The error is the root of
# the mean square over all cells. The misfit is what remains unexplained of the photograph.

shown = {
    "the photograph": photograph,
    "some scene that explains it": some.x,
    "the one of least norm": smallest.x,
    "the scene": scene.ravel(),
}
figure, panels = plt.subplots(2, 2, figsize=(7.5, 7), layout="constrained")
for panel, (name, image) in zip(panels.flat, shown.items(), strict=True):
    side = round(np.sqrt(image.size))
    drawn = panel.imshow(image.reshape(side, side), cmap="gray", vmin=0, vmax=1)
    panel.set_title(name, fontsize=11)
    panel.set(xticks=[], yticks=[], xlabel=f"{side} × {side}")
for panel, result in ((panels[0, 1], some), (panels[1, 0], smallest)):
    error = np.sqrt(np.mean((result.x - scene.ravel()) ** 2))
    panel.set_xlabel(f"error {error:.3f}, misfit {result.lower:.0e}")
figure.colorbar(drawn, ax=panels, label="brightness", shrink=0.5)
plt.show()
