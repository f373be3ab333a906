"""Logits → why: contributions of open words, circuits, views over the input, and the check."""
