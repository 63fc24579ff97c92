"""GECA, good-enough compositional data augmentation (Andreas 2020): fragments of one example put into another."""

from compgen.geca.augmenter import Geca
from compgen.geca.options import GecaOptions

__all__ = ["Geca", "GecaOptions"]
