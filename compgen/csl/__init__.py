"""Quasi-synchronous grammars induced from pairs (CSL: Qiu et al., NAACL 2022), and new pairs sampled from them."""
