"""Domains: compact convex sets, one file per geometry, and the half-space cut."""

from tiebreak.domains.atoms import Atom, Block, blocks, decomposed, has_vertices, vertices
from tiebreak.domains.balls import L2Ball
from tiebreak.domains.base import (
    Cut,
    CutStatus,
    Domain,
    contains,
    cut_lmo,
    cut_step,
    diameter,
    least_value,
    lmo,
    lmo_step,
    project,
    project_cut,
    projects,
    settle,
    spread,
)
from tiebreak.domains.birkhoff import Birkhoff
from tiebreak.domains.boxes import Box, LInfBall
from tiebreak.domains.capped import CappedSimplex
from tiebreak.domains.groups import GroupBall
from tiebreak.domains.hull import Hull
from tiebreak.domains.k_sparse import KSparse
from tiebreak.domains.l1 import L1Ball, WeightedL1Ball
from tiebreak.domains.polytope import Polytope
from tiebreak.domains.products import Columns, Product
from tiebreak.domains.simplices import Simplex, UnitSimplex
from tiebreak.domains.spectral import NuclearBall, Spectrahedron
from tiebreak.domains.within import Around, HalfSpace, project_within

__all__ = [
    "Around",
    "Atom",
    "Birkhoff",
    "Block",
    "Box",
    "CappedSimplex",
    "Columns",
    "Cut",
    "CutStatus",
    "Domain",
    "GroupBall",
    "HalfSpace",
    "Hull",
    "KSparse",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "NuclearBall",
    "Polytope",
    "Product",
    "Simplex",
    "Spectrahedron",
    "UnitSimplex",
    "WeightedL1Ball",
    "blocks",
    "contains",
    "cut_lmo",
    "cut_step",
    "decomposed",
    "diameter",
    "has_vertices",
    "least_value",
    "lmo",
    "lmo_step",
    "project",
    "project_cut",
    "project_within",
    "projects",
    "settle",
    "spread",
    "vertices",
]
