"""Proofs about the why: sufficient reasons and flip sets."""
