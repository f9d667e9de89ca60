"""The solutions of linear inequalities and equations, by linear programming."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tiebreak.domains.atoms import has_vertices, has_vertices_always
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
    unsettled,
)
from tiebreak.domains.cuts.search import dual_search
from tiebreak.domains.programs import (
    Scaled,
    checked_bounds,
    checked_rows,
    common_dimension,
    first_units,
    highs,
    power_of_two,
    solved,
    unit_vector,
)
from tiebreak.domains.rounding import eigenvalue_floor, least_or_nothing, norm_ceiling, quiet, raised
from tiebreak.engine import checks
from tiebreak.engine.rounding import SUBNORMAL, UNIT

FEASIBILITY = 1e-10  # tightest tolerance that HiGHS allows
DOUBT = 1e-7  # relative violation or duality gap, in the units of HiGHS, beyond which its answer is refused
CLOSE = 1e-3  # distance to a row within which a point is moved away from it
SCALINGS = 5  # scalings at most, each from the box that was found with the one before


class Polytope(Domain):
    """The bounded set {x : A_ub x ≤ b_ub, A_eq x = b_eq, lower ≤ x ≤ upper}, by linear programming.

    It holds a model of the HiGHS solver, in which only the objective and one row, the cut, change from call to call. A call
    starts from where the last one ended. If a linear function has several minimisers, which one is found may therefore
    depend on earlier calls. With ``warm_start=False`` each call starts from the same vertex, and the answer depends on the
    question alone. Loops over this set run as plain Python. It can be copied and pickled, which makes a new model, and
    must not be used by two threads at once.

    The diameter is an upper bound: the diagonal of the smallest box around the set, which takes two linear programs per
    variable when the set is made. There is no projection.

    Parameters
    ----------
    A_ub, A_eq : matrix with one column per variable, dense or sparse; optional
    b_ub, b_eq : vector with one entry per row; optional
    bounds : (lower, upper), optional
        Numbers or vectors, which may be infinite; None is infinite too. Without it there are no bounds.
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
    ) -> None:
        upper_rows, upper_sides = checked_rows(A_ub, b_ub, "ub")
        equal_rows, equal_sides = checked_rows(A_eq, b_eq, "eq")
        self.dimension = common_dimension(upper_rows, equal_rows, bounds)
        self.lower, self.upper = checked_bounds(bounds, self.dimension)
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
        self._middle = super().middle(self.dimension)

    def middle(self, dimension: int) -> np.ndarray:
        """Return the point that was found when the set was made: later calls may find other vertices of the same value."""
        return self._middle.copy()

    def _scale(self) -> None:
        """Find the box around the set and the units of the variables, each from the other, starting from the bounds."""
        size = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (self.lower, self.upper)))
        self._units = np.where(size > 0.0, power_of_two(size), first_units(self._rows, self._most, size))
        for _ in range(SCALINGS):
            self._solver = self._model()
            self._box, proven = self._bounding_box()
            size = np.abs(self._box).max(axis=0)
            better = np.where(size > 0.0, power_of_two(size), 1.0)
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

    @property
    def stated(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Rows A, sparse, both sides of least ≤ A x ≤ most, and the bounds of a box around the set, (2, d)."""
        return self._rows, self._least, self._most, self._box

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
        solver = highs().Highs()
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
        model = highs().HighsLp()
        model.num_col_, model.num_row_ = d, count + 1
        model.col_cost_ = np.zeros(d)
        scaled = scipy.sparse.csr_array(self._rows @ scipy.sparse.diags_array(self._units))
        sizes = abs(scaled).max(axis=1).toarray().ravel() if count else np.empty(0)
        per_row = 1.0 / np.where(sizes > 0.0, power_of_two(sizes), 1.0)
        scaled = scipy.sparse.csr_array(scipy.sparse.diags_array(per_row) @ scaled)
        self._scaled = Scaled(
            scaled, self._least * per_row, self._most * per_row, self.lower / self._units, self.upper / self._units
        )
        model.col_lower_, model.col_upper_ = self._scaled.lower, self._scaled.upper
        model.row_lower_ = np.append(self._scaled.least, -np.inf)
        model.row_upper_ = np.append(self._scaled.most, np.inf)
        model.a_matrix_.format_ = highs().MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.append(scaled.indptr, scaled.indptr[-1])
        model.a_matrix_.index_, model.a_matrix_.value_ = scaled.indices, scaled.data
        solver.passModel(model)
        self._cut = np.zeros(d)  # the coefficients of the last row
        solver.run()
        if solver.getModelStatus() == highs().HighsModelStatus.kInfeasible:
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
            found = solved(self._solver)
            if found == highs().HighsModelStatus.kUnbounded:
                return None
            if found != highs().HighsModelStatus.kOptimal:
                said = self._solver.modelStatusToString(found)
                raise RuntimeError(f"HiGHS could not minimise over the polytope: {said}; other units can help")
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
        if solved(self._solver) != highs().HighsModelStatus.kOptimal:
            return None
        solution = self._solver.getSolution()
        point = np.clip(np.array(solution.col_value), self._scaled.lower, self._scaled.upper)
        return point, max(-solution.row_dual[row], 0.0)


@lmo.register(Polytope)
def lmo_polytope(domain: Polytope, c: np.ndarray, out: np.ndarray) -> None:
    found = domain._minimise(unit_vector(c * domain._units)[0])
    if found is None:
        raise RuntimeError("HiGHS found no minimiser over the polytope, though it is bounded")
    np.multiply(found[0], domain._units, out=out)


@cut_lmo.register(Polytope)
def cut_lmo_polytope(domain: Polytope, c: np.ndarray, a: np.ndarray, b: float, out: np.ndarray) -> tuple[int, float]:
    units, box = domain._units, domain._box / domain._units
    _, size_c = unit_vector(c * units)
    unit_a, size_a = unit_vector(a * units)
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
def diameter_polytope(domain: Polytope) -> float:
    width = domain._box[1] - domain._box[0]
    largest = float(width.max())
    return largest * float(np.linalg.norm(width / largest)) if largest > 0.0 else 0.0


@contains.register(Polytope)
def contains_polytope(domain: Polytope, x: np.ndarray, tol: float) -> bool:
    width, size = domain._box[1] - domain._box[0], np.abs(domain._box).max(axis=0)
    margin = tol * width + 4.0 * FEASIBILITY * size
    if not ((x >= domain.lower - margin).all() and (x <= domain.upper + margin).all()):
        return False
    values, margins = domain._rows @ x, abs(domain._rows) @ margin
    return bool((values >= domain._least - margins).all() and (values <= domain._most + margins).all())


has_vertices.register(Polytope)(has_vertices_always)


# Proofs


@least_value.register(Polytope)
@quiet
def least_value_polytope(domain: Polytope, c: np.ndarray, atom: np.ndarray) -> float:
    unit = float(power_of_two(np.abs(c * domain._units).max(keepdims=True))[0])
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
def spread_polytope(domain: Polytope, e: np.ndarray) -> float:
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
        sizes = power_of_two(np.linalg.norm(rows, axis=1)) if rows.size else np.ones(0)
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
def settle_polytope(domain: Polytope, x: np.ndarray, off: np.ndarray) -> bool:
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
