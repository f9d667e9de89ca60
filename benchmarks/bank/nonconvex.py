"""f not convex: g* is proven, and f is compared with the best value that any run finds."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bank.cases import Case, problem
from bank.files import MissingDataError, found
from tiebreak import Columns, DictionaryLoss, JointDictionaryLoss, L1Ball, L2Ball, Logistic, Problem, Product, data
from tiebreak import SquaredCovariance as Covariance
from tiebreak.studies.dictionary import continual
from tiebreak.studies.known import known

PEOPLE, ATOMS = 2000, 50


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
    return Case(known(0, convex=False).problem)
