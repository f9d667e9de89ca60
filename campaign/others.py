"""A second point of each set, in numbers that no computation has to round either."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from campaign.recipes import Recipe
from campaign.sets import signs

STEPS = 12  # halvings of a step into a polytope, until it is given up


def another(rng: Generator, domain: Recipe, x: np.ndarray) -> np.ndarray:
    """Return a point of a set from a point of it and the set's own numbers; x itself where no other is at hand."""
    match domain.name:
        case "Product":
            parts = [part[0] if isinstance(part, tuple) else part for part in domain.named.values()]
            stops = np.cumsum([size_of(part) for part in domain.named.values()])[:-1]
            pieces = zip(parts, np.split(x, stops), strict=True)
            return np.concatenate([another(rng, part, piece) for part, piece in pieces])
        case "Columns":
            ball, (_, count) = domain.args
            return np.concatenate([another(rng, ball, column) for column in np.split(x, count)])
        case "L2Ball":
            center = domain.args[1] if len(domain.args) > 1 else np.zeros(x.size)
            return center + signs(rng, x.size) * (x - center)
        case "L1Ball" | "WeightedL1Ball" | "GroupBall" | "LInfBall" | "KSparse":
            return (rng.random() < 0.8) * signs(rng, x.size) * x
        case "NuclearBall":
            rows, columns = domain.args[0]
            return np.outer(signs(rng, rows), signs(rng, columns)).ravel() * x
        case "Box":
            return np.where(rng.random(x.size) < 0.5, *domain.args)
        case "Simplex" | "UnitSimplex" | "CappedSimplex":
            return x[rng.permutation(x.size)]
        case "Spectrahedron":
            n = domain.args[0]
            order, sign = rng.permutation(n), signs(rng, n)
            return (np.outer(sign, sign) * x.reshape(n, n)[order][:, order]).ravel()
        case "Hull":
            points = domain.args[0]
            return points[rng.integers(len(points))]
        case "Birkhoff":
            n = domain.args[0]
            return np.eye(n)[rng.permutation(n)].ravel()
    return stepped(rng, domain.named, x)


def size_of(part: Any) -> int:
    """Return how many variables a part of a product has."""
    return part[1] if isinstance(part, tuple) else int(np.prod(part.args[1]))


def stepped(rng: Generator, rows: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """Return a point of a polytope a step from x; all products have few digits."""
    low, high = rows["bounds"]
    for k in range(STEPS):
        step = rng.integers(-1, 2, x.size) / 2.0**k
        y = x + step
        fits = (low <= y).all() and (y <= high).all() and (rows["A_ub"] @ y <= rows["b_ub"]).all()
        if fits and step.any() and ("A_eq" not in rows or (rows["A_eq"] @ step == 0.0).all()):
            return y
    return x
