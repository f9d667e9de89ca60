"""The unit of rounding and of underflow in double precision: what bounds on computed numbers are made of."""

from __future__ import annotations

UNIT = 2.0**-53  # largest relative error of one operation
SUBNORMAL = 5e-324  # smallest positive number: the largest error of one operation whose result underflows
UNDERFLOW = 1e-300  # bound on the errors of any number of operations whose results underflow
