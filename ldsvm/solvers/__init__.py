"""Numerics without knowledge of MAC: box QPs, linear SVMs, ridge regression."""
