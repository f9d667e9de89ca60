"""Objectives whose terms a Python function computes."""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tiebreak.domains import Box, Product
from tiebreak.engine import checks
from tiebreak.engine.printing import named
from tiebreak.engine.randomness import Moment, uniform_indices
from tiebreak.objectives.arithmetic import Objective, Sum
from tiebreak.objectives.base import ACCURACY, accumulate, draw


class OracleError(RuntimeError):
    """A user's function raised, or returned something of the wrong kind.

    Attributes
    ----------
    objective : FiniteSum or Stream or None
        Whose function it was.
    """

    def __init__(self, message: str, objective: Any = None) -> None:
        super().__init__(message)
        self.objective = objective


class NonFiniteError(OracleError):
    """A user's function returned NaN or infinity."""


class EndOfStream(OracleError):
    """A stream has no more samples."""


class Oracle:
    """A function of a point and a batch that computes both points of a pair in one call; a library's losses are such.

    Attributes
    ----------
    shapes : dict
        The names of the parameters that a point is made of, in their order, and their shapes.
    """

    shapes: dict[str, tuple[int, ...]]
    accuracy: float = ACCURACY  # the relative error of what it computes
    rehearses: bool = False  # whether a first call is better made before the clock starts

    def combine(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        """Return F(x), F(y) and w·∇F(x) + v·∇F(y), F the mean over the batch; with v = 0, y is not looked at."""
        raise NotImplementedError

    def unflatten(self, x: np.ndarray) -> Any:
        """Return a point in the form that the parameters had."""
        raise NotImplementedError

    def __call__(self, x: np.ndarray, batch: Any) -> tuple[float, np.ndarray]:
        value, _, gradient = self.combine(batch, x, 1.0, x, 0.0)
        return value, gradient


class Computed(Objective):
    """The common part of objectives that Python code computes: how it is asked, and its answer checked."""

    dimension: int
    value_and_grad: Any

    def __repr__(self) -> str:
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}  # type: ignore[arg-type]
        usual = {f.name: f.default for f in fields(self)}  # type: ignore[arg-type]
        return named(type(self).__name__, {name: v for name, v in said.items() if repr(v) != repr(usual[name])})

    @property
    def accuracy(self) -> float:
        """How accurate the code says that it is; a plain function is taken at its word."""
        return float(getattr(self.value_and_grad, "accuracy", ACCURACY))

    @property
    def _name(self) -> str:
        given = self.value_and_grad
        return getattr(given, "__qualname__", None) or getattr(given, "name", None) or repr(given)

    def ask(self, x: np.ndarray, batch: Any) -> tuple[float, np.ndarray]:
        """Call the function at a read-only point and check its answer."""
        try:
            answer = self.value_and_grad(x, batch)
        except OracleError:
            raise
        except Exception as error:
            raise OracleError(f"`{self._name}` raised {type(error).__name__}: {error}", self) from error
        try:
            value, gradient = answer
            value, gradient = float(value), np.asarray(gradient)
            if gradient.dtype != np.float64:
                if gradient.dtype.kind not in "fiub":
                    raise TypeError
                gradient = gradient.astype(np.float64)
        except (TypeError, ValueError):
            raise OracleError(
                f"`{self._name}` must return (value, gradient), a number and an array, got {checks.shown(answer)}", self
            ) from None
        if gradient.shape != (self.dimension,):
            raise OracleError(
                f"`{self._name}` must return a gradient of shape ({self.dimension},), got {gradient.shape}", self
            )
        self._check_finite(value, gradient)
        return value, gradient

    def ask_both(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        """Let an :class:`Oracle` compute both points and check its answer."""
        try:
            value_x, value_y, gradient = self.value_and_grad.combine(batch, x, w, y, v)
        except OracleError:
            raise
        except Exception as error:
            raise OracleError(f"`{self._name}` raised {type(error).__name__}: {error}", self) from error
        self._check_finite(value_x + value_y, gradient)
        return value_x, value_y, gradient

    def _check_finite(self, value: float, gradient: np.ndarray) -> None:
        if not (math.isfinite(value) and (math.isfinite(quick_total(gradient)) or np.isfinite(gradient).all())):
            what = "the value" if not math.isfinite(value) else "the gradient"
            raise NonFiniteError(f"`{self._name}` returned NaN or infinity in {what}", self)

    def parameters(self, x: Any) -> Any:
        """Return a point, or that of a result, in the form that the parameters had: a pytree or a dict of tensors.

        Of a plain function they are the vector itself. In a problem of more variables it is the part that is this
        objective's.
        """
        point = self._own_part(x)
        return self.value_and_grad.unflatten(point) if isinstance(self.value_and_grad, Oracle) else point

    def load(self, x: Any) -> Any:
        """Copy a point, or that of a result, into the module that the objective was made of, and return the module."""
        if not hasattr(self.value_and_grad, "load"):
            raise TypeError(f"`{self._name}` has no module to load parameters into: objectives made by from_torch have one")
        return self.value_and_grad.load(self._own_part(x))

    def domain(self, sets: Mapping[str, Any] | None = None, bound: float = 1e3) -> Product:
        """Return the product of a set for each parameter, in their order: the sets given by name, and a box for the others.

        Parameters
        ----------
        sets : dict
            Sets by the name of the parameter, such as ``{"head.weight": L1Ball(5.0)}``. A matrix is stored row by row, so
            that ``Columns(set, (n_columns, n_rows))`` puts each of its rows into a set.
        bound : float
            All other entries lie between −bound and bound.

        Returns
        -------
        Product
            With the parameters' names, characters other than letters and digits replaced by ``_``. Neighbours without a set
            of their own are one part.
        """
        if not isinstance(self.value_and_grad, Oracle):
            raise TypeError(f"`{self._name}` has no named parameters: objectives made by from_jax and from_torch have")
        return product_of(self.value_and_grad.shapes, sets or {}, checks.real(bound, "bound", above=0.0))

    def _own_part(self, x: Any) -> np.ndarray:
        if hasattr(x, "problem"):
            found = [place_of(self, level) for level in x.problem[:2]]
            start = next((place for place in found if place is not None), 0)
            x = x.x[start : start + self.dimension]
        return checks.vector(x, "x", self.dimension)


def zeros_of(dimension: int) -> Callable[[Any, Any], tuple[float, np.ndarray]]:
    """Return a function that is zero everywhere, to stand in for a user's."""
    return lambda x, batch: (0.0, np.zeros(dimension))


def quick_total(gradient: np.ndarray) -> float:
    """Return a number that is finite only if all entries are: the fastest look at all, though it may overflow."""
    # A scalar product of a long vector starts threads, which wait for each other where the machine is busy.
    return float(gradient.dot(gradient) if gradient.size < 8192 else gradient.sum())


def imported(package: str, user: str) -> Any:
    """Return a package that not everybody has, or say how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f'{user} needs {package}: pip install "tiebreak[{package}]" ({error})') from None


def floating(dtype: Any) -> np.dtype:
    """Return a type of floating-point numbers; warn if it is a short one."""
    try:
        kind = np.dtype(str(dtype).removeprefix("torch.") if not isinstance(dtype, type) else dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float64, np.float32):
        raise ValueError(f"`dtype` must be float64 or float32, got {checks.shown(dtype)}")
    if kind == np.float32:
        warnings.warn(
            "float32 keeps 7 digits: gaps and their bounds are known to about 1e-6 of the objective's size, and no better;"
            " float64, the default, keeps 16",
            UserWarning,
            stacklevel=3,
        )
    return kind


def accuracy_of(dtype: np.dtype) -> float:
    """Return the relative error to expect of what is computed in a type of floating-point numbers."""
    return 1e-5 if dtype == np.float32 else ACCURACY


def pieces_of(indices: np.ndarray, rows: int) -> Iterator[tuple[np.ndarray, float]]:
    """Yield a batch in pieces of at most some rows, each with its share of the whole."""
    for start in range(0, indices.size, rows):
        piece = indices[start : start + rows]
        yield piece, piece.size / indices.size


def product_of(shapes: Mapping[str, tuple[int, ...]], sets: Mapping[str, Any], bound: float) -> Product:
    """Return the product of sets for named arrays, one after the other in one vector."""
    unknown = [name for name in sets if name not in shapes]
    if unknown:
        raise ValueError(f"`sets` must name parameters, and {unknown[0]!r} is none: they are {', '.join(shapes)}")
    parts: dict[str, tuple[Any, int]] = {}
    free = ""  # the part of neighbours without a set
    for name, shape in shapes.items():
        size = math.prod(shape)
        if name in sets:
            part, free = sets[name], ""
        else:
            if free:  # a part that grows
                size += parts.pop(identifier(free))[1]
            name = free = free or name
            part = Box(np.full(size, -bound), np.full(size, bound))
        if identifier(name) in parts:
            raise ValueError(f"`sets` must have names that differ in letters and digits, got {name!r} twice")
        parts[identifier(name)] = (part, size)
    return Product(**parts)


def identifier(name: str) -> str:
    """Return the name of a parameter as that of a part."""
    text = "".join(letter if letter.isalnum() else "_" for letter in name)
    return text if text.isidentifier() else f"_{text}"


def check_knowledge(objective: Any) -> None:
    """Raise a ValueError if what a user says of a function is not of the right kind."""
    if objective.convex is not None and not isinstance(objective.convex, (bool, np.bool_)):
        raise ValueError(
            f"`convex` must be True, False, or None where it is not known, got {checks.shown(objective.convex)}"
        )
    lipschitz, floor = objective.lipschitz, objective.floor
    if not (isinstance(lipschitz, float) and math.isnan(lipschitz)):
        found = checks.as_float(lipschitz)
        if not 0.0 <= found < math.inf:
            given = checks.shown(lipschitz)
            raise ValueError(f"`lipschitz` must be a finite number ≥ 0, or NaN where it is not known, got {given}")
    checks.real(objective.strong_convexity, "strong_convexity", least=0.0)
    if not checks.as_float(floor) < math.inf:
        given = checks.shown(floor)
        raise ValueError(f"`floor` must be a finite number, or -math.inf where none is known, got {given}")


def place_of(part: Any, objective: Any) -> int | None:
    """Return where in the variables of an objective those of a part of it begin; None if it is not part of it."""
    if objective is part:
        return 0
    if isinstance(objective, Sum):
        return next((place for term in objective.terms if (place := place_of(part, term)) is not None), None)
    inner = getattr(objective, "objective", None)
    place = None if inner is None else place_of(part, inner)
    return None if place is None else place + getattr(objective, "start", 0)


@dataclass(frozen=True, repr=False)
class FiniteSum(Computed):
    """The mean of n terms that a Python function computes.

    Parameters
    ----------
    n : int
        Number of terms.
    dimension : int
        Number of variables.
    value_and_grad : callable
        ``value_and_grad(x, indices) -> (float, array of shape (dimension,))``: the mean of the terms at ``indices`` (an
        integer array, in which an index may occur more than once) and its gradient, at x. Both arrays are read-only. Bounds
        take the value and each entry of the gradient to be right up to 1e-13 of it.
    convex : bool, optional
        Whether the mean is convex, if that is known: bounds on gaps are proven for convex objectives only.
    lipschitz : float, optional
        A smoothness constant, if one is known. Without one, accelerated methods begin with an estimate.
    strong_convexity : float, optional
        A constant μ such that the mean less ½ μ ‖x‖² is convex, if one is known.
    floor : float, optional
        A number that the mean is never below, if one is known; 0 for most losses.

    Examples
    --------
    >>> import numpy as np
    >>> targets = np.array([1.0, 2.0, 3.0])
    >>> def squares(x, indices):
    ...     residual = x[0] - targets[indices]
    ...     return 0.5 * np.mean(residual**2), np.array([residual.mean()])
    >>> FiniteSum(3, 1, squares).value([2.0])
    0.3333333333333333
    """

    n: int
    dimension: int
    value_and_grad: Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]
    convex: bool | None = None
    lipschitz: float = math.nan
    strong_convexity: float = 0.0
    floor: float = -math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole(self.n, "n"))
        object.__setattr__(self, "dimension", checks.whole(self.dimension, "dimension"))
        if not callable(self.value_and_grad):
            raise ValueError(f"`value_and_grad` must be a function of (x, indices), got {self.value_and_grad!r}")
        check_knowledge(self)

    @property
    def n_samples(self) -> int:
        return self.n

    def rehearsal(self) -> FiniteSum:
        """Return itself if its first call is better made ahead, else a sum of as many terms that are all zero."""
        if getattr(self.value_and_grad, "rehearses", False):
            return self
        return replace(self, value_and_grad=zeros_of(self.dimension))


@draw.register(FiniteSum)
def draw_finite_sum(objective: FiniteSum, moment: Moment, batch: np.ndarray) -> np.ndarray:
    return uniform_indices(moment, objective.n, batch)


@accumulate.register(Computed)
def accumulate_computed(
    objective: Computed, batch: Any, x: Any, w: float, y: Any, v: float, out: Any
) -> tuple[float, float]:
    batch = _read_only(batch) if type(batch) is np.ndarray else batch
    if isinstance(objective.value_and_grad, Oracle):
        value_x, value_y, gradient = objective.ask_both(batch, x, w, y, v)
        out += gradient
        return value_x, value_y
    value_x, gradient = objective.ask(_read_only(x), batch)
    out += w * gradient
    if v == 0.0:
        return value_x, 0.0
    value_y, gradient = objective.ask(_read_only(y), batch)
    out += v * gradient
    return value_x, value_y


def _read_only(x: np.ndarray) -> np.ndarray:
    view = x.view()
    view.flags.writeable = False
    return view
