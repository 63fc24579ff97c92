"""Substitution: derivations of training examples, and new ones by exchanging their parts."""
