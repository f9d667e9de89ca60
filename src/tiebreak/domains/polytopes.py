"""Polytopes: hulls of points, doubly stochastic matrices, and solutions of linear inequalities."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.domains.base import (
    ACTIVE,
    EMPTY,
    FREE,
    INVALID,
    Domain,
    contains,
    cut_lmo,
    diameter,
    least_value,
    lmo,
    settle,
    spread,
    spread_by_signs,
    unsettled,
)
from tiebreak.domains.cuts.search import dual_search
from tiebreak.domains.rounding import (
    SUBNORMAL,
    UNIT,
    eigenvalue_floor,
    least_or_nothing,
    norm_ceiling,
    quiet,
    raised,
    sum_floor,
)
from tiebreak.domains.simplices import vertex_cut
from tiebreak.engine import checks, kernel
from tiebreak.engine.vectors import copy, dot, fill

MANY_POINTS = 2000  # for the distance of each two of them
FEASIBILITY = 1e-10  # the tightest tolerance that HiGHS allows
DOUBT = 1e-7  # relative: a violation or duality gap of an answer of HiGHS in its units, beyond which it is none
CLOSE = 1e-3  # to a row: a point that is to keep away from all rows
SCALINGS = 5  # at most, each from the box that was found with the one before


class _Hull(NamedTuple):
    points: np.ndarray


class Hull(Domain, _Hull):
    """The convex hull of some points.

    A linear minimisation is one pass over the points, and a cut at most two. The diameter is exact for up to 2000 points;
    for more it is an upper bound, twice the largest distance from their mean. There is no projection.

    Parameters
    ----------
    points : array of shape (number of points, dimension)

    Examples
    --------
    >>> triangle = Hull([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> triangle.lmo([1.0, -1.0])
    array([0., 2.])
    >>> triangle.cut_lmo([1.0, -1.0], [0.0, 1.0], 1.0).point
    array([0., 1.])
    """

    __slots__ = ()

    def __new__(cls, points: Any) -> Hull:
        array = checks.numbers(points, "points")
        if array.ndim != 2 or array.size == 0:
            raise ValueError(f"`points` must be a non-empty matrix, a point a row, got an array of shape {array.shape}")
        array = np.array(array, dtype=np.float64, order="C")
        checks.finite(array, "points")
        return super().__new__(cls, array)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Number of variables."""
        return self.points.shape[1]

    def contains(self, x: Any, tol: float = 1e-9) -> bool:
        """Return whether x lies in the hull, up to ``tol`` of its width in each coordinate.

        It finds the mean of the points that is nearest to x, by non-negative least squares.
        """
        x = checks.vector(x, "x", self.dimension)
        width = np.ptp(self.points, axis=0)
        rounding = 1e-14 * np.abs(self.points).max(axis=0)
        weights = mean_weights(self.points, x)
        return bool((np.abs(weights @ (self.points - x)) <= tol * width + rounding).all())


def mean_weights(points: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the weights of the mean of the points that is nearest to x, each coordinate in units of its width."""
    from scipy.optimize import nnls  # slow to import, and rarely needed

    width = np.ptp(points, axis=0)
    units = np.where(width > 0.0, width, np.maximum(np.abs(points).max(axis=0), 1e-300))
    shifted = (points - x) / units
    rows = np.vstack([shifted.T, np.full(len(points), max(float(np.abs(shifted).max()), 1.0))])
    weights, _ = nnls(rows, np.append(np.zeros(x.size), rows[-1, 0]), maxiter=30 * len(points) + 300)
    return weights / weights.sum()


@lmo.register(Hull)
def _(domain, c, out):
    copy(domain.points[best_point(domain.points, c)], out)


@kernel
def best_point(points, c):
    """Return the index of the point for which ⟨c, point⟩ is smallest."""
    least = math.inf
    best = 0
    for i in range(points.shape[0]):
        value = dot(points[i], c)
        if value < least:
            least = value
            best = i
    return best


@cut_lmo.register(Hull)
def _(domain, c, a, b, out):
    # A cut over the simplex of the weights of the points. Its two vectors need room, as the points may be more than the
    # variables; the second is computed only if the cut is active.
    points = domain.points
    i = best_point(points, c)
    value_c, value_a = dot(points[i], c), dot(points[i], a)
    if not (math.isfinite(value_c) and math.isfinite(value_a)) or math.isnan(b):
        return INVALID, math.nan
    if value_a <= b:
        copy(points[i], out)
        return FREE, 0.0
    values = np.empty((2, points.shape[0]))
    for k in range(points.shape[0]):
        values[0, k] = dot(points[k], c)
        values[1, k] = dot(points[k], a)
    status, multiplier, i, weight_i, j, weight_j = vertex_cut(values[0], values[1], b, 1.0, False)
    if status != INVALID:
        for k in range(out.size):
            out[k] = weight_i * points[i, k] + weight_j * points[j, k]
    return status, multiplier


@diameter.register(Hull)
def _(domain):
    points = domain.points
    count, d = points.shape
    largest = 0.0
    if count <= MANY_POINTS:
        for i in range(count):
            for j in range(i):
                largest = max(largest, squared_distance(points[i], points[j]))
        return math.sqrt(largest)
    mean = np.zeros(d)
    for i in range(count):
        for k in range(d):
            mean[k] += points[i, k] / count
    for i in range(count):
        largest = max(largest, squared_distance(points[i], mean))
    return 2.0 * math.sqrt(largest)


@kernel(reorder=True)
def squared_distance(x, y):
    """Return ‖x − y‖²."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] - y[i]) * (x[i] - y[i])
    return total


class _Birkhoff(NamedTuple):
    n: int


class Birkhoff(Domain, _Birkhoff):
    """The doubly stochastic n × n matrices: non-negative, with rows and columns that sum to one.

    A matrix is flattened row by row, and :meth:`parts` gives it its shape back. The atoms are the permutations. There is no
    projection.

    Parameters
    ----------
    n : int

    Examples
    --------
    >>> matchings = Birkhoff(2)
    >>> matchings.lmo([1.0, 0.0, 0.0, 2.0]).reshape(2, 2)
    array([[0., 1.],
           [1., 0.]])
    """

    __slots__ = ()

    def __new__(cls, n: Any) -> Birkhoff:
        return super().__new__(cls, checks.whole(n, "n"))

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Number of variables, n²."""
        return self.n * self.n

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the matrix, as a view of x."""
        return {"x": x.reshape(self.n, self.n)}


@lmo.register(Birkhoff)
def _(domain, c, out):
    row_of, _ = assign(c, domain.n)
    fill(out, 0.0)
    for column in range(domain.n):
        out[row_of[column] * domain.n + column] = 1.0


@kernel(inline=False)
def assign(cost, n):
    """Return the row of each column in an assignment of least cost, and prices of the columns that prove it.

    ``cost`` is an n × n matrix, row by row.

    The Hungarian method (Kuhn, 1955) as shortest augmenting paths (Jonker and Volgenant, 1987), in O(n³): rows join one by
    one. Prices of rows and columns keep all reduced costs cost_ij − price_i − price_j ≥ 0, and zero where i and j are
    assigned. A row that joins takes the shortest way, in reduced costs, to a column that is free, and the rows on the way
    move on by one column.
    """
    row_of = np.full(n, -1)
    column_price, row_price = np.zeros(n), np.zeros(n)
    distance = np.empty(n)  # of the shortest way to a column that is known
    before = np.empty(n, np.int64)  # the column before it on that way; −1 for the row that joins
    done = np.empty(n, np.bool_)  # whether no shorter way can come
    for joining in range(n):
        fill(distance, math.inf)
        fill(done, False)
        fill(before, -1)
        row, last, travelled = joining, -1, 0.0
        while True:
            nearest = -1
            for j in range(n):
                if not done[j]:
                    length = travelled + (cost[row * n + j] - row_price[row] - column_price[j])
                    if length < distance[j]:
                        distance[j] = length
                        before[j] = last
                    if nearest < 0 or distance[j] < distance[nearest]:
                        nearest = j
            done[nearest] = True
            travelled, last = distance[nearest], nearest
            if row_of[nearest] < 0:
                break
            row = row_of[nearest]
        row_price[joining] += travelled
        for j in range(n):
            if done[j] and j != last:
                row_price[row_of[j]] += travelled - distance[j]
                column_price[j] -= travelled - distance[j]
        while before[last] >= 0:
            row_of[last] = row_of[before[last]]
            last = before[last]
        row_of[last] = joining
    return row_of, column_price


@diameter.register(Birkhoff)
def _(domain):
    return math.sqrt(2.0 * domain.n) if domain.n > 1 else 0.0


@contains.register(Birkhoff)
def _(domain, x, tol):
    n = domain.n
    for i in range(n):
        row, column = 0.0, 0.0
        for j in range(n):
            if not x[i * n + j] >= -tol:
                return False
            row += x[i * n + j]
            column += x[j * n + i]
        if not (abs(row - 1.0) <= tol and abs(column - 1.0) <= tol):
            return False
    return True


class Polytope(Domain):
    """The bounded set {x : A_ub x ≤ b_ub, A_eq x = b_eq, lower ≤ x ≤ upper}, by linear programming.

    It holds a model of the HiGHS solver, in which only the objective and one row, the cut, change from call to call. A call
    starts from where the last one ended, so that where a linear function has several minimisers, which one is found may
    depend on the calls before; ``warm_start=False`` makes each call start from the same vertex, and the answer a function of
    the question alone. Loops over this set run as plain Python. It can be copied and pickled, which makes a new model, and
    must not be used by two threads at once.

    The diameter is an upper bound: the diagonal of the smallest box around the set, which takes two linear programs a
    variable when the set is made. There is no projection.

    Parameters
    ----------
    A_ub, A_eq : matrix with a column a variable, dense or sparse; optional
    b_ub, b_eq : vector with an entry a row; optional
    bounds : (lower, upper), optional
        Numbers or vectors, which may be infinite; None is infinite too. There are none if it is not given.
    warm_start : bool
        Whether a call starts from where the last one ended.

    Raises
    ------
    ValueError
        If shapes do not agree, numbers are not finite, or the set is empty or unbounded.

    Examples
    --------
    >>> triangle = Polytope(A_ub=[[1.0, 2.0]], b_ub=[2.0], bounds=(0.0, np.inf))
    >>> triangle.lmo([1.0, -1.0])
    array([0., 1.])
    >>> triangle.cut_lmo([-1.0, -1.0], [1.0, 0.0], 1.0).point
    array([1. , 0.5])
    """

    dimension: int

    def __init__(
        self,
        A_ub: Any = None,
        b_ub: Any = None,
        A_eq: Any = None,
        b_eq: Any = None,
        bounds: Any = None,
        *,
        warm_start: bool = True,
    ):
        upper_rows, upper_sides = _rows(A_ub, b_ub, "ub")
        equal_rows, equal_sides = _rows(A_eq, b_eq, "eq")
        self.dimension = _common_dimension(upper_rows, equal_rows, bounds)
        self.lower, self.upper = _bounds(bounds, self.dimension)
        self.warm_start = checks.flag(warm_start, "warm_start")
        present = [rows for rows in (upper_rows, equal_rows) if rows is not None]
        self._rows = scipy.sparse.csr_array(
            scipy.sparse.vstack(present) if present else scipy.sparse.csr_array((0, self.dimension))
        )
        self._rows.sort_indices()
        self._least = np.concatenate([np.full(upper_sides.size, -np.inf), equal_sides])
        self._most = np.concatenate([upper_sides, equal_sides])
        self._start: Any = None  # where each call starts from; None if where the last one ended
        self._scale()
        if not warm_start:
            self._fix_start()

    def _scale(self) -> None:
        """Find the box around the set and the units of the variables, each from the other, starting from the bounds."""
        size = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (self.lower, self.upper)))
        self._units = np.where(size > 0.0, _power_of_two(size), _first_guess(self._rows, self._most, size))
        for _ in range(SCALINGS):
            self._solver = self._model()
            self._box, proven = self._bounding_box()
            size = np.abs(self._box).max(axis=0)
            better = np.where(size > 0.0, _power_of_two(size), 1.0)
            if proven and (np.abs(np.log2(better / self._units)) <= 2.0).all():
                return
            self._units = better
        self._solver = self._model()
        self._box, proven = self._bounding_box()
        if not proven:
            raise ValueError(
                "no box around the polytope can be proven, so far apart are its units; finite `bounds` can help"
            )

    @functools.cached_property
    def _equations(self) -> Equations:
        return Equations.of(self)

    def _fix_start(self) -> None:
        self._solver = self._model()
        self._start = self._solver.getBasis()

    def __repr__(self) -> str:
        return f"Polytope(dimension={self.dimension}, rows={self._rows.shape[0]})"

    def fingerprint(self) -> tuple[Any, ...]:
        """Return all that makes the set what it is."""
        rows = self._rows
        return rows.data, rows.indices, rows.indptr, self._least, self._most, self.lower, self.upper

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_solver", "_start")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _start=None)
        self._solver = self._model()
        if not self.warm_start:
            self._fix_start()

    def _model(self) -> Any:
        """Return the model in the units of the variables and each row in units of its largest entry; the last is the cut."""
        solver = _highs().Highs()
        options: dict[str, Any] = {
            "output_flag": False,
            "presolve": "off",
            "threads": 1,
            "solver": "simplex",
            "primal_feasibility_tolerance": FEASIBILITY,
            "dual_feasibility_tolerance": FEASIBILITY,
            "small_matrix_value": 1e-12,
            "simplex_scale_strategy": 0,  # rows are scaled already; factors would depend on the cut of the call before
        }
        for option, value in options.items():
            solver.setOptionValue(option, value)
        count, d = self._rows.shape
        model = _highs().HighsLp()
        model.num_col_, model.num_row_ = d, count + 1
        model.col_cost_ = np.zeros(d)
        scaled = scipy.sparse.csr_array(self._rows @ scipy.sparse.diags_array(self._units))
        sizes = abs(scaled).max(axis=1).toarray().ravel() if count else np.empty(0)
        per_row = 1.0 / np.where(sizes > 0.0, _power_of_two(sizes), 1.0)
        scaled = scipy.sparse.csr_array(scipy.sparse.diags_array(per_row) @ scaled)
        self._scaled = _Scaled(
            scaled, self._least * per_row, self._most * per_row, self.lower / self._units, self.upper / self._units
        )
        model.col_lower_, model.col_upper_ = self._scaled.lower, self._scaled.upper
        model.row_lower_ = np.append(self._scaled.least, -np.inf)
        model.row_upper_ = np.append(self._scaled.most, np.inf)
        model.a_matrix_.format_ = _highs().MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.append(scaled.indptr, scaled.indptr[-1])
        model.a_matrix_.index_, model.a_matrix_.value_ = scaled.indices, scaled.data
        solver.passModel(model)
        self._cut = np.zeros(d)  # the coefficients of the last row
        solver.run()
        if solver.getModelStatus() == _highs().HighsModelStatus.kInfeasible:
            raise ValueError("the polytope is empty: no point satisfies `A_ub`, `b_ub`, `A_eq`, `b_eq` and `bounds`")
        return solver

    def _bounding_box(self) -> tuple[np.ndarray, bool]:
        """Return bounds of each variable, in the units of the user, and whether they are proven to hold for all points.

        Each bound is proven by the multipliers of its linear program, up to what they leave over of the other variables.
        For those without bounds of the user's that is at most ``left`` times the largest |x_j|. So for each point
        max |x_j| ≤ largest + left · max |x_j|.
        """
        d = self.dimension
        proven, left, ends, corners = np.empty((2, d)), np.zeros((2, d)), np.empty((2, d)), np.zeros(d)
        for k in range(d):
            for side, sign in enumerate((1.0, -1.0)):
                direction = np.zeros(d)
                direction[k] = sign
                found = self._minimise(direction)
                if found is None:
                    raise ValueError(
                        f"the polytope is unbounded in variable {k}; `bounds` or more rows in `A_ub` must limit it"
                    )
                ends[side, k] = found[0][k]
                corners += found[0] / (2 * d)
                value, left[side, k] = self._scaled.floor(direction, found[1], self._scaled.lower, self._scaled.upper)
                proven[side, k] = sign * value
        largest, share = float(np.abs(proven).max()), float(left.max())
        self._inner = self._off_the_rows(corners) * self._units
        if not share < 0.5:
            return ends * self._units, False
        reach = raised(largest / (1.0 - raised(share, 1)), 4)
        proven[0] = np.maximum(np.nextafter(proven[0] - raised(left[0] * reach, 2), -math.inf), self._scaled.lower)
        proven[1] = np.minimum(np.nextafter(proven[1] + raised(left[1] * reach, 2), math.inf), self._scaled.upper)
        return proven * self._units, True

    def _off_the_rows(self, point: np.ndarray) -> np.ndarray:
        """Return the mean of a point and of vertices away from all rows that it is close to, so that it keeps off them."""
        close = self._scaled.most - self._scaled.rows @ point < CLOSE
        others = [self._minimise(self._scaled.rows[[i]].toarray().ravel()) for i in np.flatnonzero(close)]
        mean = np.mean([point, *(found[0] for found in others if found is not None)], axis=0)
        return np.clip(mean, self._scaled.lower, self._scaled.upper)

    def _solve(self) -> Any:
        """Run the solver from where it is, and once more from nothing if it is in doubt."""
        status = _highs().HighsModelStatus
        self._solver.run()
        found = self._solver.getModelStatus()
        if found not in (status.kOptimal, status.kInfeasible, status.kUnbounded):
            self._solver.clearSolver()
            self._solver.run()
            found = self._solver.getModelStatus()
        return found

    def _minimise(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (minimiser of ⟨c, z⟩, multipliers of the rows) without the cut, in the model's units; None if unbounded."""
        d = self.dimension
        self._solver.changeColsCost(d, np.arange(d, dtype=np.int32), c)
        self._solver.changeRowBounds(self._rows.shape[0], -np.inf, np.inf)
        if self._start is not None:
            self._solver.clearSolver()
            self._solver.setBasis(self._start)
        for again in (False, True):
            if again:
                self._solver.clearSolver()
            found = self._solve()
            if found == _highs().HighsModelStatus.kUnbounded:
                return None
            if found != _highs().HighsModelStatus.kOptimal:
                raise RuntimeError(f"HiGHS could not minimise over the polytope: {self._solver.modelStatusToString(found)}")
            solution = self._solver.getSolution()
            point = np.clip(np.array(solution.col_value), self._scaled.lower, self._scaled.upper)
            prices = np.array(solution.row_dual)[: self._rows.shape[0]]
            if self._scaled.doubt(c, point, prices) <= DOUBT:
                return point, prices
        raise RuntimeError(
            "HiGHS could not minimise over the polytope to seven digits: its rows are too close to each other, or in units "
            "too far apart; other units or fewer rows can help"
        )

    def _minimise_in_cut(self, a: np.ndarray, bound: float) -> tuple[np.ndarray, float] | None:
        """Return (minimiser, multiplier) of the last objective where ⟨a, z⟩ ≤ bound; None if there is none or in doubt."""
        row = self._rows.shape[0]
        for k in np.flatnonzero(a != self._cut):
            self._solver.changeCoeff(row, int(k), float(a[k]))
        self._cut = a
        self._solver.changeRowBounds(row, -np.inf, bound)
        if self._solve() != _highs().HighsModelStatus.kOptimal:
            return None
        solution = self._solver.getSolution()
        point = np.clip(np.array(solution.col_value), self._scaled.lower, self._scaled.upper)
        return point, max(-solution.row_dual[row], 0.0)


class _Scaled(NamedTuple):
    """A polytope in the units of its variables and rows: powers of two, so that it is the same set, exactly."""

    rows: Any  # (m, d), sparse
    least: np.ndarray  # least ≤ rows @ z ≤ most
    most: np.ndarray
    lower: np.ndarray  # lower ≤ z ≤ upper
    upper: np.ndarray

    @quiet
    def floor(self, c: np.ndarray, prices: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
        """Return (value, left) with ⟨c, z⟩ ≥ value − left · max |z_j| for all z of the set, whatever the prices of the rows.

        Neumaier and Shcherbina, Safe bounds in linear and mixed-integer linear programming, 2004: ⟨c, z⟩ is ⟨c − Aᵀy, z⟩
        plus ⟨y, A z⟩, and both are bounded term by term. ``left`` is the sum of what c − Aᵀy has where ``lower`` or
        ``upper`` is infinite.
        """
        # A price needs a finite side.
        prices = np.where(prices > 0.0, np.where(np.isfinite(self.least), prices, 0.0), prices)
        prices = np.where(prices < 0.0, np.where(np.isfinite(self.most), prices, 0.0), prices)
        priced = prices != 0.0
        by_rows = prices[priced] * np.where(prices > 0.0, self.least, self.most)[priced]
        reduced = c - self.rows.T @ prices
        doubt = raised((len(prices) + 4) * UNIT * (np.abs(c) + abs(self.rows).T @ np.abs(prices)), 4)
        side = np.where(reduced > 0.0, lower, upper)
        known, size = np.isfinite(side), np.maximum(np.abs(lower), np.abs(upper))
        bounded = np.isfinite(size)
        terms = np.concatenate([by_rows, (reduced * side)[known]])
        margin = raised(UNIT * 4.0 * np.abs(terms).sum() + (doubt * size)[bounded].sum(), terms.size + 8)
        value = sum_floor(np.concatenate([np.nextafter(terms, -math.inf), [-margin]]))
        return value, float(raised(np.abs(reduced)[~known].sum() + doubt[~bounded].sum(), self.rows.shape[1] + 2))

    def doubt(self, c: np.ndarray, point: np.ndarray, prices: np.ndarray) -> float:
        """Return by how much a point violates the rows, or its value exceeds what the prices prove."""
        values = self.rows @ point
        violation = float(np.maximum(self.least - values, values - self.most).max(initial=0.0))
        size = max(float(np.abs(point).max()), 1.0)
        floor, left = self.floor(c, prices, self.lower, self.upper)
        return max(violation, float(c @ point) - floor - left * size) / size


@lmo.register(Polytope)
def _(domain: Polytope, c: np.ndarray, out: np.ndarray) -> None:
    found = domain._minimise(_scaled(c * domain._units)[0])
    if found is None:
        raise RuntimeError("HiGHS found no minimiser over the polytope, though it is bounded")
    np.multiply(found[0], domain._units, out=out)


@cut_lmo.register(Polytope)
def _(domain: Polytope, c: np.ndarray, a: np.ndarray, b: float, out: np.ndarray) -> tuple[int, float]:
    units, box = domain._units, domain._box / domain._units
    _, size_c = _scaled(c * units)
    unit_a, size_a = _scaled(a * units)
    if not (math.isfinite(size_c) and math.isfinite(size_a)) or math.isnan(b):
        return INVALID, math.nan
    bound = b / size_a if size_a > 0.0 else b
    lmo(domain, c, out)
    if unit_a @ (out / units) <= bound:
        return FREE, 0.0
    if np.minimum(unit_a * box[0], unit_a * box[1]).sum() <= bound:  # or no point of the box satisfies it
        found = domain._minimise_in_cut(unit_a, bound)
        if found is not None:
            np.multiply(found[0], units, out=out)
            return ACTIVE, found[1] * size_c / size_a
    lmo(domain, a, out)
    if unit_a @ (out / units) > bound:
        return EMPTY, math.inf
    return dual_search(domain, c, a, b, out)  # so near to empty that the solver does not see the points left


@diameter.register(Polytope)
def _(domain: Polytope) -> float:
    width = domain._box[1] - domain._box[0]
    largest = float(width.max())
    return largest * float(np.linalg.norm(width / largest)) if largest > 0.0 else 0.0


@contains.register(Polytope)
def _(domain: Polytope, x: np.ndarray, tol: float) -> bool:
    width, size = domain._box[1] - domain._box[0], np.abs(domain._box).max(axis=0)
    margin = tol * width + 4.0 * FEASIBILITY * size
    if not ((x >= domain.lower - margin).all() and (x <= domain.upper + margin).all()):
        return False
    values, margins = domain._rows @ x, abs(domain._rows) @ margin
    return bool((values >= domain._least - margins).all() and (values <= domain._most + margins).all())


def _scaled(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return x divided by its largest entry, and that."""
    size = float(np.abs(x).max())
    return (x / size if size > 0.0 else x), size


def _rows(matrix: Any, side: Any, name: str) -> tuple[Any, np.ndarray]:
    """Return checked rows and right-hand sides."""
    if matrix is None or side is None:
        if matrix is not side:
            given, missing = ("A", "b") if side is None else ("b", "A")
            raise ValueError(f"`{given}_{name}` is given without `{missing}_{name}`; both or none are needed")
        return None, np.empty(0)
    rows = matrix if scipy.sparse.issparse(matrix) else checks.numbers(matrix, f"A_{name}")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"`A_{name}` must be a matrix with a column a variable, got an array of shape {rows.shape}")
    rows = scipy.sparse.csr_array(rows, dtype=np.float64)
    checks.finite(rows.data, f"A_{name}")
    if rows.shape[0] == 0 and np.size(side) == 0:
        return rows, np.empty(0)
    return rows, checks.vector(side, f"b_{name}", rows.shape[0])


def _power_of_two(sizes: np.ndarray) -> np.ndarray:
    """Return the powers of two next to some sizes, as far as they and their reciprocals are numbers."""
    return np.ldexp(1.0, np.clip(np.frexp(sizes)[1], -1000, 1000))


def _first_guess(rows: Any, most: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return units for variables without bounds: with them a row's term of such a variable is as large as its others."""
    units = np.ones(known.size)
    size = np.abs(most)[:, None] + abs(rows) @ known[:, None]
    pattern = abs(rows).tocoo()
    for i, j, value in zip(*pattern.coords, pattern.data, strict=True):
        if value > 0.0 and size[i, 0] > 0.0:
            units[j] = max(units[j] if units[j] != 1.0 else 0.0, size[i, 0] / value)
    return _power_of_two(units)


def _common_dimension(upper_rows: Any, equal_rows: Any, bounds: Any) -> int:
    """Return the number of variables, on which all that is given must agree."""
    found = [(name, rows.shape[1]) for name, rows in (("A_ub", upper_rows), ("A_eq", equal_rows)) if rows is not None]
    if bounds is not None:
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise ValueError(f"`bounds` must be a pair (lower, upper), got {checks.shown(bounds)}")
        sides = [np.empty(()) if side is None else checks.numbers(side, "bounds") for side in bounds]
        found += [(f"bounds[{k}]", side.size) for k, side in enumerate(sides) if side.ndim > 0]
    if not found:
        raise ValueError("the dimension is unknown: `A_ub`, `A_eq` or a vector in `bounds` must fix it")
    if len({size for _, size in found}) > 1:
        sizes = ", ".join(f"`{name}` has {size}" for name, size in found)
        raise ValueError(f"the number of variables must agree, but {sizes}")
    return found[0][1]


def _bounds(bounds: Any, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds as two vectors."""
    sides = []
    for side, nothing in zip((None, None) if bounds is None else bounds, (-np.inf, np.inf), strict=True):
        array = checks.numbers(nothing if side is None else side, "bounds")
        sides.append(np.array(np.broadcast_to(array, dimension), dtype=np.float64))
    lower, upper = sides
    bad = ~((lower <= upper) & (lower < np.inf) & (upper > -np.inf))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"`bounds` must have lower ≤ upper everywhere, got ({lower[k]}, {upper[k]}) for variable {k}")
    return lower, upper


@functools.cache
def _highs() -> Any:
    """HiGHS, imported when the first polytope is made: it takes a third of a second."""
    try:
        import highspy
    except ImportError:
        raise ImportError("a Polytope needs the HiGHS solver: pip install 'tiebreak[polytope]'") from None
    return highspy


# Proofs


@least_value.register(Hull)
@quiet
def _least_value_over_hull(domain: Hull, c: np.ndarray, atom: np.ndarray) -> float:
    margins = raised((c.size + 8) * UNIT * (np.abs(domain.points) @ np.abs(c)), c.size + 4) + 2 * c.size * SUBNORMAL
    least = float(np.min(domain.points @ c - margins))
    return -math.inf if math.isnan(least) else math.nextafter(least, -math.inf)


@spread.register(Hull)
@quiet
def _spread_of_hull(domain: Hull, e: np.ndarray) -> float:
    return float(raised((np.abs(domain.points) @ e).max(), e.size + 1))


@settle.register(Hull)
@quiet
def _settle_in_hull(domain: Hull, x: np.ndarray, off: np.ndarray) -> bool:
    weights = mean_weights(domain.points, x)
    mean = weights @ domain.points
    sizes = weights @ np.abs(domain.points)
    rounding = 4.0 * (len(domain.points) + 8) * UNIT * sizes + SUBNORMAL
    if not np.isfinite(mean).all():
        return unsettled(off)
    if (np.abs(mean - x) > 1e-13 * np.abs(domain.points).max(axis=0) + rounding).any():
        x[:] = mean
    off[:] = raised(np.abs(mean - x) + rounding, 4)
    return True


@least_value.register(Birkhoff)
@quiet
def _least_value_over_birkhoff(domain: Birkhoff, c: np.ndarray, atom: np.ndarray) -> float:
    # Any prices of columns, with those of rows that leave no reduced cost below zero, bound the cost of all assignments.
    _, column_price = assign(c, domain.n)
    reduced = np.nextafter(c.reshape(domain.n, domain.n) - column_price, -math.inf)
    return sum_floor(np.concatenate([reduced.min(axis=1), column_price]))


spread.register(Birkhoff)(spread_by_signs)


@settle.register(Birkhoff)
@quiet
def _settle_in_birkhoff(domain: Birkhoff, x: np.ndarray, off: np.ndarray) -> bool:
    n = domain.n
    X = np.maximum(x, 0.0, out=x).reshape(n, n)
    rounding = 4.0 * (n + 8) * UNIT
    if max(np.abs(X.sum(axis=0) - 1.0).max(), np.abs(X.sum(axis=1) - 1.0).max()) > rounding:
        complete(X)
    rows, columns = X.sum(axis=1), X.sum(axis=0)
    # In thought: rows, then columns, shrink to sums of at most one, and what is missing in row i and column j then is spread
    # over all entries, min(missing_i, missing_j) at most for each.
    shrink = max(float(rows.max()) - 1.0, 0.0) + max(float(columns.max()) - 1.0, 0.0) + 2.0 * rounding
    missing = [np.abs(sums - 1.0) + 2.0 * (shrink + rounding) for sums in (rows, columns)]
    off[:] = raised(shrink * X + np.minimum.outer(*missing), 8).ravel()
    return bool(shrink < 0.1) or unsettled(off)


def complete(X: np.ndarray) -> None:
    """Round a matrix to a doubly stochastic one (Altschuler, Weed and Rigollet 2017)."""
    X /= np.maximum(X.sum(axis=1), 1.0)[:, None]
    X /= np.maximum(X.sum(axis=0), 1.0)
    rows, columns = np.maximum(1.0 - X.sum(axis=1), 0.0), np.maximum(1.0 - X.sum(axis=0), 0.0)
    if rows.sum() > 0.0:
        X += rows[:, None] * (columns / rows.sum())


@least_value.register(Polytope)
@quiet
def _least_value_over_polytope(domain: Polytope, c: np.ndarray, atom: np.ndarray) -> float:
    unit = float(_power_of_two(np.abs(c * domain._units).max(keepdims=True))[0])
    scaled = c * domain._units / unit
    if not np.isfinite(scaled).all():
        return -math.inf
    found = domain._minimise(scaled)
    if found is None:
        return -math.inf
    lower, upper = domain._box / domain._units
    lost = c.size * SUBNORMAL * float(np.abs(domain._box / domain._units).max())  # where c underflows in these units
    value, _ = domain._scaled.floor(scaled, found[1], lower, upper)
    return least_or_nothing(math.nextafter(math.nextafter(value - raised(lost, 4), -math.inf) * unit, -math.inf))


@spread.register(Polytope)
@quiet
def _spread_of_polytope(domain: Polytope, e: np.ndarray) -> float:
    return float(raised(float((e * np.abs(domain._box).max(axis=0)).sum()), e.size + 1))


class Equations(NamedTuple):
    """The equations of a polytope, in the units of its variables, which all are powers of two."""

    rows: np.ndarray  # (p, d): 0 for variables that have no room
    sizes: np.ndarray  # of the rows, by which they are divided
    least: float  # their least singular value is not below this; 0 if they may depend on each other

    @classmethod
    def of(cls, domain: Polytope) -> Equations:
        """Return those of a polytope."""
        free = (domain._inner > domain.lower) & (domain._inner < domain.upper)
        rows = domain._rows[domain._least > -np.inf].toarray() * (domain._units * free)
        sizes = _power_of_two(np.linalg.norm(rows, axis=1)) if rows.size else np.ones(0)
        rows /= sizes[:, None]
        if not len(rows) or not rows.any(axis=1).all() or len(rows) > free.sum():
            return cls(rows, sizes, 0.0)
        gram = rows @ rows.T
        rounding = raised((rows.shape[1] + 8) * UNIT * float((rows**2).sum()), rows.size)
        square = eigenvalue_floor(0.5 * (gram + gram.T)) - rounding
        return cls(rows, sizes, math.sqrt(square) * (1.0 - 8.0 * UNIT) if square > 0.0 else 0.0)

    def distance(self, domain: Polytope, x: np.ndarray) -> float:
        """Return a bound, in the units of the variables, of how far a point is that satisfies the equations exactly."""
        if not len(self.rows):
            return 0.0
        off = np.abs(self.misfit(domain, x)) + _row_roundings(domain, x)[domain._least > -np.inf]
        return raised(norm_ceiling(off / self.sizes) / self.least, 4) if self.least > 0.0 else math.inf

    def misfit(self, domain: Polytope, x: np.ndarray) -> np.ndarray:
        """Return by how much the equations are not satisfied, in the units of the user."""
        equal = domain._least > -np.inf
        return domain._most[equal] - domain._rows[equal] @ x


@settle.register(Polytope)
@quiet
def _settle_in_polytope(domain: Polytope, x: np.ndarray, off: np.ndarray) -> bool:
    # A point near x satisfies the equations. What it violates of the rest, a share of the way makes up for to a point that
    # satisfies them too and keeps away from all else.
    equations, inner, units = domain._equations, domain._inner, domain._units
    to_inner = equations.distance(domain, inner)
    if not math.isfinite(to_inner):
        return unsettled(off)
    upper_rows = domain._least == -np.inf
    reach = abs(domain._rows)[upper_rows] @ units  # of a row, by steps of one unit
    room = (domain._most - _row_ceilings(domain, inner))[upper_rows] - raised(reach * to_inner, 4)
    room -= 4.0 * UNIT * (np.abs(room) + np.abs(domain._most[upper_rows]))
    moving = equations.rows.any(axis=0)  # those variables that equations can move
    sides = np.minimum(inner - domain.lower, domain.upper - inner) - raised(units * to_inner, 4) * moving
    if not ((room > 0.0).all() and (sides[moving] > 0.0).all()):
        return unsettled(off)
    point = np.clip(x, domain.lower, domain.upper)
    for tries in range(4):
        gap = equations.distance(domain, point)
        if gap > 1e-13 and tries < 3:
            step = np.linalg.lstsq(equations.rows, equations.misfit(domain, point) / equations.sizes, rcond=None)[0]
            point = np.clip(point + units * step, domain.lower, domain.upper)
            continue
        excess = np.maximum((_row_ceilings(domain, point) - domain._most)[upper_rows], 0.0)
        excess = raised(excess + 4.0 * UNIT * np.abs(domain._most[upper_rows]) * (excess > 0.0), 2) * (excess > 0.0)
        excess += raised(reach * gap, 4)
        over = np.maximum(raised(units * gap, 4) - np.minimum(point - domain.lower, domain.upper - point), 0.0)[moving]
        shares = [_shares(excess, room), _shares(over, sides[moving])]
        share = float(raised(np.concatenate(shares).max(initial=0.0), 4))
        if share <= 1e-12 or tries == 3:
            break
        point = np.clip(point + share * (inner - point), domain.lower, domain.upper)
    if not share < 0.5:
        return unsettled(off)
    x[:] = point
    off[:] = raised(units * gap, 4) * moving
    if share > 0.0:
        off += raised(share * (np.abs(inner - x) + units * (gap + to_inner)), 6)
    return True


def _shares(excess: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return which share of the way to a point that has room makes up for an excess."""
    return np.divide(excess, excess + room, out=np.zeros_like(excess), where=excess > 0.0)


def _row_ceilings(domain: Polytope, x: np.ndarray) -> np.ndarray:
    """Return numbers that are at least the values of the rows at x."""
    return domain._rows @ x + _row_roundings(domain, x)


def _row_roundings(domain: Polytope, x: np.ndarray) -> np.ndarray:
    """Return by how much the computed values of the rows at x, and their distance to their sides, may be wrong."""
    sizes = abs(domain._rows) @ np.abs(x) + np.where(domain._least > -np.inf, np.abs(domain._most), 0.0)
    return raised((domain.dimension + 8) * UNIT * sizes, 4) + 2 * domain.dimension * SUBNORMAL
