"""One source, two ways to run: kernels and generic functions, interpreted or compiled by Numba.

Everything numerical in this package is written once, in the part of Python that Numba compiles:

- a *kernel* is a plain function, such as a dot product or the loop of a method;
- a *generic function* chooses its implementation by the type of its first argument (a *value*: a named tuple of arrays,
  numbers and other values), both when it is called from Python and when a kernel that calls it is compiled.

Called from Python, both run compiled, unless an argument holds something that Numba cannot see, such as a Python
function: then they run as plain Python, and whatever they call that Numba can see still runs compiled. So the loop of a
method is the same source for a problem of library values and for one with a user's functions in it. Inside
:func:`interpreted`, or under ``NUMBA_DISABLE_JIT=1``, everything runs as plain Python.

Compiled kernels are stored on disk, in a folder named after the content of all sources that they are made of, so that an
edited or upgraded package never runs an old kernel. Whatever involves a type registered outside the package is not stored.
"""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher

from tiebreak.engine.cache import DiskCache
from tiebreak.engine.compiling import INNER, OUTER, stand_for
from tiebreak.engine.origins import foreign, is_inside

# What the compiler may do with numbers. NaN and infinity always keep their meaning: the stopping rules depend on it.
EXACT = {"contract"}
REORDERED = {"contract", "reassoc", "nsz", "arcp"}

_interpreted = bool(getattr(numba.config, "DISABLE_JIT", False))


@contextmanager
def interpreted() -> Iterator[None]:
    """Run every kernel and generic function as plain Python inside this block (slow; to debug and to test)."""
    global _interpreted
    before, _interpreted = _interpreted, True
    try:
        yield
    finally:
        _interpreted = before


class _Stopwatch(event.Listener):
    """Adds up the time in which Numba compiles; loading from disk is no part of it.

    Meanwhile cycles of garbage are left alone: the compiler makes many objects, nearly all of which it keeps.
    """

    def __init__(self) -> None:
        self.total, self._depth, self._began, self._collects = 0.0, 0, 0.0, False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began, self._collects = time.perf_counter(), gc.isenabled()
            gc.disable()
        self._depth += 1  # what a function calls is compiled within it

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.total += time.perf_counter() - self._began
            if self._collects:
                gc.enable()


_stopwatch = _Stopwatch()
event.register("numba:compile", _stopwatch)


def compile_seconds() -> float:
    """Return how long this process has compiled so far."""
    return _stopwatch.total


_VISIBLE = frozenset({np.ndarray, float, int, np.float64, np.int64, np.random.Generator})


def compilable(value: object) -> bool:
    """Whether Numba can see a value: numbers, arrays, strings and named tuples of such."""
    if isinstance(value, tuple):
        for part in value:  # noqa: SIM110 (asked in every iteration of an interpreted loop: most parts are told by their type)
            if type(part) not in _VISIBLE and not compilable(part):
                return False
        return True
    return isinstance(value, (np.ndarray, np.number, int, float, str, np.random.Generator, type(None)))


class Value:
    """The common part of objectives and sets: named tuples are copied and pickled by their fields, not their arguments."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if isinstance(self, tuple):
            return _rebuild, (type(self), tuple(self))
        return super().__reduce_ex__(protocol)


def _rebuild(cls: Any, fields: tuple[Any, ...]) -> Any:
    return tuple.__new__(cls, fields)


class Kernel:
    """A function of one source, compiled when called from Python or from another kernel.

    Attributes
    ----------
    python : callable
        The source, run as plain Python; the generic functions and kernels that it calls may still be compiled.
    """

    def __init__(self, python: Callable[..., Any], inline: bool = True, reorder: bool = False, light: bool = False) -> None:
        self.python, self._light = python, light
        self._options = _jit_options(reorder)
        functools.update_wrapper(self, python)
        options: Any = {**self._options, **INNER, "forceinline": inline}
        stand_for(self, lambda *args: python, options)

    @functools.cached_property
    def compiled(self) -> Callable[..., Any]:
        """The compiled function: made from the source on the first call with new types, or loaded from disk."""
        dispatcher: Any = numba.njit(self.python, nogil=True, **self._options, **OUTER)
        if isinstance(dispatcher, Dispatcher) and is_inside(self.python):
            setattr(dispatcher, "_cache", DiskCache(self.python))  # noqa: B010
        return dispatcher

    def __call__(self, *args: Any) -> Any:
        if self._light or _interpreted or not compilable(args):
            return self.python(*args)
        return self.compiled(*args)


class Generic:
    """A function that chooses its implementation by the type of its first argument.

    The decorated function is the signature and the documentation; its body never runs. Implementations are added with
    :meth:`register` and inherited along the classes of a value.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> @generic
    ... def area(shape):
    ...     '''The area of a shape.'''
    >>> class Disk(NamedTuple):
    ...     radius: float
    >>> @area.register(Disk)
    ... def disk_area(shape):
    ...     return 3.0 * shape.radius**2
    >>> area(Disk(2.0))
    12.0
    """

    __name__: str

    def __init__(
        self, signature: Callable[..., Any], inline: bool = True, reorder: bool = False, light: bool = False
    ) -> None:
        functools.update_wrapper(self, signature)
        _generics.append(self)
        self._reorder, self._light = reorder, light
        self._kernels: dict[type, Kernel] = {}
        options: Any = {**_jit_options(reorder), **INNER, "forceinline": inline}
        stand_for(self, self._implementation, options)

    def register(self, cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Make the decorated function the implementation for values of a class.

        Its arguments have the same names as those of the generic function. It is compiled if the class is a named tuple.
        """

        def add(python: Callable[..., Any]) -> Callable[..., Any]:
            if cls in self._kernels:
                raise TypeError(
                    f"{self.__name__} is already registered for {cls.__name__}, and loops compiled with it may be in use; "
                    f"define a new class for another implementation"
                )
            self._kernels[cls] = (
                python if isinstance(python, Kernel) else Kernel(python, reorder=self._reorder, light=self._light)
            )
            if not is_inside(python) or not is_inside(cls):
                foreign.add(cls)
            return python

        return add

    def supports(self, value: object) -> bool:
        """Whether there is an implementation for this value."""
        return self._find(type(value)) is not None

    def __call__(self, *args: Any) -> Any:
        kernel = self._find(type(args[0]))
        if kernel is None:
            raise TypeError(f"{type(args[0]).__name__} cannot do `{self.__name__}`: no implementation is registered for it")
        return kernel(*args)

    def _find(self, cls: type) -> Kernel | None:
        kernel = self._kernels.get(cls)
        if kernel is None:
            kernel = next((self._kernels[base] for base in cls.__mro__ if base in self._kernels), None)
        return kernel

    def _implementation(self, *args: Any) -> Callable[..., Any] | None:
        """The source that Numba compiles in place of a call with arguments of these Numba types."""
        cls = getattr(args[0], "instance_class", None)
        kernel = None if cls is None else self._find(cls)
        return None if kernel is None else kernel.python


def kernel(python: Callable[..., Any] | None = None, *, inline: bool = True, reorder: bool = False) -> Any:
    """Decorate a function as a kernel.

    Parameters
    ----------
    inline : bool
        Whether its code becomes part of that of its callers: a call passes each array as seven numbers and counts
        references. False for large code off the common path.
    reorder : bool
        Whether its sums may be computed in another order, and so in vector registers. Not for code that relies on how
        rounding goes, and not for loops that sum and write: their order depends on where the arrays lie in memory.
    """
    if python is None:
        return functools.partial(Kernel, inline=inline, reorder=reorder)
    return Kernel(python, inline, reorder)


def generic(
    signature: Callable[..., Any] | None = None, *, inline: bool = True, reorder: bool = False, light: bool = False
) -> Any:
    """Decorate a signature as a generic function; ``inline`` and ``reorder`` are those of all its kernels.

    A ``light`` one is never compiled for a call from Python: it costs less than to hand over its arguments.
    """
    if signature is None:
        return functools.partial(Generic, inline=inline, reorder=reorder, light=light)
    return Generic(signature, inline, reorder, light)


def _jit_options(reorder: bool) -> dict[str, Any]:
    return {"fastmath": REORDERED if reorder else EXACT, "error_model": "numpy"}


_generics: list[Generic] = []


def registered_for(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield all implementations that were registered for a class itself, each with the name of its generic function."""
    for each in _generics:
        if cls in each._kernels:
            yield each.__name__, each._kernels[cls].python
