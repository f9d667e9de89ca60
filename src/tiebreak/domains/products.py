"""Sets made of sets: matrices whose columns lie in a set, and products of named parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tiebreak import checks
from tiebreak.domains.balls import L2Ball, reciprocal
from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID, Domain, contains, cut_lmo, diameter, lmo, project
from tiebreak.domains.cut import GAP, MAX_PASSES, ROUNDING, boundary_weight, crossing, dual_search, next_atom, relative_gap
from tiebreak.engine import kernel
from tiebreak.vectors import abs_argmax

PARALLEL = 1e-14  # what is left of c across a, relative to c, when only rounding is left


class _Columns(NamedTuple):
    set: Any
    rows: int
    columns: int


class Columns(Domain, _Columns):
    """The matrices each of whose columns lies in one set.

    A point is a vector that holds the matrix column by column; :meth:`parts` shows it as the matrix.

    Parameters
    ----------
    set : Domain
        A set of vectors of length m, such as ``L2Ball(1.0)`` or ``L1Ball(3.0)``.
    shape : (int, int)
        Number m of rows and number p of columns.

    Examples
    --------
    >>> from tiebreak import L1Ball
    >>> matrices = Columns(L1Ball(1.0), (2, 3))
    >>> s = matrices.lmo([3.0, 1.0, 0.0, -2.0, 1.0, 4.0])
    >>> matrices.parts(s)["x"]
    array([[-1.,  0.,  0.],
           [ 0.,  1., -1.]])
    """

    __slots__ = ()

    def __new__(cls, set: Any, shape: Any) -> Columns:
        if not isinstance(set, Domain) or not lmo.supports(set):
            raise ValueError(f"`set` must be a set such as L1Ball(radius), got {checks.shown(set)}")
        rows, columns = matrix_shape(shape)
        if set.dimension not in (None, rows):
            raise ValueError(f"`shape` must have {set.dimension} rows, the dimension of `set`, got {checks.shown(shape)}")
        kind = _BallColumns if cls is Columns and isinstance(set, L2Ball) else cls
        return super().__new__(kind, set, rows, columns)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return self.rows * self.columns

    def project(self, x: Any) -> np.ndarray:
        require_projection(self)
        return super().project(x)

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": x.reshape(self.columns, self.rows).T}


class _BallColumns(Columns):
    """Columns in Euclidean balls, which have a cut of their own; users see :class:`Columns`."""

    __slots__ = ()


class _Pair(NamedTuple):
    first: Any
    second: Any
    split: int  # dimension of the first


class Pair(Domain, _Pair):
    """The product of two sets, one after the other in one vector. A product of more is a pair of a set and a pair."""

    __slots__ = ()


class _Product(NamedTuple):
    names: str  # with a space between
    size: int
    tree: Any  # the only part, or a Pair of the first one and the tree of the others


class Product(Domain, _Product):
    """The product of named sets, one after the other in one vector; :meth:`parts` gives views by name.

    Parameters
    ----------
    **parts : Domain or (Domain, int)
        The sets by name. A set of any dimension comes with the dimension that is meant: ``w=(L1Ball(1.0), 10)``.

    Examples
    --------
    >>> from tiebreak import L1Ball
    >>> both = Product(w=(L1Ball(1.0), 2), X=Columns(L1Ball(3.0), (2, 2)))
    >>> both.dimension
    6
    >>> both.parts(both.lmo([1.0, 2.0, 3.0, 4.0, 6.0, 5.0]))["X"]
    array([[ 0., -3.],
           [-3.,  0.]])
    """

    __slots__ = ()

    def __new__(cls, **parts: Any) -> Product:
        if not parts:
            raise ValueError("`parts` must name at least one set, got none")
        known = [sized_part(name, value) for name, value in parts.items()]
        tree = known[-1][0]
        for part, size in reversed(known[:-1]):
            tree = Pair(part, tree, size)
        return super().__new__(cls, " ".join(parts), sum(size for _, size in known), tree)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return self.size

    def project(self, x: Any) -> np.ndarray:
        require_projection(self)
        return super().project(x)

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        views: dict[str, np.ndarray] = {}
        for name, part, where in self.named_parts():
            inner = part.parts(x[where])
            whole = isinstance(part, Product) is False and list(inner) == ["x"]
            views.update({name if whole else f"{name}.{key}": view for key, view in inner.items()})
        return views

    def named_parts(self) -> Iterator[tuple[str, Any, slice]]:
        """Yield the name of each part, its set and its place in the vector."""
        names, tree, start = self.names.split(" "), self.tree, 0
        for name in names[:-1]:
            yield name, tree.first, slice(start, start + tree.split)
            start += tree.split
            tree = tree.second
        yield names[-1], tree, slice(start, self.size)


def matrix_shape(shape: Any) -> tuple[int, int]:
    """Return the two numbers of a matrix shape."""
    try:
        rows, columns = shape
    except (TypeError, ValueError):
        raise ValueError(f"`shape` must be two whole numbers ≥ 1, got {checks.shown(shape)}") from None
    return checks.whole(rows, "shape[0]"), checks.whole(columns, "shape[1]")


def sized_part(name: str, value: Any) -> tuple[Any, int]:
    """Return a part of a product and its dimension."""
    if not name.isidentifier():
        raise ValueError(f"the name of a part must be an identifier such as X or weights, got {checks.shown(name)}")
    part, size = value, None
    if type(value) is tuple and len(value) == 2:
        part, size = value[0], checks.whole(value[1], f"{name}[1]")
    if not isinstance(part, Domain) or not lmo.supports(part):
        raise ValueError(f"`{name}` must be a set, or a set and its dimension, got {checks.shown(value)}")
    if size is None and part.dimension is None:
        kind = type(part).__name__
        raise ValueError(f"`{name}` must have a dimension, and {kind} fits any: pass {name}=({kind}(...), dimension)")
    if None not in (size, part.dimension) and size != part.dimension:
        raise ValueError(f"`{name}` has dimension {part.dimension}, got {size}")
    return part, size or part.dimension or 0


def require_projection(domain: Any) -> None:
    """Raise an error that names the set without projection inside another one."""
    if (part := without_projection(domain)) is not None:
        raise NotImplementedError(f"{type(part).__name__} has no `project`; methods that project cannot use it")


def without_projection(domain: Any) -> Any:
    """Return the first set without a projection that a set is made of, which may be itself; None if there is none."""
    if isinstance(domain, Product):
        found = (without_projection(part) for _, part, _ in domain.named_parts())
        return next((part for part in found if part is not None), None)
    if isinstance(domain, Columns):
        return without_projection(domain.set)
    return None if project.supports(domain) else domain


# Columns in any set.


@kernel
def column(domain, x, j):
    """Return a view of a column."""
    return x[j * domain.rows : (j + 1) * domain.rows]


@lmo.register(Columns)
def _(domain, c, out):
    for j in range(domain.columns):
        lmo(domain.set, column(domain, c, j), column(domain, out, j))


@next_atom.register(Columns)
def _(domain, c, a, out):
    for j in range(domain.columns):
        if couples(column(domain, a, j)):
            next_atom(domain.set, column(domain, c, j), column(domain, a, j), column(domain, out, j))


@project.register(Columns)
def _(domain, x, out):
    for j in range(domain.columns):
        project(domain.set, column(domain, x, j), column(domain, out, j))


@diameter.register(Columns)
def _(domain):
    return math.sqrt(domain.columns) * diameter(domain.set)


@contains.register(Columns)
def _(domain, x, tol):
    for j in range(domain.columns):  # noqa: SIM110 - Numba compiles no generator expressions
        if not contains(domain.set, column(domain, x, j), tol):
            return False
    return True


# Columns in Euclidean balls. With c_j = along_j · a_j / ‖a_j‖ + d_j, d_j orthogonal to a_j, the vector p c_j + q a_j has the
# length n_j = ‖(e_j, f_j)‖ for e_j = p along_j + q ‖a_j‖ and f_j = p ‖d_j‖, and the minimiser in the unit ball is
# −(e_j/n_j) a_j/‖a_j‖ − (f_j/n_j) d_j/‖d_j‖. So λ = q/p is found from three numbers a column, without another look at the
# data, and without cancellation where c_j + λ a_j is nearly zero. Where it is zero any point of the ball will do: the slope
# jumps there, and the mean of the points at both sides of the jump is the answer.


class Frames(NamedTuple):
    """How c_j lies to a_j, for each column j; c and a in units of their largest entries."""

    length: np.ndarray  # ‖a_j‖
    along: np.ndarray  # ⟨c_j, a_j⟩ / ‖a_j‖
    across: np.ndarray  # ‖d_j‖
    tilt: np.ndarray  # d_j = c_j − tilt_j a_j …
    rest: np.ndarray  # … − rest_j a_j, what rounding left of it


@cut_lmo.register(_BallColumns)
def _(domain, c, a, b, out):
    size_c, size_a = abs(c[abs_argmax(c)]), abs(a[abs_argmax(a)])
    if not (math.isfinite(size_c) and math.isfinite(size_a)) or math.isnan(b):
        return INVALID, math.nan
    per_c, per_a = reciprocal(size_c), reciprocal(size_a)
    work = np.empty((5, domain.columns))  # a few numbers a column, little next to the data
    frames = Frames(work[0], work[1], work[2], work[3], work[4])
    bound = frame_columns(domain, c, per_c, a, per_a, b * per_a, frames)
    _, a_free, _ = look(frames, 1.0, 0.0)
    _, a_least, _ = look(frames, 0.0, 1.0)
    if a_free <= bound:
        mix_columns(domain, c, per_c, a, per_a, frames, 1.0, 0.0, 1.0, 1.0, 0.0, out)
        return FREE, 0.0
    if a_least > bound:
        mix_columns(domain, c, per_c, a, per_a, frames, 0.0, 1.0, 1.0, 0.0, 1.0, out)
        return EMPTY, math.inf
    p, q, low_p, low_q, high_p, high_q, weight = newton(frames, bound)
    mix_columns(domain, c, per_c, a, per_a, frames, low_p, low_q, weight, high_p, high_q, out)
    return ACTIVE, q / p * per_a / per_c


@kernel(inline=False)
def frame_columns(domain, c, per_c, a, per_a, bound, frames):
    """Fill the frames and return the cut's bound for unit balls about the origin."""
    offset = 0.0
    for j in range(domain.columns):
        cj, aj = column(domain, c, j), column(domain, a, j)
        aa, ac = inner(aj, per_a, aj, per_a), inner(aj, per_a, cj, per_c)
        tilt = ac / aa if aa > 0.0 else 0.0
        dd, da = remainder(cj, per_c, aj, per_a, tilt, 0.0)
        rest = 0.0
        if aa > 0.0 and dd < 0.01 * tilt * ac:  # most digits of d_j are lost: once more
            rest = da / aa
            dd, da = remainder(cj, per_c, aj, per_a, tilt, rest)
        length, across = math.sqrt(aa), math.sqrt(dd)
        frames.length[j] = length
        frames.along[j] = (tilt + rest) * length
        frames.across[j] = across if across > PARALLEL * abs(frames.along[j]) else 0.0
        frames.tilt[j] = tilt
        frames.rest[j] = rest
        for i in range(domain.set.center.size):
            offset += aj[i] * per_a * domain.set.center[i]
    return (bound - offset) / domain.set.radius


@kernel(reorder=True)
def inner(x, per_x, y, per_y):
    """Return ⟨per_x · x, per_y · y⟩."""
    total = 0.0
    for i in range(x.size):
        total += times(x[i], per_x) * times(y[i], per_y)
    return total


@kernel
def times(x, per):
    """Return x · per; a kernel of its own, so that a reordered sum does not become per² · Σ x y, which may overflow."""
    return x * per


@kernel
def left_over(c, per_c, a, per_a, tilt, rest, i):
    """Return an entry of d = c − tilt · a − rest · a."""
    return (c[i] * per_c - tilt * (a[i] * per_a)) - rest * (a[i] * per_a)


@kernel(reorder=True)
def remainder(c, per_c, a, per_a, tilt, rest):
    """Return ‖d‖² and ⟨d, a⟩ for d = c − tilt · a − rest · a."""
    dd = 0.0
    da = 0.0
    for i in range(c.size):
        d = left_over(c, per_c, a, per_a, tilt, rest, i)
        dd += d * d
        da += d * times(a[i], per_a)
    return dd, da


@kernel
def unit_point(frames, j, p, q):
    """Return (e/n, f/n, n) for column j."""
    e = p * frames.along[j] + q * frames.length[j]
    f = p * frames.across[j]
    n = math.sqrt(e * e + f * f)
    if frames.length[j] == 0.0 and frames.across[j] > 0.0:
        return 0.0, 1.0, n  # also for p = 0: this column has nothing to do with the cut
    return (e / n, f / n, n) if n > 0.0 else (0.0, 0.0, n)


@kernel
def look(frames, p, q):
    """Return ⟨c, s⟩ and ⟨a, s⟩ at the minimiser s of ⟨p c + q a, s⟩, and −1/p times the derivative of ⟨a, s⟩ by q."""
    c_value = 0.0
    a_value = 0.0
    curve = 0.0
    for j in range(frames.length.size):
        e, f, n = unit_point(frames, j, p, q)
        c_value -= frames.along[j] * e + frames.across[j] * f
        a_value -= frames.length[j] * e
        if n > 0.0:
            bend = frames.length[j] * (frames.across[j] / n)
            curve += bend * (bend / n)
    return c_value, a_value, curve


@kernel(inline=False)
def newton(frames, bound):
    """Return the ray (p, q) of the dual optimum, two rays about it, and the weight of the first one's point in the answer.

    Newton's method on the slope by λ where λ ≤ 1, by 1/λ elsewhere. Where it leaves the bracket or is slow, the crossing of
    ``cut.py``, which finds jumps of the slope, and bisection take turns.
    """
    c_new, a_new, curve = look(frames, 1.0, 1.0)
    far = a_new > bound  # λ > 1: q = 1 and z = p; else p = 1 and z = q
    c_outside, a_outside, _ = look(frames, 1.0, 0.0)
    c_inside, a_inside, _ = look(frames, 0.0, 1.0)
    z_outside, z_inside = (1.0, 0.0) if far else (0.0, 1.0)
    if far:
        c_outside, a_outside = c_new, a_new
    else:
        c_inside, a_inside = c_new, a_new
    z, p, q = 1.0, 1.0, 1.0
    step = last_step = math.inf
    crossed = False
    for _ in range(MAX_PASSES):
        slope = -z * curve if far else curve
        last_step, step = step, (a_new - bound) / slope if slope != 0.0 else math.inf
        low, high = min(z_outside, z_inside), max(z_outside, z_inside)
        if not (low < z + step < high) or abs(step) > 0.5 * abs(last_step):
            crossed = not crossed
            step = (turn(c_outside, a_outside, c_inside, a_inside, far) if crossed else 0.5 * (low + high)) - z
        z = min(max(z + step, low), high)
        p, q = (z, 1.0) if far else (1.0, z)
        c_new, a_new, curve = look(frames, p, q)
        if a_new > bound:
            z_outside, c_outside, a_outside = z, c_new, a_new
        else:
            z_inside, c_inside, a_inside = z, c_new, a_new
        gap = relative_gap(p, q, c_new, a_new, c_outside, a_outside, c_inside, a_inside, bound)
        if gap <= 0.1 * GAP or abs(z_outside - z_inside) <= ROUNDING * max(z_outside, z_inside):
            break
    weight = boundary_weight(a_outside, a_inside, bound)
    if far:
        return p, q, z_outside, 1.0, z_inside, 1.0, weight
    return p, q, 1.0, z_outside, 1.0, z_inside, weight


@kernel
def turn(c_outside, a_outside, c_inside, a_inside, far):
    """Return z at the crossing of two points."""
    p, q = crossing(c_outside, a_outside, c_inside, a_inside)
    return (p / q if q > 0.0 else 1.0) if far else (q / p if p > 0.0 else 1.0)


@kernel(inline=False)
def mix_columns(domain, c, per_c, a, per_a, frames, low_p, low_q, weight, high_p, high_q, out):
    """Set out to the mean of the minimisers at two rays, the first of them with the given weight."""
    for j in range(domain.columns):
        e_low, f_low, _ = unit_point(frames, j, low_p, low_q)
        e_high, f_high, _ = unit_point(frames, j, high_p, high_q)
        along = domain.set.radius * (weight * e_low + (1.0 - weight) * e_high)
        across = domain.set.radius * (weight * f_low + (1.0 - weight) * f_high)
        along = along / frames.length[j] if frames.length[j] > 0.0 else 0.0
        across = across / frames.across[j] if frames.across[j] > 0.0 else 0.0
        cj, aj, s = column(domain, c, j), column(domain, a, j), column(domain, out, j)
        for i in range(s.size):
            center = domain.set.center[i] if domain.set.center.size > 0 else 0.0
            d = left_over(cj, per_c, aj, per_a, frames.tilt[j], frames.rest[j], i)
            s[i] = center - along * (aj[i] * per_a) - across * d


# Pairs: each generic function once, for the first part and then for all others.


@kernel
def couples(a):
    """Return whether a part takes part in the cut."""
    for i in range(a.size):  # noqa: SIM110 - Numba compiles no generator expressions
        if a[i] != 0.0:
            return True
    return False


@lmo.register(Pair)
def _(domain, c, out):
    lmo(domain.first, c[: domain.split], out[: domain.split])
    lmo(domain.second, c[domain.split :], out[domain.split :])


@next_atom.register(Pair)
def _(domain, c, a, out):
    if couples(a[: domain.split]):
        next_atom(domain.first, c[: domain.split], a[: domain.split], out[: domain.split])
    if couples(a[domain.split :]):
        next_atom(domain.second, c[domain.split :], a[domain.split :], out[domain.split :])


@cut_lmo.register(Pair)
def _(domain, c, a, b, out):
    if not (math.isfinite(c[abs_argmax(c)]) and math.isfinite(a[abs_argmax(a)])) or math.isnan(b):
        return INVALID, math.nan
    k = domain.split
    if not couples(a[:k]):
        lmo(domain.first, c[:k], out[:k])
        return cut_lmo(domain.second, c[k:], a[k:], b, out[k:])
    if not couples(a[k:]):
        lmo(domain.second, c[k:], out[k:])
        return cut_lmo(domain.first, c[:k], a[:k], b, out[:k])
    return dual_search(domain, c, a, b, out)


@project.register(Pair)
def _(domain, x, out):
    project(domain.first, x[: domain.split], out[: domain.split])
    project(domain.second, x[domain.split :], out[domain.split :])


@diameter.register(Pair)
def _(domain):
    return math.hypot(diameter(domain.first), diameter(domain.second))


@contains.register(Pair)
def _(domain, x, tol):
    return contains(domain.first, x[: domain.split], tol) and contains(domain.second, x[domain.split :], tol)


# The product itself: its tree with names.


@lmo.register(Product)
def _(domain, c, out):
    lmo(domain.tree, c, out)


@next_atom.register(Product)
def _(domain, c, a, out):
    next_atom(domain.tree, c, a, out)


@cut_lmo.register(Product)
def _(domain, c, a, b, out):
    return cut_lmo(domain.tree, c, a, b, out)


@project.register(Product)
def _(domain, x, out):
    project(domain.tree, x, out)


@diameter.register(Product)
def _(domain):
    return diameter(domain.tree)


@contains.register(Product)
def _(domain, x, tol):
    return contains(domain.tree, x, tol)
