"""The prototype pool of a generator and its compatible set Omega, from which prototypes are drawn uniformly.

Omega may hold 10^8 tuples, so it is not listed. It is a union of blocks. A block is a product of n groups of pool
members, and arithmetic turns a rank into a tuple. Long-short recombination has one block (all firsts x all seconds);
long-long recombination has a block for each pair of compatible token sets.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data import random
from compgen.data.vocabulary import EOS_ID, PAD_ID, SEP_ID
from compgen.errors import UserError

LARGEST = 2**53  # tuples that 53 random bits can tell apart
NEAREST = 5  # prototypes that direct inference retrieves for a source; in the C++ runner always


@dataclass(frozen=True)
class PrototypePool:
    """Training sequences that may serve as prototypes, and which of them are compatible.

    Attributes:
        tokens: (P, T) ids `source SEP target EOS`, padded with 0: all distinct training sequences.
        members: pool indices, group after group.
        starts, counts: (K, n), the place in `members` and the size of each group of K blocks.
    """

    tokens: NDArray[np.int32]
    members: NDArray[np.int32]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def prototypes(self) -> int:
        """n, the number of prototypes of a sample."""
        return int(self.starts.shape[1])

    def require_direct(self) -> None:
        """Raise UserError unless the generator has one prototype or two, as direct inference needs."""
        if self.prototypes not in (1, 2):
            raise UserError(f"direct inference is for one prototype or two: found a generator with {self.prototypes}")

    @property
    def total(self) -> int:
        """The number of tuples in Omega."""
        return int(self.counts.prod(axis=1).sum())

    @property
    def too_large(self) -> bool:
        """Whether Omega has more tuples than can be drawn; `total` and `choose` are then wrong."""
        return bool(self.counts.astype(np.float64).prod(axis=1).sum() > LARGEST)

    @property
    def longest(self) -> int:
        """The length of the longest member; 1 without members."""
        return int((self.tokens[self.members] != 0).sum(axis=1).max(initial=1))

    def sequences(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tokens (B, n, T) of prototypes (B, n), padded with 0 to the length of the longest."""
        return self.tokens[chosen, : self.longest].astype(np.int64)

    @cached_property
    def targets(self) -> bool:
        """Whether some sequence has something after its separator, or there is none; else these are sentences."""
        blocks = (self.tokens[first : first + 256] for first in range(0, len(self.tokens), 256))
        return not len(self.tokens) or any(map(_something_follows, blocks))  # the first few tell, if these are pairs

    def holding(self, wanted: NDArray[np.bool_]) -> "PrototypePool":
        """The same sequences, with the tuples of Omega that have a member among those `wanted` (P); there may be none.

        A block splits by the first slot with a wanted member: (other, ..., other, wanted, any, ..., any).
        """
        marked, n = wanted[self.members], self.prototypes
        before = np.concatenate([[0], np.cumsum(marked)])  # wanted members before each place
        first, count = before[self.starts], before[self.starts + self.counts] - before[self.starts]  # (K, n)
        held, size = int(before[-1]), len(marked)  # the new members are the wanted ones, the others, and all
        kinds = {
            "wanted": (first, count),
            "other": (held + self.starts - first, self.counts - count),
            "any": (size + self.starts, self.counts),
        }
        blocks = [["other"] * slot + ["wanted"] + ["any"] * (n - slot - 1) for slot in range(n)]
        starts, counts = (
            np.concatenate([np.stack([kinds[kind][i][:, at] for at, kind in enumerate(block)], 1) for block in blocks])
            for i in (0, 1)
        )
        filled = counts.all(axis=1)
        members = np.concatenate([self.members[marked], self.members[~marked], self.members])
        return PrototypePool(self.tokens, members, starts[filled], counts[filled])

    def choose(self, seed: int, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the pool indices (B, n) of the prototypes of sample addresses (B).

        rank  = a random number below |Omega|, less the sizes of the blocks before its block
        tuple = the digits of rank in the mixed radix (count of slot 1, ..., count of slot n)
        """
        if self.prototypes == 0:
            return np.empty((len(samples), 0), dtype=np.int64)
        ends = np.cumsum(self.counts.prod(axis=1))  # (K)
        rank = random.ranks(seed, samples, self.total)
        block = np.searchsorted(ends, rank, side="right")
        rank = rank - (ends[block] - self.counts[block].prod(axis=1))
        chosen = np.empty((len(samples), self.prototypes), dtype=np.int64)
        for slot in reversed(range(self.prototypes)):
            count = self.counts[block, slot]
            chosen[:, slot] = self.members[self.starts[block, slot] + rank % count]
            rank = rank // count
        return chosen


def _something_follows(tokens: NDArray[np.int32]) -> bool:
    after = np.cumsum(tokens == SEP_ID, axis=1) > 0  # (rows, T), from the separator on
    return bool((after & ~np.isin(tokens, (PAD_ID, SEP_ID, EOS_ID))).any())
