"""Systems: sets of training data for one and the same predictor, named after the augmenters that made what is added."""

from dataclasses import dataclass

from compgen.comparison.result import BARE, CONTROL

MOST = 20_000  # synthetic examples of a system


@dataclass(frozen=True)
class System:
    """The training examples, and `times` as many synthetic ones, equally many by each method. No method: bare data."""

    methods: tuple[str, ...] = ()
    times: float = 0

    def __str__(self) -> str:
        return f"{' + '.join(self.methods)} x{self.times:.3g}" if self.methods else BARE

    @property
    def slug(self) -> str:
        """The name in file names."""
        return str(self).replace(" ", "")

    @property
    def candidate(self) -> bool:
        """Whether it is an augmentation that is tried: neither the bare data nor the control."""
        return self.methods not in ((), (CONTROL,))

    def share(self, originals: int) -> int:
        """How many examples each method is asked for, for so many training examples; at most MOST in all."""
        return max(1, min(MOST, round(self.times * originals)) // max(1, len(self.methods)))


BARE_SYSTEM = System()
