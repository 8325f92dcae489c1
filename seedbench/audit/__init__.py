"""Proofs about runs and about published tables."""
