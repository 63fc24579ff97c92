"""GECA, good-enough compositional data augmentation (Andreas 2020): fragments of one example put into another."""

from compgen.augmenters.concat import Concat
from compgen.geca.augmenter import Geca
from compgen.geca.compose import Drawing
from compgen.geca.tables import Config

__all__ = ["Concat", "Config", "Drawing", "Geca"]
