"""How many minimisers g has over a polytope: the dimension of the set of all of them, up to rounding.

All minimisers of a convex g have the same gradient, and of a loss of a linear model that is nowhere a line the same
predictions A x. So they are the points of Z with these predictions. In the form Z = {L w : E w = e, lower ≤ w ≤ upper} of
``domains/lifted.py`` let S be the w that some minimiser has between their bounds. The minimisers have the dimension

    rank [E; L]_S − rank [E; A L]_S.

- Each minimiser that is known tells some of S, and so a number that the dimension is at least.
- A w whose reduced price ⟨∇g, L_j⟩ − ⟨y, E_j⟩ is not 0, for prices y of the equations, is at its bound at every minimiser.
  The others hold S, and tell a number that the dimension is at most.
- Where both differ, a linear program finds all w that can leave their bounds at once.

Prices and singular values are compared with rounding, so that none of this is proven. ``minimisers.py`` proves some of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose parts are loaded when they are used
import scipy.linalg
import scipy.sparse

from tiebreak.active.threads import single_thread
from tiebreak.domains.lifted import Lifted, coordinates, lifted
from tiebreak.domains.rounding import quiet
from tiebreak.engine.rounding import UNIT
from tiebreak.objectives import LeastSquares, LinearModel, Placed, Scaled, SquaredNorm, Sum, SummedSquares
from tiebreak.objectives.losses import LogLoss, Square, loss
from tiebreak.objectives.matrices import CSR
from tiebreak.objectives.summed import MOST_SIDE
from tiebreak.problem import Problem

AT_BOUND = 1e-10  # distance from a bound, as a share of the size of w, at which it is there
NEAR_BOUND = 1e-5  # the same for points that are only nearly minimisers
SURE = 100.0  # units of accuracy: singular values that are this much larger are not 0
PERHAPS = 1e4  # the same for prices
BORDER = 1e-6  # share of a prediction within which a loss must bend for the prediction to be the same at all minimisers
MOST_NUMBERS = 2e7  # entries of matrices with which ranks are sought
MOST_WORK = 2e10  # multiplications for a rank
MOST_ENTRIES = 1e6  # entries of the linear program
MOVES = 1e6  # how far a direction may lead so that one w leaves its bound by 1
FEW = 4.0  # roundings of a price
FEW_ROWS = 16  # added to the number of rows or columns, which the rounding of singular values grows with


class Extent(NamedTuple):
    """The dimension of the set of minimisers: between these two, up to rounding."""

    least: int
    most: int

    @property
    def known(self) -> int | None:
        """The dimension, if both agree."""
        return self.least if self.least == self.most else None


class Rows(NamedTuple):
    """Rows of some of the variables."""

    matrix: Any  # (n, k), dense or sparse
    start: int  # the first of the k variables

    def moved(self, lift: Any) -> np.ndarray:
        """Return the products with some columns of L."""
        product = self.matrix @ lift[self.start : self.start + self.matrix.shape[1]]
        return product.toarray() if scipy.sparse.issparse(product) else np.asarray(product)


class Fits(NamedTuple):
    """Rows A: all minimisers have the same A x."""

    sure: tuple[Rows, ...] = ()
    perhaps: tuple[Rows, ...] = ()  # of which it cannot be told

    @property
    def size(self) -> int:
        """How many rows there are."""
        return sum(rows.matrix.shape[0] for rows in (*self.sure, *self.perhaps))


@quiet
def extent_of(problem: Problem, points: Sequence[np.ndarray]) -> Extent | None:
    """Return what is known of the dimension of the set of minimisers of g; None if nothing is.

    Parameters
    ----------
    problem : Problem
        f has no part in it.
    points : list of arrays, (d,)
        Minimisers of g: the first one as exact as rounding allows, the others nearly so.

    Examples
    --------
    >>> from tiebreak import L1Ball, LeastSquares, SquaredNorm
    >>> fit = LeastSquares([[2.0, 1.0]], [4.0])
    >>> extent_of(Problem(SquaredNorm(), fit, L1Ball(1.0)), [np.array([1.0, 0.0])])  # the target is out of reach
    Extent(least=0, most=0)
    >>> extent_of(Problem(SquaredNorm(), fit, L1Ball(3.0)), [np.array([2.0, 0.0])])
    Extent(least=1, most=1)
    """
    if float(problem.lower.known_convexity) > 0.0:
        return Extent(0, 0)
    form = lifted(problem.domain, problem.dimension)
    fits = None if form is None else _fits(problem.lower, points[0])
    places = [place for point in points if (place := coordinates(problem.domain, point)) is not None]
    if form is None or fits is None or len(places) < len(points):
        return None
    with single_thread(0.0):
        return _Search(problem, form, fits, points[0], places).extent()


class _Search:
    """The search for one dimension."""

    def __init__(self, problem: Problem, form: Lifted, fits: Fits, x: np.ndarray, places: list[np.ndarray]) -> None:
        self.form, self.at = form, places[0]
        exact, *others = places
        self.inside = self._between(exact, AT_BOUND)  # w that are between their bounds at some minimiser
        self.open = self._undecided(problem, x, self.inside)  # those that may be
        for other in others:
            self.inside = self.inside | self._between(other, NEAR_BOUND)
        self.open = (self.open & (form.upper > form.lower)) | self.inside
        self.fits = fits

    def extent(self) -> Extent | None:
        """Return what is found."""
        found = self._dimension(self.inside), self._dimension(self.open)
        if found[0] is None or found[1] is None:
            return None
        least, most = found[0].least, found[1].most
        if least < most and not self.fits.perhaps and (leaving := self._all_that_leave()) is not None:
            both = self._dimension(leaving)
            if both is not None:
                least, most = max(least, both.least), min(most, both.most)
        return Extent(least, max(least, most))

    def _between(self, w: np.ndarray, share: float) -> np.ndarray:
        form = self.form
        return np.minimum(w - form.lower, form.upper - w) > share * form.sizes

    def _undecided(self, problem: Problem, x: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return the w whose reduced prices are 0, as far as can be told."""
        form, survey = self.form, problem.lower.survey(x)
        prices = form.lift.T @ survey.gradient
        of_rows = _row_prices(form, prices, inside, self.at)
        reduced = np.abs(prices - form.rows.T @ of_rows) * form.sizes
        doubt = abs(form.lift).T @ (survey.gradient_error + FEW * UNIT * np.abs(survey.gradient))
        doubt += abs(form.rows).T @ (FEW * UNIT * np.abs(of_rows))
        # Between bounds prices are 0 at an exact minimiser: what they are here tells how exact this one is.
        accuracy = max(float(reduced[inside].max(initial=0.0)), float((doubt * form.sizes).max(initial=0.0)))
        return reduced <= PERHAPS * accuracy

    def _dimension(self, chosen: np.ndarray) -> Extent | None:
        """Return the dimension of what these w alone can move while the fits stay the same."""
        n, count = self.fits.size + len(self.form.sides), float(np.count_nonzero(chosen))
        if n * count > MOST_NUMBERS or n * count * min(n, count) > MOST_WORK:
            return None
        moves = _rank_of_lift(self.form.lift[:, chosen], self.form.rows[:, chosen])
        fewest, _ = _ranks(self._kept(chosen, self.fits.sure))
        _, most = _ranks(self._kept(chosen, self.fits.sure + self.fits.perhaps))
        return Extent(max(moves - most, 0), max(moves - fewest, 0))

    def _kept(self, chosen: np.ndarray, fits: Sequence[Rows]) -> np.ndarray:
        """Return [E; A L] for some w, in units in which no row or column is larger than others."""
        lift = self.form.lift[:, chosen]
        parts = [self.form.rows[:, chosen].toarray(), *(rows.moved(lift) for rows in fits)]
        parts = [part * self.form.sizes[chosen] for part in parts]
        matrix = np.vstack([part / (np.abs(part).max(initial=0.0) or 1.0) for part in parts])
        lengths = np.linalg.norm(matrix, axis=0)
        return matrix / np.where(lengths > 0.0, lengths, 1.0)

    def _all_that_leave(self) -> np.ndarray | None:
        """Return the w that are between their bounds at some minimiser, by a linear program; None if it is too large."""
        form, chosen = self.form, np.flatnonzero(self.open)
        stuck = np.flatnonzero(~self.inside[chosen])
        kept = self._kept(chosen, self.fits.sure)
        if not stuck.size or kept.size > MOST_ENTRIES:
            return None
        _, values, vectors = np.linalg.svd(kept, full_matrices=False)
        across = vectors[values > SURE * _limit(values, kept.shape)]  # directions are at right angles to these
        low = (self.at - form.lower <= form.upper - self.at)[chosen[stuck]]
        leaving = across[:, stuck] * np.where(low, 1.0, -1.0)
        free, k = across[:, self.inside[chosen]], stuck.size
        # As many as possible leave by 1 or more: those that can leave one by one can do so together, as directions add up.
        program = scipy.optimize.linprog(
            np.concatenate([np.zeros(free.shape[1] + k), -np.ones(k)]),
            A_eq=np.hstack([free, leaving, leaving]),
            b_eq=np.zeros(len(across)),
            bounds=[(-MOVES, MOVES)] * free.shape[1] + [(0.0, MOVES)] * k + [(0.0, 1.0)] * k,
            method="highs",
        )
        if program.x is None:
            return None
        found = self.inside.copy()
        found[chosen[stuck[program.x[-k:] > 0.5]]] = True
        return found


def _row_prices(form: Lifted, prices: np.ndarray, inside: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return prices y of the equations, with which the w between their bounds cost nothing, and no other w gains."""
    if not len(form.sides):
        return np.zeros(0)
    own = form.rows[:, inside].toarray().T
    found = np.linalg.lstsq(own, prices[inside], rcond=None)[0]
    if np.linalg.matrix_rank(own) == len(form.sides):
        return found
    # Several prices will do. Those are chosen with which as many w as possible would lose by leaving their bounds.
    free = scipy.linalg.null_space(own)
    reduced, signs = prices - form.rows.T @ found, np.where(w - form.lower <= form.upper - w, 1.0, -1.0)
    others = np.flatnonzero(~inside & (form.upper > form.lower))
    unit = float(np.abs(prices).max()) or 1.0
    gains = signs[others, None] * (form.rows.T @ free)[others]
    count, k = free.shape[1], others.size
    program = scipy.optimize.linprog(
        np.concatenate([np.zeros(count), -np.ones(k)]),
        A_ub=np.hstack([gains, np.eye(k)]),
        b_ub=signs[others] * reduced[others] / unit,
        bounds=[(None, None)] * count + [(0.0, 1.0)] * k,
        method="highs",
    )
    return found if program.x is None else found + unit * (free @ program.x[:count])


def _rank_of_lift(lift: Any, rows: Any) -> int:
    """Return the rank of [L; E], mostly of columns of L with one entry: one per variable, and of E what is left."""
    lift, rows = scipy.sparse.csc_array(lift), scipy.sparse.csc_array(rows)
    if (np.diff(lift.indptr) > 1).any():
        return _ranks(np.vstack([lift.toarray(), rows.toarray()]))[0]
    has = np.flatnonzero(np.diff(lift.indptr))
    axes, first = np.unique(lift.indices, return_index=True)
    pivot = np.full(lift.shape[0], -1)
    pivot[axes] = has[first]
    rest = np.setdiff1d(np.arange(lift.shape[1]), has[first])
    left = rows[:, rest].toarray()
    lifted_too = np.isin(rest, has)
    places = lift.indices[np.searchsorted(has, rest[lifted_too])]
    factors = lift.data[np.searchsorted(has, rest[lifted_too])] / lift.data[first][np.searchsorted(axes, places)]
    left[:, lifted_too] -= rows[:, pivot[places]].toarray() * factors
    return axes.size + (_ranks(left)[0] if left.size else 0)


def _ranks(matrix: np.ndarray) -> tuple[int, int]:
    """Return what the rank is at least and at most: between them are singular values near the limit of rounding."""
    if not matrix.size:
        return 0, 0
    matrix = _fewer(matrix)
    values = np.linalg.svd(matrix, compute_uv=False)
    limit = _limit(values, matrix.shape)
    return int((values > SURE * limit).sum()), int((values > limit).sum())


def _limit(values: np.ndarray, shape: tuple[int, ...]) -> float:
    """Return the size up to which singular values of a matrix may be rounding."""
    return float(values.max(initial=0.0)) * (max(shape) + FEW_ROWS) * 2.0 * UNIT


# Which predictions all minimisers share


def _fits(objective: Any, x: np.ndarray, start: int = 0) -> Fits | None:
    """Return the rows whose products with x, from ``start`` on, are the same at all minimisers; None if not known."""
    if isinstance(objective, Sum):
        parts = [_fits(term, x, start) for term in objective.terms]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return Fits(*(tuple(rows for part in known for rows in part[k]) for k in range(2)))
    if isinstance(objective, Scaled):
        if objective.factor == 0.0:
            return Fits()
        return _fits(objective.objective, x, start) if objective.factor > 0.0 else None
    if isinstance(objective, Placed):
        return _fits(objective.objective, x[objective.start : objective.stop], start + objective.start)
    if isinstance(objective, SquaredNorm):
        return Fits((Rows(scipy.sparse.eye_array(x.size, format="csr"), start),))
    if isinstance(objective, SummedSquares):
        values, vectors = scipy.linalg.eigh(objective.quadratic)
        kept = values > x.size * UNIT * SURE * max(float(values[-1]), 0.0)
        return Fits((Rows(vectors[:, kept].T, start),))
    if not isinstance(objective, LinearModel):
        return None
    if not objective.in_memory:
        if isinstance(objective, LeastSquares) and objective.dimension <= MOST_SIDE and objective.summable:
            return _fits(objective.summed(), x, start)
        return None
    return _fits_of_rows(objective, x, start)


def _fits_of_rows(model: LinearModel, x: np.ndarray, start: int) -> Fits:
    """Return all rows of squares and logistic losses; of other losses those where they are no line near x."""
    matrix, used = model.matrix, model.weights > 0.0
    rows = matrix.to_scipy() if isinstance(matrix, CSR) else np.asarray(matrix.array)
    rows = rows[used].astype(np.float64)
    if isinstance(model.scalar, (Square, LogLoss)):
        return Fits((Rows(_fewer(rows), start),))
    predictions, targets = rows @ x, model.targets[used]
    width = BORDER * np.maximum(np.abs(predictions), np.abs(targets)) + math.ulp(0.0)
    slopes = [
        np.array([loss(model.scalar, p, t)[1] for p, t in zip(predictions + side, targets, strict=True)])
        for side in (-width, 0.0, width)
    ]
    bends = np.array([slopes[1] > slopes[0], slopes[2] > slopes[1]])
    sure, perhaps = bends.all(axis=0), bends[0] ^ bends[1]
    return Fits(*((Rows(rows[which], start),) if which.any() else () for which in (sure, perhaps)))


def _fewer(rows: Any) -> Any:
    """Return as many rows as there are columns, with the same kernel, where there are more."""
    n, d = rows.shape
    if n <= 2 * d or float(n) * d > MOST_NUMBERS:
        return rows
    dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
    return np.asarray(np.linalg.qr(dense, mode="r"))
