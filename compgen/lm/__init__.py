"""Language models of sentences: estimation and scores by KenLM, mixtures, and what synthetic sentences are worth."""

from compgen.lm.estimation import Estimation, estimate
from compgen.lm.measuring import measure, rescore
from compgen.lm.mixture import Mixture, tuned
from compgen.lm.scoring import score_all

__all__ = ["Estimation", "Mixture", "estimate", "measure", "rescore", "score_all", "tuned"]
