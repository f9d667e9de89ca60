"""Domains: compact convex sets, one file a geometry, and the half-space cut."""

from tiebreak.domains.base import Cut, CutStatus, Domain, contains, cut_lmo, cut_step, diameter, lmo, project
from tiebreak.domains.l1 import L1Ball

__all__ = ["Cut", "CutStatus", "Domain", "L1Ball", "contains", "cut_lmo", "cut_step", "diameter", "lmo", "project"]
