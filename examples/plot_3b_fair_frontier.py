"""
How much fairness does a little loss buy?
=========================================

The best classifier of a census treats men and women differently. There is one best classifier, and so no tie to break.
But many classifiers are nearly as good. ``FairClassifier`` takes, of all whose training loss exceeds the least one by
at most one per cent, the one whose scores tell least of the sex, and proves both. ``tiebreak.frontier`` shows what any
other share of the loss would buy.
"""

import matplotlib.pyplot as plt
import numpy as np

import tiebreak
from tiebreak.learn import FairClassifier

census = tiebreak.data.adult_like()  # 10,000 people: 50 features, a large income or not, the sex, which is no feature
train, test = slice(0, 7000), slice(7000, None)
X, y, sex = census.X[train], census.y[train], census.sensitive[train]

model = FairClassifier(max_loss_increase=0.01).fit(X, y, sensitive_features=sex)
print(f"training loss: {model.plain_loss_:.4f} of the best classifier, {model.loss_:.4f} of this one")
print(f"  at most {100 * model.loss_increase_:.3f} % above the least one: proven")
print(f"covariance of scores with the sex: {model.plain_covariances_[0]:.3f} and {model.covariances_[0]:.3f}")
print(f"  no classifier of that loss has a smaller one than {np.sqrt(model.unfairness_floor_):.3f}: proven")

# %%
# The frontier
# ------------
#
# The problem behind the classifier has unfairness, the squared covariance, as f and the training loss as g. Each point
# of its frontier is the least unfairness for a loss, with a proven floor and ceiling, and so is the band between them.

problem = FairClassifier().problem(X, y, sensitive_features=sex)
shares = np.geomspace(1e-4, 0.3, 12)  # of the least loss
front = tiebreak.frontier(problem, shares * model.loss_floor_)
print(front)

grid = np.geomspace(shares[0], shares[-1], 200)
band = np.array([[edge(share * model.loss_floor_) for share in grid] for edge in (front.band.floor, front.band.ceiling)])

# %%
# On people who were not seen
# ---------------------------
#
# Laws ask about decisions: the p-rule is the share of women who are accepted divided by that of men, and 80 % is a usual
# threshold. A small loss makes scores fairer, and decisions with them. Covariances of probabilities, which are not convex
# and have no proven floor, are nearer to decisions: the same loss buys more there.


def measured(increase, measure):
    """Accuracy and p-rule, in per cent, on the people who were not seen."""
    fitted = FairClassifier(increase, measure=measure).fit(X, y, sensitive_features=sex)
    accepted = fitted.predict(census.X[test]) > 0.0
    rates = sorted(accepted[census.sensitive[test] == group].mean() for group in (0.0, 1.0))
    return 100 * np.mean(accepted == (census.y[test] > 0.0)), 100 * rates[0] / rates[1]


increases = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)
curves = {measure: np.array([measured(each, measure) for each in increases]) for measure in ("score", "probability")}

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.4), layout="constrained")
best = model.plain_unfairness_
left.fill_between(100 * grid, *band / best, color="#2a6fbb", alpha=0.3, label="the least lies here: proven")
left.plot(100 * shares, [point.upper / best for point in front.points], "o", color="#2a6fbb", markersize=5, label="answers")
left.plot(1.0, model.unfairness_ / best, "*", color="#c2486d", markersize=15, label="FairClassifier, 1 %")
left.set(xscale="log", xlabel="training loss above the least one, %", ylabel="unfairness, relative to the best classifier")
left.set_ylim(0, 1.02)
for (name, curve), colour, line in zip(curves.items(), ("#2a6fbb", "#d1642b"), ("o-", "s--"), strict=True):
    right.plot(curve[:, 1], curve[:, 0], line, color=colour, markersize=5, label=f"covariances of a {name}")
    for increase, (accuracy, rule) in zip(increases, curve, strict=True):
        print(f"{name:12} {100 * increase:4g} %: accuracy {accuracy:.1f} %, p-rule {rule:.0f} %")
right.axvline(80.0, color="0.6", linewidth=1.0, linestyle=":", label="80 %, which laws ask for")
right.set(xlabel="p-rule on new people, %", ylabel="accuracy on new people, %")
for panel in (left, right):
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False)
plt.show()
