"""Training: circuits under a constraint on the task loss."""
