"""One thread where more would wait for each other: small matrices on a machine that has other things to do."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 2e7  # multiplications below which the threads of a library of linear algebra cost more than they gain


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_thread(work: float) -> Any:
    """Return a context in which linear algebra has one thread, if there is little work."""
    return _controller().limit(limits=1, user_api="blas") if work < SMALL else contextlib.nullcontext()
