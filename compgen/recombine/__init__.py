"""Recombination networks (R&R: Akyürek et al., ICLR 2021): neighborhoods, Omega, training, the augmenter."""
