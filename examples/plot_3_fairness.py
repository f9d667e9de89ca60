"""
Fair among those that are right
===============================

Labels and features that favour a group teach a classifier to do the same. fairlearn's reductions bound the difference
between the groups on the labelled samples, and refit. Where labels are few and features many, there is another way:
among all classifiers that are right on the labelled samples, take one whose scores have little covariance with the
group, over *everyone* whose features are known, labelled or not. This works for few labels and many features.
With many labels and few features there is no tie to break, and a bound on the difference serves better.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from fairlearn.metrics import demographic_parity_difference
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

import tiebreak

rng = np.random.default_rng(0)
FEATURES, SKILLS = 600, 5
loadings = rng.standard_normal((SKILLS, FEATURES)) / np.sqrt(SKILLS)
bias = 0.5 * rng.standard_normal(FEATURES) * (rng.random(FEATURES) < 0.5)  # half of the features also tell the group


def people(n):
    """Features, labels and groups: many noisy features tell of a few skills, which decide, with a bonus for one group."""
    group, skills = rng.integers(2, size=n), rng.standard_normal((n, SKILLS))
    features = skills @ loadings + rng.standard_normal((n, FEATURES)) + group[:, None] * bias
    return features, (skills.sum(axis=1) / np.sqrt(SKILLS) + 0.6 * (group - 0.5) > 0).astype(int), group


X, y, group = people(150)  # labelled
X_more, _, group_more = people(1500)  # known, but not labelled
X_test, y_test, group_test = people(4000)


def measured(accepted):
    """Difference of the groups' rates of acceptance, and accuracy, on people not seen before; in per cent."""
    gap = demographic_parity_difference(y_test, accepted, sensitive_features=group_test)
    return 100 * gap, 100 * np.mean(accepted == y_test)


# %%
# Fair among those that are right
# -------------------------------
#
# A classifier is right on a labelled person, with a margin, if ± ⟨features, x⟩ ≥ 1: a linear constraint. The lower
# objective is the mean squared violation; its minimisers are all classifiers that violate nothing. The squared
# covariance of scores with the group is a least squares with one row. It is weighed against the squared norm, which
# makes margins wide; each weight gives one point of a curve.

sign = np.where(y, 1.0, -1.0)
right = tiebreak.ConeDistance(-(sign[:, None] * X)[:, None, :], np.ones((len(X), 1)), "orthant")
covariance = (group_more - group_more.mean()) @ X_more / len(X_more)
unfair = tiebreak.LeastSquares(covariance[None], [0.0])

curve = []
for weight in (0.0, 1.0, 3.0, 10.0, 100.0):
    problem = tiebreak.Problem(upper=weight * unfair + tiebreak.SquaredNorm(), lower=right, domain=tiebreak.L2Ball(2.0))
    result = tiebreak.minimize(problem, "bi-fista", max_iterations=1000)
    curve.append(measured((X_test @ result.x > 0).astype(int)))
    print(f"weight {weight:3g}: violation {result.lower:.1e}, covariance {covariance @ result.x:.4f}")

# %%
# fairlearn
# ---------
#
# fairlearn gets the labelled people, and one bound on the difference after another. For the last bound, fifty
# iterations give the same as four. The penalty is the best of the powers of ten by cross-validation.

warnings.filterwarnings("ignore", category=DeprecationWarning, module="fairlearn")  # with recent versions of pandas
base = LogisticRegression(C=0.01)
reduced = []
for bound in (0.1, 0.03, 0.01):
    mitigated = ExponentiatedGradient(base, DemographicParity(difference_bound=bound), max_iter=4)
    reduced.append(measured(mitigated.fit(X, y, sensitive_features=group).predict(X_test, random_state=0)))
plain = [measured(base.fit(X, y).predict(X_test))]

# %%
# The trade-off
# -------------
#
# fairlearn's bounds hold for the 150 people with labels, at the price of wrong answers to some of them, and with so
# many features they say less about others. Classifiers that are right on all labels differ a lot in how they treat
# people without one, so that much fairness costs little accuracy.

figure, panel = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
curves = [
    (plain, "s", "#6b6b6b", "logistic regression"),
    (reduced, "o--", "#2a6fbb", "fairlearn, bounds of 10, 3 and 1 points"),
    (curve, "*-", "#c2486d", "fairer and fairer, right on all labels (tiebreak)"),
]
for points, style, colour, label in curves:
    panel.plot(*np.array(points).T, style, color=colour, label=label, markersize=13 if "*" in style else 8)
    print(label, np.round(points, 1).tolist())
panel.set(xlabel="difference of the groups' acceptance rates, percentage points", ylabel="accuracy on new people, %")
panel.set_xlim(left=0)
panel.set_ylim(76, 96)
panel.spines[["top", "right"]].set_visible(False)
panel.legend(frameon=False, loc="lower right")
plt.show()
