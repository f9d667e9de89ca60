"""
Of all best fits, the one that predicts best
============================================

With 356 samples and 730 features, very many linear models fit the training data perfectly, if their coefficients may be
large enough: in an ℓ1 ball of radius 20 these models are a face of dimension 374. (In a ball of radius 10 no model fits
perfectly, and one fits best.) Which one you get is up to your solver, unless you say which one you want: here, the one
with the least error on validation data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV, lars_path

import tiebreak
from tiebreak.learn import MinNormRegressor, TieBreakRegressor

data = tiebreak.data.split(tiebreak.data.pageviews(seed=1), seed=1)  # daily visits of pages: predict one day from all others
train, validation, test = data.train, data.validation, data.test

# %%
# Three models that use the same data
# -----------------------------------
#
# The two best fits differ in the second criterion, and in the set that it chooses from. ``LassoCV`` is fitted to
# training and validation data together, so that it has seen as much as ours.

chosen = TieBreakRegressor(radius=20.0, fit_intercept=False, max_iter=2000)
chosen.fit(train.A, train.b, X_val=validation.A, y_val=validation.b)
smallest = MinNormRegressor(fit_intercept=False, max_iter=2000).fit(train.A, train.b)
together = np.vstack([train.A, validation.A]), np.concatenate([train.b, validation.b])
lasso = LassoCV(cv=5, eps=1e-3, alphas=40, fit_intercept=False, max_iter=5000, tol=1e-3).fit(*together)
print(chosen.certificate_)

# %%
# The whole path of the Lasso on the training data shows what happens between "too stiff" and "best fit".

_, _, path = lars_path(train.A, train.b, method="lasso", max_iter=600)


def error(part, coef):
    """Root of the mean squared error, in per cent of the largest number of visits on the day that is predicted."""
    return 100 * np.sqrt(np.mean((part.A @ coef - part.b) ** 2))


# %%
# All the way to the left, and still a choice
# -------------------------------------------
#
# The two best fits leave some hundredths of a per cent of the training data unexplained, which more passes would explain
# too. They differ by what they predict for pages that no model has seen.

figure, panel = plt.subplots(figsize=(8, 4.6), layout="constrained")
panel.plot(
    [error(train, w) for w in path.T],
    [error(test, w) for w in path.T],
    color="#6b6b6b",
    label="Lasso, all penalties, on training data",
)
points = [
    (chosen.coef_, "*", "#c2486d", "best fit with the least validation error (tiebreak)"),
    (smallest.coef_, "s", "#2a6fbb", "best fit with the least norm"),
    (lasso.coef_, "D", "#3a8f5c", "LassoCV on training and validation data"),
]
for coef, marker, colour, label in points:
    size = 15 if marker == "*" else 8
    panel.plot(error(train, coef), error(test, coef), marker, color=colour, markersize=size, label=label, linestyle="none")
panel.set(
    xscale="log",
    yscale="log",
    xlabel="error on training data, % of the largest count",
    ylabel="error on test data, % of the largest count",
)
panel.set_yticks([1, 2, 3, 4, 5], labels=["1", "2", "3", "4", "5"])
panel.yaxis.set_minor_formatter(plt.NullFormatter())
panel.spines[["top", "right"]].set_visible(False)
panel.legend(frameon=False)
plt.show()
