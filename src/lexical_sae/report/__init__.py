"""Show what was found: curves of a run."""
