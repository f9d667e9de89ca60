"""f not convex: g* is proven, and f is compared with what long runs agree on, or proven where minimisers are a polygon."""

from __future__ import annotations

import heapq
import itertools
from functools import lru_cache
from typing import Any

import numpy as np

from bank.cases import ROUNDING, Case, Reference, problem
from bank.files import MissingDataError, found
from tiebreak import Columns, DictionaryLoss, JointDictionaryLoss, L1Ball, L2Ball, Logistic, Problem, Product, data
from tiebreak import SquaredCovariance as Covariance
from tiebreak.studies.dictionary import continual
from tiebreak.studies.known import known

PEOPLE, ATOMS = 2000, 50
CERTAIN = 1e-5  # relative error of the least f on a polygon


def fairest(radius: float) -> Case:
    """Return the fairest of the best classifiers of people: Adult if it is there, else people like these."""
    try:
        census = data.adult(found("adult.mat"))
    except MissingDataError:
        census = data.adult_like(0)
    rows = np.random.default_rng(0).permutation(census.y.size)[:PEOPLE]
    A = np.column_stack([census.X, np.ones(census.y.size)])[rows]
    return Case(Problem(Covariance(A, census.sensitive[rows]), Logistic(A, census.y[rows]), L1Ball(radius)))


@problem(1000)
def fairness() -> Case:
    return fairest(100.0)


@problem(100, 1000)
def fairness_in_a_small_ball() -> Case:
    return fairest(5.0)


@lru_cache
def learned() -> np.ndarray:
    """Return the codes of old data that a short learning phase finds."""
    codes: np.ndarray = continual(0, size=ATOMS, iterations=500).problem.lower.objective.codes
    return codes


@problem(30, 300)
def dictionary() -> Case:
    """The paper's dictionary that learns new data and keeps what it knows of the old, after a short learning phase."""
    atoms = data.dictionary(0)
    m, n_new = atoms.new.shape
    domain = Product(D=Columns(L2Ball(1.0), (m, ATOMS)), X=Columns(L1Ball(3.0), (ATOMS, n_new)))
    return Case(Problem(JointDictionaryLoss(atoms.new), DictionaryLoss(atoms.old, learned().T.copy()), domain))


@problem(100)
def covariance_on_a_polygon() -> Case:
    """A squared covariance over a logistic loss whose minimisers are a polygon."""
    return Case(known(0, convex=False).problem, answer_on_polygon())


@lru_cache
def answer_on_polygon() -> Reference:
    case = known(0, convex=False)
    upper, error = least_on_polygon(case.problem.upper, case.vertices)
    return Reference(case.lower, upper, ROUNDING, error, "proven")


def least_on_polygon(f: Any, vertices: np.ndarray) -> tuple[float, float]:
    """Return the least f on a polygon, whose vertices are in order, and by how much it may be smaller.

    On a triangle of centre c and radius r, f is at least its linear model at c less L r² / 2. The triangle with the least of
    these bounds is cut in four, until that is near the least value found.
    """
    count, best = itertools.count(), np.inf
    waiting: list[tuple[float, int, np.ndarray]] = []

    def add(triangle: np.ndarray) -> None:
        nonlocal best
        centre = triangle.mean(axis=0)
        value, slope = f.value_and_gradient(centre)
        ways = triangle - centre
        best = min(best, value, *(f.value(corner) for corner in triangle))
        bound = value + (ways @ slope).min() - f.lipschitz / 2.0 * (ways**2).sum(axis=1).max()
        heapq.heappush(waiting, (bound, next(count), triangle))

    for corners in itertools.pairwise(vertices[1:]):
        add(np.array([vertices[0], *corners]))
    while waiting[0][0] < best - CERTAIN * abs(best):
        a, b, c = heapq.heappop(waiting)[2]
        ab, bc, ca = (a + b) / 2.0, (b + c) / 2.0, (c + a) / 2.0
        for part in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)):
            add(np.array(part))
    return float(best), float(best - waiting[0][0])
