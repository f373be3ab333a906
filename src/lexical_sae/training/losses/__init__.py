"""The terms of the training objective, one concept each."""
