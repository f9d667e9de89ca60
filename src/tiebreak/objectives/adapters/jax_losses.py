"""Losses written in JAX: ``loss(params, batch) -> scalar`` with parameters in any pytree."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tiebreak.engine import checks
from tiebreak.objectives.adapters.callables import FiniteSum, Oracle, accuracy_of, floating, imported, pieces_of
from tiebreak.objectives.adapters.streams import Stream, sample_bounds


def from_jax(
    loss: Callable[[Any, Any], Any],
    params: Any,
    data: Any,
    *,
    convex: bool | None = None,
    lipschitz: float = math.nan,
    strong_convexity: float = 0.0,
    floor: float = -math.inf,
    value_range: tuple[float, float] | None = None,
    gradient_bound: float | None = None,
    dtype: Any = np.float64,
    rows: int = 8192,
) -> FiniteSum | Stream:
    """Return the mean of a loss written in JAX, as an objective of the parameters in one vector.

    JAX compiles value and gradient once per batch size. One call computes both points of a pair.

    Parameters
    ----------
    loss : callable
        ``loss(params, batch) -> scalar``: the mean over the rows of a batch.
    params : pytree
        Parameters of the form that the loss takes: it gives their shapes, not a first point.
    data : pytree of arrays, or callable
        Arrays with one row per sample; a batch is some rows of each. Memory maps stay on disk, and rows are taken from
        them, a batch at a time. Or ``draw(rng, size) -> batch``, for a stream.
    convex, lipschitz, strong_convexity, floor : optional
        What is known of the mean, as in :class:`FiniteSum`. Methods that choose their own steps ask whether it is convex.
    value_range, gradient_bound : optional
        For a stream: what is known of every sample, as in :class:`Stream`, for bounds that are proven.
    dtype : float64 or float32
        The precision of the computation, whatever the types of ``params`` and ``data``. JAX's own setting is not changed.
    rows : int
        The most rows per call: larger batches, such as all data, are taken in pieces.

    Returns
    -------
    FiniteSum or Stream
        With ``parameters(result)``, which gives a result back as a pytree, and ``domain({name: set})``.

    Raises
    ------
    ImportError
        Without JAX.

    Examples
    --------
    >>> import numpy as np, tiebreak
    >>> def squares(params, batch):
    ...     rows, targets = batch
    ...     return 0.5 * ((rows @ params["slope"] + params["offset"] - targets) ** 2).mean()
    >>> zeros = {"offset": 0.0, "slope": np.zeros(2)}
    >>> f = tiebreak.from_jax(squares, zeros, (np.eye(2), np.ones(2)), convex=True)  # doctest: +SKIP
    >>> f.value_and_gradient([0.0, 0.0, 1.0])  # doctest: +SKIP
    (0.25, array([-0.5, -0.5,  0. ]))
    >>> f.parameters([0.0, 0.0, 1.0])["slope"]  # doctest: +SKIP
    Array([0., 1.], dtype=float64)
    """
    oracle = JaxLoss(loss, params, None if callable(data) else data, floating(dtype), checks.whole(rows, "rows"))
    facts: dict[str, Any] = {
        "convex": convex,
        "lipschitz": lipschitz,
        "strong_convexity": strong_convexity,
        "floor": floor,
    }
    bounds = sample_bounds(value_range, gradient_bound, endless=callable(data))
    if callable(data):
        return Stream(data, oracle, oracle.dimension, **facts, **bounds)
    return FiniteSum(oracle.n, oracle.dimension, oracle, **facts)


class JaxLoss(Oracle):
    """A loss in JAX as a function of one vector, and of the indices of rows or of a batch of a stream."""

    rehearses = True  # what a first call compiles need not be part of the run

    def __init__(self, loss: Any, params: Any, data: Any, dtype: Any, rows: int) -> None:
        if not callable(loss):
            raise ValueError(f"`loss` must be a function of (params, batch), got {checks.shown(loss)}")
        self.jax = imported("jax", "from_jax")
        self.loss, self.dtype, self.rows = loss, dtype, rows
        self.accuracy = accuracy_of(dtype)
        self.name = getattr(loss, "__qualname__", type(loss).__name__)
        with self._precision():
            self._flatten(params)
            self.mapped = any(isinstance(leaf, np.memmap) for leaf in self.jax.tree_util.tree_leaves(data))
            self.data = None if data is None else self._arrays(data)
            one, both = self._functions()
            self._one, self._both = self.jax.jit(one), self.jax.jit(both)
            if data is not None:
                self._check(one)

    def _precision(self) -> AbstractContextManager[Any]:
        """Numbers of 64 bits, here alone."""
        if hasattr(self.jax, "enable_x64"):
            return self.jax.enable_x64(True)
        return imported("jax.experimental", "from_jax").enable_x64(True)  # before version 0.8

    def _flatten(self, params: Any) -> None:
        from jax.flatten_util import ravel_pytree

        leaves, self.tree = self.jax.tree_util.tree_flatten_with_path(params)
        if not leaves:
            raise ValueError("`params` must hold at least one array, got none")
        self.shapes, self.types = {}, []
        for path, leaf in leaves:
            array = np.asarray(leaf)
            name = ".".join(str(_key(step)) for step in path) or "x"
            if array.dtype.kind not in "fV" and not isinstance(leaf, (int, float)):  # V: JAX's short floating types
                raise ValueError(f"`params` must hold floating-point numbers, got {array.dtype} in {name}")
            self.shapes[name] = array.shape
            self.types.append(array.dtype)
        cast = self.jax.tree_util.tree_map(lambda leaf: self.jax.numpy.asarray(leaf, dtype=self.dtype), params)
        flat, self.unravel = ravel_pytree(cast)
        self.dimension = int(flat.size)

    def _arrays(self, data: Any) -> Any:
        leaves = self.jax.tree_util.tree_leaves(data)
        lengths = {np.shape(leaf)[0] if np.ndim(leaf) > 0 else 0 for leaf in leaves}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"`data` must hold arrays of one row per sample, as many each, got lengths {sorted(lengths)}")
        self.n = int(lengths.pop())
        if self.mapped:  # they may not fit into memory: rows are taken from them, a batch at a time
            return self.jax.tree_util.tree_map(np.asarray, data)
        return self.jax.tree_util.tree_map(self._array, data)

    def _array(self, leaf: Any) -> Any:
        array = self.jax.numpy.asarray(leaf)
        return array.astype(self.dtype) if self.jax.numpy.issubdtype(array.dtype, self.jax.numpy.floating) else array

    def _functions(self) -> tuple[Any, Any]:
        jax, finite = self.jax, self.data is not None and not self.mapped

        def mean(x: Any, data: Any, batch: Any) -> Any:
            taken = jax.tree_util.tree_map(lambda array: array[batch], data) if finite else batch
            return self.loss(self.unravel(x), taken)

        def one(x: Any, w: Any, data: Any, batch: Any) -> Any:
            value, gradient = jax.value_and_grad(mean)(x, data, batch)
            return value, w * gradient

        def both(x: Any, w: Any, y: Any, v: Any, data: Any, batch: Any) -> Any:
            taken = jax.tree_util.tree_map(lambda array: array[batch], data) if finite else batch

            def combined(pair: Any) -> Any:
                at_x, at_y = (self.loss(self.unravel(point), taken) for point in pair)
                return w * at_x + v * at_y, (at_x, at_y)

            (_, values), gradients = jax.value_and_grad(combined, has_aux=True)((x, y))
            return *values, gradients[0] + gradients[1]

        return one, both

    def _check(self, one: Any) -> None:
        """Raise at once if the loss does not take the parameters and the data, or is no scalar."""
        x = self.jax.ShapeDtypeStruct((self.dimension,), self.dtype)
        try:
            first = np.zeros(min(self.n, 2), dtype=np.int64)
            data, batch = (None, self._taken(first)) if self.mapped else (self.data, first)
            self.jax.eval_shape(one, x, 1.0, data, batch)
        except Exception as error:
            raise ValueError(f"`loss` must return a scalar for (params, batch); `{self.name}` failed: {error}") from error

    def combine(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        with self._precision():
            if self.data is None:
                return self._call(self.jax.tree_util.tree_map(self._array, batch), x, w, y, v)
            taken = self._taken if self.mapped else np.asarray
            if batch.size <= self.rows:
                return self._call(taken(batch), x, w, y, v)
            value_x, value_y, total = 0.0, 0.0, np.zeros(self.dimension)
            for piece, share in pieces_of(batch, self.rows):
                at_x, at_y, gradient = self._call(taken(piece), x, share * w, y, share * v)
                value_x, value_y = value_x + share * at_x, value_y + share * at_y
                total += gradient
            return value_x, value_y, total

    def _taken(self, indices: np.ndarray) -> Any:
        """Return rows of data that are not in memory."""
        return self.jax.tree_util.tree_map(lambda array: self._array(array[indices]), self.data)

    def _call(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        x, data = x.astype(self.dtype, copy=False), None if self.mapped else self.data
        if v == 0.0:
            value_x, gradient = self._one(x, w, data, batch)
            value_y = 0.0
        else:
            value_x, value_y, gradient = self._both(x, w, y.astype(self.dtype, copy=False), v, data, batch)
        return float(value_x), float(value_y), np.asarray(gradient, dtype=np.float64)

    def unflatten(self, x: np.ndarray) -> Any:
        """Return a point as a pytree of the form and the types of the parameters."""
        leaves, start = [], 0
        with self._precision():
            for shape, kind in zip(self.shapes.values(), self.types, strict=True):
                size = math.prod(shape)
                kind = kind if kind.kind in "fV" else np.dtype(np.float64)
                leaves.append(self.jax.numpy.asarray(x[start : start + size].reshape(shape), dtype=kind))
                start += size
        return self.jax.tree_util.tree_unflatten(self.tree, leaves)


def _key(step: Any) -> Any:
    """Return one step of the path to a leaf of a pytree, as a name."""
    return next(getattr(step, name) for name in ("key", "idx", "name") if hasattr(step, name))
