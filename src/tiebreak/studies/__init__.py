"""Studies: thin scripts on the public API."""
