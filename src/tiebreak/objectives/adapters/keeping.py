"""Samples of a stream that are kept in memory: the mean of its loss over them is a finite sum, which can be solved."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from tiebreak.objectives.adapters.callables import FiniteSum, Oracle, OracleError, pieces_of
from tiebreak.objectives.adapters.columns import bytes_in, columns_of, formed, of_torch, room_for, rows_at, why_not
from tiebreak.objectives.adapters.row_losses import RowLoss
from tiebreak.objectives.adapters.streams import KEEP_HELP, Stream
from tiebreak.objectives.arithmetic import Scaled, Sum
from tiebreak.objectives.base import accumulate
from tiebreak.objectives.linear import linear_model
from tiebreak.objectives.losses import curvature
from tiebreak.objectives.parts import OfSome

ROWS_PER_CALL = 8192  # rows for which a loss is called at once: larger batches are taken in pieces


def stream_in(objective: Any) -> Stream:
    """Return the stream that an objective is a multiple, a sum or a part of."""
    if isinstance(objective, Sum):
        return next(stream_in(term) for term in objective.terms if term.endless)
    return stream_in(objective.objective) if isinstance(objective, (Scaled, OfSome)) else objective


def with_mean(objective: Any, mean: Any) -> Any:
    """Return an objective with a mean over samples in place of its stream."""
    if isinstance(objective, Sum):
        return Sum(*(with_mean(term, mean) if term.endless else term for term in objective.terms))
    if isinstance(objective, Scaled):
        return Scaled(objective.factor, with_mean(objective.objective, mean))
    if isinstance(objective, OfSome):
        return objective._replace(objective=with_mean(objective.objective, mean))
    return mean


class Keeping:
    """Samples of a stream, one batch after the other.

    Parameters
    ----------
    stream : Stream
    samples : int
        How many there will be at most.
    room : float
        Bytes that they may take; only the first batch is kept whatever its size.

    Attributes
    ----------
    rows : int
        Samples so far.
    capacity : float
        How many samples there is room for; known from the first batch on.
    bytes : float
        What they take.
    lipschitz : float
        A smoothness constant of their mean, about: that of the stream.
    """

    def __init__(self, stream: Stream, samples: int, room: float) -> None:
        self._stream, self._samples, self._room = stream, samples, room
        self.rows, self.capacity, self.bytes = 0, math.inf, 0.0
        self.lipschitz = float(stream.lipschitz)
        self._form: Any = None  # the first batch, for the form that batches have
        self._columns: list[Any] = []  # arrays with room for all samples, and lists

    def take(self, batch: Any, count: int) -> None:
        """Keep a batch of some samples, or raise if that cannot be."""
        if isinstance(self._stream.value_and_grad, RowLoss):
            batch = self._stream.value_and_grad.rows(batch)
        columns = columns_of(batch)
        if reason := why_not(columns, count):
            raise OracleError(f"samples of `{self._stream._source}` cannot be kept: {reason}; {KEEP_HELP}", self._stream)
        self.bytes += math.fsum(map(bytes_in, columns))
        if self.rows == 0:
            self._form, self.capacity = batch, max(self._room // (self.bytes / count), count)
            self._columns = [room_for(column, int(min(self._samples, self.capacity))) for column in columns]
        if len(columns) != len(self._columns):
            raise OracleError(f"batches of `{self._stream._source}` must have one form, got {columns}", self._stream)
        for k, column in enumerate(columns):
            self._columns[k] = extended(self._columns[k], self.rows, column, self._stream)
        self.rows += count

    def mean(self) -> Any:
        """Return the mean of the loss over all samples so far: a linear model of rows, any other one as a finite sum."""
        oracle, columns = self._stream.value_and_grad, [column[: self.rows] for column in self._columns]
        if isinstance(oracle, RowLoss) and curvature.supports(oracle.scalar):
            return linear_model(oracle.scalar, *columns)
        loss = OfKept(self._stream.unlimited(), columns, self._form)
        facts: dict[str, Any] = {"convex": self._stream.convex, "lipschitz": self.lipschitz, "floor": self._stream.floor}
        return FiniteSum(self.rows, self._stream.dimension, loss, **facts)

    @property
    def digest(self) -> str:
        """A hash of all samples; of objects other than arrays, of their texts."""
        hasher = hashlib.blake2b(digest_size=12)
        for column in self._columns:
            part = column[: self.rows]
            part = part.cpu() if of_torch(part) else part
            hasher.update(repr(part).encode() if isinstance(part, list) else np.ascontiguousarray(part).data.cast("B"))
        return hasher.hexdigest()


class OfKept(Oracle):
    """The loss of a stream over samples that were kept, by their indices.

    Parameters
    ----------
    stream : Stream
    columns : list
        The arrays, or lists, of the samples.
    form : batch
        What a batch looks like.
    """

    def __init__(self, stream: Stream, columns: list[Any], form: Any) -> None:
        self.stream, self.columns, self.form = stream, columns, form
        self.name, self.accuracy = stream._name, stream.accuracy

    def combine(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        value_x, value_y, gradient = 0.0, 0.0, np.zeros(x.size)
        for piece, share in pieces_of(batch, ROWS_PER_CALL):
            taken = formed(self.form, [rows_at(column, piece) for column in self.columns])
            at_x, at_y = accumulate(self.stream, taken, x, share * w, y, share * v, gradient)
            value_x, value_y = value_x + share * at_x, value_y + share * at_y
        return value_x, value_y, gradient

    def unflatten(self, x: np.ndarray) -> Any:
        return self.stream.parameters(x)


def extended(room: Any, start: int, column: Any, stream: Stream) -> Any:
    """Put a column into its room, from a row on, and return that; of another type where the column's does not fit."""
    if isinstance(room, list):
        return [*room, *column]
    if room.shape[1:] != column.shape[1:]:
        raise OracleError(
            f"samples of `{stream._source}` cannot be kept: arrays of shapes {tuple(room.shape[1:])} and"
            f" {tuple(column.shape[1:])} came per sample; {KEEP_HELP}",
            stream,
        )
    if isinstance(room, np.ndarray) and (kind := np.result_type(room, column.dtype)) != room.dtype:
        room = room.astype(kind)
    room[start : start + len(column)] = column
    return room
