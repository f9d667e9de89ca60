"""Losses of PyTorch modules: ``loss(module(inputs), targets) -> scalar`` as an objective of the module's parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tiebreak.engine import checks
from tiebreak.objectives.adapters.callables import FiniteSum, Oracle, accuracy_of, floating, imported, pieces_of
from tiebreak.objectives.adapters.sources import Rows, length_of
from tiebreak.objectives.adapters.streams import Stream, sample_bounds


def from_torch(
    module: Any,
    loss: Callable[..., Any],
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
    """Return the mean of a loss of a PyTorch module, as an objective of its parameters in one vector.

    Only ``load`` changes the module itself. Parameters that do not require a gradient stay as they are.

    Parameters
    ----------
    module : torch.nn.Module
        On the processor or a GPU: the data are moved to where its parameters are.
    loss : callable
        ``loss(module(inputs), targets) -> scalar``, the mean over a batch, such as ``torch.nn.functional.mse_loss``; further
        arrays of a batch are passed after the targets, and ``loss(module(inputs))`` is called if there are no targets.
    data : tensors, Dataset, DataLoader or callable
        A tensor or a tuple (inputs, targets, …) with one row per sample, or a data set, which is read into memory. Memory
        maps of NumPy stay on disk, and rows are taken from them, a batch at a time. A ``DataLoader`` is a stream, repeated
        without end, whose expectation is the mean over its data set; it should shuffle. So is ``draw(rng, size) -> batch``,
        whose samples are fresh.
    convex, lipschitz, strong_convexity, floor : optional
        What is known of the mean, as in :class:`FiniteSum`. Methods that choose their own steps ask whether it is convex.
    value_range, gradient_bound : optional
        For a stream: what is known of every sample, as in :class:`Stream`, for bounds that are proven.
    dtype : float64 or float32
        The precision in which it is computed, whatever the types of the parameters and the data are.
    rows : int
        The most rows per call: larger batches, such as all data, are taken in pieces.

    Returns
    -------
    FiniteSum or Stream
        With ``load(result)``, which copies a result into the module, ``parameters(result)``, a dict of tensors, and
        ``domain({name: set})``.

    Raises
    ------
    ImportError
        Without PyTorch.

    Examples
    --------
    >>> import tiebreak
    >>> import torch  # doctest: +SKIP
    >>> model = torch.nn.Linear(2, 1)  # doctest: +SKIP
    >>> data = torch.eye(2), torch.ones(2, 1)  # doctest: +SKIP
    >>> f = tiebreak.from_torch(model, torch.nn.functional.mse_loss, data, convex=True)  # doctest: +SKIP
    >>> f.value_and_gradient([0.0, 1.0, 0.0])  # doctest: +SKIP
    (0.5, array([-1.,  0., -1.]))
    """
    torch = imported("torch", "from_torch")
    facts: dict[str, Any] = {
        "convex": convex,
        "lipschitz": lipschitz,
        "strong_convexity": strong_convexity,
        "floor": floor,
    }
    source = data
    if isinstance(data, torch.utils.data.DataLoader):
        source = Rows(data, repeat=True)
    elif isinstance(data, torch.utils.data.TensorDataset):
        source = data.tensors
    elif hasattr(data, "__getitem__") and not isinstance(data, (tuple, list, dict, np.ndarray, torch.Tensor)):
        source = torch.utils.data.default_collate([data[i] for i in range(len(data))])
    stream = callable(source) and not isinstance(source, torch.Tensor)
    oracle = TorchLoss(module, loss, None if stream else source, floating(dtype), checks.whole(rows, "rows"))
    bounds = sample_bounds(value_range, gradient_bound, endless=stream)
    if stream:
        return Stream(source, oracle, oracle.dimension, **facts, **bounds)
    return FiniteSum(oracle.n, oracle.dimension, oracle, **facts)


class TorchLoss(Oracle):
    """A loss of a module as a function of one vector, and of the indices of rows or of a batch of a stream."""

    def __init__(self, module: Any, loss: Any, data: Any, dtype: Any, rows: int) -> None:
        self.torch = imported("torch", "from_torch")
        if not isinstance(module, self.torch.nn.Module):
            raise ValueError(f"`module` must be a torch.nn.Module, got {checks.shown(module)}")
        if not callable(loss):
            raise ValueError(f"`loss` must be a function of (outputs, targets), got {checks.shown(loss)}")
        self.module, self.loss, self.rows = module, loss, rows
        self.accuracy = accuracy_of(dtype)
        self.dtype = self.torch.float64 if dtype == np.float64 else self.torch.float32
        self.name = getattr(loss, "__qualname__", type(loss).__name__)
        free = {name: tensor for name, tensor in module.named_parameters() if tensor.requires_grad}
        if not free:
            raise ValueError("`module` must have parameters that require a gradient, got none")
        self._refuse_moods()
        self.device = next(iter(free.values())).device
        self.shapes = {name: tuple(tensor.shape) for name, tensor in free.items()}
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.dimension = sum(self.sizes)
        fixed = [*module.named_parameters(), *module.named_buffers()]
        self.fixed = {name: self._tensor(tensor.detach()) for name, tensor in fixed if name not in free}
        self.mapped = any(isinstance(part, np.memmap) for part in (data if isinstance(data, (tuple, list)) else [data]))
        self.data = () if data is None else self._tensors(data)
        if self.data:
            self.n = length_of(self.data)
            self.room = () if self.mapped else tuple(tensor[:0].cpu() for tensor in self.data)

    def _refuse_moods(self) -> None:
        """Raise if the module's outputs depend on more than its parameters and inputs."""
        kinds = (self.torch.nn.modules.dropout._DropoutNd, self.torch.nn.modules.batchnorm._BatchNorm)
        for name, part in self.module.named_modules():
            if isinstance(part, kinds) and part.training:
                raise ValueError(
                    f"`module` must be a function of its parameters and inputs alone, and {type(part).__name__} {name!r} is "
                    "in training mode: call module.eval() first"
                )

    def _tensor(self, value: Any) -> Any:
        tensor = self.torch.as_tensor(value).to(self.device)
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def _tensors(self, batch: Any) -> tuple[Any, ...]:
        """Return the arrays of a batch in their order, where and as the parameters are."""
        if isinstance(batch, dict):
            raise ValueError(
                "`data` must be (inputs, targets) or a tensor, got a dict: which part is the input is not known"
            )
        if self.mapped:  # they may not fit into memory: rows are taken from them, a batch at a time
            return tuple(map(np.asarray, batch if isinstance(batch, (tuple, list)) else (batch,)))
        return tuple(map(self._tensor, batch)) if isinstance(batch, (tuple, list)) else (self._tensor(batch),)

    def combine(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        if not self.data:
            return self._call(self._tensors(batch), x, w, y, v)
        value_x, value_y, total = 0.0, 0.0, None
        for piece, share in pieces_of(batch, self.rows):
            at_x, at_y, gradient = self._call(self._taken(piece), x, share * w, y, share * v)
            value_x, value_y = value_x + share * at_x, value_y + share * at_y
            total = gradient if total is None else total + gradient
        assert total is not None
        return value_x, value_y, total

    def _taken(self, indices: np.ndarray) -> tuple[Any, ...]:
        """Return rows of the data, on the processor in a place that is used again: new memory costs more than the rows."""
        if self.mapped:
            return tuple(self._tensor(np.array(array[indices])) for array in self.data)
        start, size = int(indices[0]), indices.size
        if start + size - 1 == indices[-1] and (np.diff(indices) == 1).all():
            return tuple(tensor[start : start + size] for tensor in self.data)
        if self.device.type != "cpu":
            return tuple(tensor[self.torch.tensor(indices, device=self.device)] for tensor in self.data)
        if len(self.room[0]) != size:
            self.room = tuple(self.torch.empty((size, *tensor.shape[1:]), dtype=tensor.dtype) for tensor in self.data)
        for tensor, room in zip(self.data, self.room, strict=True):
            np.take(tensor.numpy(), indices, axis=0, out=room.numpy(), mode="clip")  # any other mode makes a copy
        return self.room

    def _call(self, batch: Any, x: np.ndarray, w: float, y: np.ndarray, v: float) -> tuple[float, float, np.ndarray]:
        points = [self._leaves(x)] if v == 0.0 else [self._leaves(x), self._leaves(y)]
        values = [self._value(point, batch) for point in points]
        combined = w * values[0] if v == 0.0 else w * values[0] + v * values[1]
        leaves = [leaf for point in points for leaf in point.values()]
        gradients = self.torch.autograd.grad(combined, leaves, materialize_grads=True)
        total, start = np.empty(self.dimension), 0
        for k, size in enumerate(self.sizes):
            part = total[start : start + size]
            part[:] = gradients[k].cpu().numpy().ravel()
            if v != 0.0:
                part += gradients[k + len(self.sizes)].cpu().numpy().ravel()
            start += size
        return values[0].item(), 0.0 if v == 0.0 else values[1].item(), total

    def _leaves(self, x: np.ndarray) -> dict[str, Any]:
        """Return the parameters at a point as tensors of their own, so that no gradient has to be put together."""
        x = x if x.flags.writeable else x.copy()  # PyTorch warns of arrays that are read-only
        flat = self.torch.from_numpy(x).to(self.device, self.dtype)
        return {name: part.requires_grad_() for name, part in self._split(flat).items()}

    def _value(self, point: dict[str, Any], batch: Any) -> Any:
        inputs, *others = batch
        outputs = self.torch.func.functional_call(self.module, {**point, **self.fixed}, (inputs,))
        value = self.loss(outputs, *others)
        if not isinstance(value, self.torch.Tensor) or value.ndim != 0:
            raise TypeError(f"it must return a scalar tensor, got {checks.shown(value)}")
        return value

    def _split(self, point: Any) -> dict[str, Any]:
        parts = point.split(self.sizes)
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def unflatten(self, x: np.ndarray) -> dict[str, Any]:
        """Return a point as tensors by the names and of the types of the parameters."""
        parts = self._split(self.torch.tensor(x, device=self.device))
        return {name: part.to(self.module.get_parameter(name).dtype) for name, part in parts.items()}

    def load(self, x: np.ndarray) -> Any:
        """Copy a point into the module and return it."""
        with self.torch.no_grad():
            for name, value in self.unflatten(x).items():
                self.module.get_parameter(name).copy_(value)
        return self.module
