"""
A dictionary that learns and does not forget
============================================

Handwritten digits arrive in three tasks: first 0 to 3, then 4 to 6, then 7 to 9. A dictionary that is refitted to
each task forgets the earlier ones. ``ContinualDictionaryLearning`` adds atoms and, among the dictionaries that
reconstruct all earlier digits best, takes one that is good for the new ones. It stores none of the earlier images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import MiniBatchDictionaryLearning, sparse_encode

from tiebreak.learn import ContinualDictionaryLearning

images, digit = load_digits(return_X_y=True)
images = images / np.linalg.norm(images, axis=1, keepdims=True)
tasks = [images[np.isin(digit, wanted)][:100] for wanted in ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9))]
NONZERO = 5  # atoms per image


def lost(points, atoms):
    """The share of the images' energy that the best few atoms leave, in per cent."""
    codes = sparse_encode(points, atoms, algorithm="omp", n_nonzero_coefs=NONZERO)
    return 100 * np.sum((points - codes @ atoms) ** 2) / np.sum(points**2)


# %%
# Two learners, three tasks
# -------------------------
#
# Both end with the same number of atoms. The second one starts from the atoms that it has, and is fitted to the images
# of the current task.

kept, refitted = [], []
learner = ContinualDictionaryLearning(
    24, n_new_components=12, transform_n_nonzero_coefs=NONZERO, max_iter=100, random_state=0
)
atoms = None
for number, task in enumerate(tasks):
    learner.partial_fit(task)
    kept.append([lost(points, learner.components_) for points in tasks])
    rng = np.random.default_rng(number)
    start = task[rng.choice(len(task), 24 if atoms is None else 12, replace=False)]
    other = MiniBatchDictionaryLearning(
        len(start) if atoms is None else len(atoms) + len(start),
        dict_init=start if atoms is None else np.vstack([atoms, start]),
        alpha=0.1, max_iter=30, batch_size=50, random_state=0,
    ).fit(task)  # fmt: skip
    atoms = other.components_
    refitted.append([lost(points, atoms) for points in tasks])
kept, refitted = np.array(kept), np.array(refitted)
print("left of the first task after each task, %:", kept[:, 0].round(1), "refitted:", refitted[:, 0].round(1))

# %%
# What is left of each task
# -------------------------

figure = plt.figure(figsize=(10, 3.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[3, 1])
panels = left.subplots(1, 3, sharey=True)
for number, (panel, name) in enumerate(zip(panels, ("digits 0-3", "digits 4-6", "digits 7-9"), strict=True)):
    panel.plot([1, 2, 3], refitted[:, number], "o--", color="#6b6b6b", label="refitted to each task")
    panel.plot([1, 2, 3], kept[:, number], "*-", color="#c2486d", markersize=11, label="ContinualDictionaryLearning")
    panel.axvspan(number + 0.85, number + 1.15, color="#eef3fa", zorder=0, label="the task is learned")
    panel.set_title(f"images of {name}", fontsize=11)
    panel.set(xticks=[1, 2, 3], xlabel="tasks learned so far")
    panel.spines[["top", "right"]].set_visible(False)
panels[0].set_ylim(0, 1.05 * max(kept.max(), refitted.max()))
panels[0].set_ylabel("reconstruction error, % of energy")
left.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)

for panel, atom in zip(right.subplots(4, 3).ravel(), learner.components_[-12:], strict=True):
    panel.imshow(atom.reshape(8, 8), cmap="RdBu_r", vmin=-np.abs(atom).max(), vmax=np.abs(atom).max())
    panel.axis("off")
right.suptitle("the atoms added for 7-9", fontsize=11)
plt.show()
