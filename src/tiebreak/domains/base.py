"""What a domain is: a compact convex set Z over which linear functions can be minimised.

A value becomes a domain by deriving from :class:`Domain` and registering :func:`lmo`, :func:`diameter` and
:func:`contains`. The cut has a default that needs only :func:`lmo` (see ``cuts/search.py``); :func:`project` is optional.

Proofs ask a set for more: :func:`least_value`, :func:`spread` and :func:`settle`, which have defaults for sets that do not
register their own. These three and :func:`contains` are asked outside the loops. They are plain Python, chosen by the class
of the set; an implementation may be a kernel.
"""

from __future__ import annotations

import functools
import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.domains.rounding import dot_floor, norm_ceiling, quiet, raised
from tiebreak.engine import Value, checks, generic
from tiebreak.engine.printing import named, public_name
from tiebreak.engine.rounding import SUBNORMAL, UNIT

# Plain numbers, because compiled code returns them; CutStatus gives them names.
FREE = 0
ACTIVE = 1
EMPTY = 2
INVALID = 3

RANDOM_ATOMS = 5  # atoms whose mean is a random point


@generic
def lmo(domain, c, out):
    """Set ``out`` to a point of Z that minimises ⟨c, s⟩."""


@generic(inline=False)
def cut_lmo(domain, c, a, b, out):
    """Set ``out`` to a point of Z that minimises ⟨c, s⟩ where ⟨a, s⟩ ≤ b; return (status, multiplier).

    The status is FREE if the minimiser over Z satisfies the cut, ACTIVE if the cut binds, EMPTY if no point of Z satisfies
    it: then ``out`` is a point that violates it least. It is INVALID, and ``out`` untouched, if an input is not finite.
    The multiplier λ ≥ 0 makes ``out`` a minimiser of ⟨c + λ a, s⟩ over Z; it is infinite if the cut is EMPTY.
    """


@generic
def cut_step(domain, c, a, b, step, x, work):
    """Set x ← (1 − step) x + step · s for the minimiser s of :func:`cut_lmo`; return (status, multiplier) as it does.

    ``work`` is room for one point. The default makes s in full; a set whose atoms are sparse can do with less. If the status
    is INVALID, x is untouched.
    """


@generic
def lmo_step(domain, p, c, q, a, step, x, work):
    """Set x ← (1 − step) x + step · s for a point s of Z that minimises ⟨p c + q a, s⟩.

    ``work``, of two rows, is room for two points. The default makes the sum and s in full; a set whose atoms are sparse can
    do with less.
    """


@generic
def project(domain, x, out):
    """Set ``out`` to the point of Z that is nearest to x."""


@generic(inline=False)
def project_cut(domain, x, a, b, out):
    """Set ``out`` to the point of Z where ⟨a, s⟩ ≤ b that is nearest to x; return (status, multiplier).

    The status is as that of :func:`cut_lmo`; if it is EMPTY, ``out`` is a point that violates the cut least, up to rounding.
    The multiplier λ ≥ 0 makes ``out`` the projection of x − λ a onto Z. The default needs only :func:`project` and
    :func:`lmo` (see ``within.py``).
    """


@generic
def diameter(domain):
    """Return the largest distance between two points of Z."""


@functools.singledispatch
def contains(domain: Any, x: np.ndarray, tol: float) -> bool:
    """Return whether x lies in Z, up to ``tol`` relative to the size of Z."""
    raise TypeError(f"{type(domain).__name__} cannot do `contains`: no implementation is registered for it")


@functools.singledispatch
@quiet
def least_value(domain: Any, c: np.ndarray, atom: np.ndarray) -> float:
    """Return a number that is proven not to exceed min ⟨c, s⟩ over s ∈ Z, rounding and underflow included.

    It may be −∞: nothing is proven. The default trusts ``lmo``: it is for a set whose atoms are minimisers, up to the
    relative rounding of each entry.

    Parameters
    ----------
    domain : Domain
    c : array, (d,)
    atom : array, (d,)
        What ``lmo(domain, c, atom)`` has found.
    """
    return dot_floor(c, atom)


@functools.singledispatch
@quiet
def spread(domain: Any, e: np.ndarray) -> float:
    """Return an upper bound of max Σ e_j |s_j| over s ∈ Z, for e ≥ 0: how much errors e of a gradient can matter.

    The default knows a point and the diameter alone. A set with coordinates of its own should register a bound that does not
    depend on their units.
    """
    point = np.empty_like(e)
    lmo(domain, np.zeros_like(e), point)
    reach = norm_ceiling(point) + float(diameter(domain))
    return float(raised(norm_ceiling(e) * reach, e.size + 8))


@functools.singledispatch
@quiet
def settle(domain: Any, x: np.ndarray, off: np.ndarray) -> bool:
    """Move x, which passed ``contains`` at 1e-9, into Z, and say how near to a point of Z it is.

    If it returns True, a point z of Z exists, in exact arithmetic, with ``|z_j − x_j| ≤ off_j`` for all j. If False, nothing
    is known, and ``off`` is infinite. An x that is inside up to rounding stays as it is, bit for bit.

    The default needs a projection, and trusts it up to a few times d roundings of the largest coordinate.
    """
    if not projects(domain):
        return unsettled(off)
    nearest = np.empty_like(x)
    project(domain, x, nearest)
    largest = max(float(np.abs(x).max()), float(np.abs(nearest).max()))
    rounding = 8.0 * (x.size + 4) * UNIT * largest + SUBNORMAL
    if np.abs(nearest - x).max() > rounding:
        x[:] = nearest
    off.fill(2.0 * rounding)
    return True


def unsettled(off: np.ndarray) -> bool:
    """Answer :func:`settle` where nothing is known."""
    off.fill(math.inf)
    return False


@quiet
def spread_by_signs(domain: Any, e: np.ndarray) -> float:
    """Return what :func:`spread` does for a set in which the largest Σ e_j ``|s_j|`` is the largest ⟨e, s⟩.

    That is so if all s are ≥ 0, if s may take any signs, and for matrices whose atoms are ``|u| |v|ᵀ`` with every u vᵀ.
    """
    atom = np.empty_like(e)
    lmo(domain, -e, atom)
    return -least_value(domain, -e, atom)


class CutStatus(IntEnum):
    """What became of a half-space."""

    FREE = FREE
    ACTIVE = ACTIVE
    EMPTY = EMPTY


class Cut(NamedTuple):
    """The answer to a linear minimisation, or a projection, over Z and a half-space."""

    point: np.ndarray
    status: CutStatus
    multiplier: float


class Domain(Value):
    """The common part of all sets: what users ask them from Python.

    Attributes
    ----------
    dimension : int or None
        Number of variables; None if any number will do.
    """

    __slots__ = ()

    def described(self) -> str:
        """Return the set on one line."""
        return named(public_name(type(self)), self._asdict())  # type: ignore[attr-defined]

    if TYPE_CHECKING:

        @property
        def dimension(self) -> int | None:
            """Number of variables; None if any number will do."""

    else:
        dimension = None

    def __init_subclass__(cls) -> None:
        if issubclass(cls, tuple) and "__repr__" not in vars(cls) and not issubclass(cls.__mro__[1], Domain):
            cls.__repr__ = Domain.described  # type: ignore[assignment, method-assign]  # a named tuple would write out its arrays
        if "dimension" in getattr(cls, "_fields", ()) and cls.dimension is None:
            raise TypeError(
                f"{cls.__name__} must name its fields before Domain among its bases, or its `dimension` is hidden"
            )

    def lmo(self, c: Any) -> np.ndarray:
        """Return a point of the set that minimises ⟨c, s⟩."""
        c = checks.vector(c, "c", self.dimension)
        out = np.empty_like(c)
        lmo(self, c, out)
        return out

    def cut_lmo(self, c: Any, a: Any, b: float) -> Cut:
        """Return a point of the set that minimises ⟨c, s⟩ where ⟨a, s⟩ ≤ b, with the cut's status and multiplier."""
        c = checks.vector(c, "c", self.dimension)
        a = checks.vector(a, "a", c.size)
        b = checks.real(b, "b")
        out = np.empty_like(c)
        status, multiplier = cut_lmo(self, c, a, b, out)
        return Cut(out, CutStatus(status), float(multiplier))

    def project(self, x: Any) -> np.ndarray:
        """Return the point of the set that is nearest to x."""
        x = checks.vector(x, "x", self.dimension)
        self._check_projection()
        out = np.empty_like(x)
        project(self, x, out)
        return out

    def project_cut(self, x: Any, a: Any, b: float) -> Cut:
        """Return the point of the set where ⟨a, s⟩ ≤ b that is nearest to x, with the cut's status and multiplier."""
        x = checks.vector(x, "x", self.dimension)
        a = checks.vector(a, "a", x.size)
        b = checks.real(b, "b")
        self._check_projection()
        out = np.empty_like(x)
        status, multiplier = project_cut(self, x, a, b, out)
        return Cut(out, CutStatus(status), float(multiplier))

    def _check_projection(self) -> None:
        missing = without_projection(self)
        if missing is not None:
            raise NotImplementedError(f"{type(missing).__name__} has no `project`; methods that project cannot use it")

    @property
    def diameter(self) -> float:
        """The largest distance between two points of the set."""
        return float(diameter(self))

    def contains(self, x: Any, tol: float = 1e-9) -> bool:
        """Return whether x lies in the set, up to ``tol`` relative to the size of the set."""
        return bool(contains(self, checks.vector(x, "x", self.dimension), float(tol)))

    def random_point(self, rng: np.random.Generator, dimension: int | None = None) -> np.ndarray:
        """Return a random point of the set: a random mean of some atoms. A set of any dimension has to be told which."""
        d = self.dimension or checks.whole(dimension, "dimension")
        weights = rng.dirichlet(np.ones(RANDOM_ATOMS))
        return sum(weight * self.lmo(rng.standard_normal(d)) for weight in weights)

    def middle(self, dimension: int) -> np.ndarray:
        """Return a point to start from: halfway between two opposite atoms, which is the centre of a symmetric set."""
        ones = np.ones(self.dimension or dimension)
        return 0.5 * (self.lmo(ones) + self.lmo(-ones))

    def centroid(self, dimension: int) -> np.ndarray:
        """Return the point from which ``keep`` of a problem measures what g gains: :meth:`middle`, or the mean of the atoms.

        No variable or atom has a part in it that others of its kind have not.
        """
        return self.middle(dimension)

    def inner_sets(self) -> tuple[Domain, ...]:
        """Return the sets that this one is made of, on which it depends for what it can do."""
        return ()

    def parts(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the named parts of x, as views of it; a set without names has one part, ``x``."""
        return {"x": x}


def projects(domain: Domain) -> bool:
    """Return whether a set has a projection: it is registered for it and for all sets that it is made of.

    Examples
    --------
    >>> from tiebreak import Birkhoff, Columns, L1Ball
    >>> projects(Columns(L1Ball(1.0), (4, 3))), projects(Columns(Birkhoff(2), (4, 3)))
    (True, False)
    """
    return without_projection(domain) is None


def without_projection(domain: Domain) -> Domain | None:
    """Return the first set without a projection among a set and those that it is made of; None if all have one."""
    if not project.supports(domain):
        return domain
    found = map(without_projection, domain.inner_sets())
    return next((part for part in found if part is not None), None)
