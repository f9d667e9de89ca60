"""Linear minimisation over a set and a half-space: the search for the multiplier, and closed forms."""
