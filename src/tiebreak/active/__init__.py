"""Exact minimisers of weighted sums of two levels over sets with atoms: an active set of atoms, Newton's method on them."""
