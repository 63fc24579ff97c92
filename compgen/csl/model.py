"""The probabilities of a grammar's rules, learned from the derivations of examples (Qiu et al. 2022, section 3.1.2).

A derivation's probability is the product, over its rules, of p(rule | slot): which rule fills which nonterminal of the
rule above it (see `weights`), and an example's is the sum over its derivations. The reference pads both tables, and
lets the padding have a share of the probability; here there is none. It trains on batches of 256 examples; here each
update sees all examples, as their derivations are shared (`forests`), and so no order of them matters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from compgen.csl.forests import Forests, Level, forests, levels
from compgen.csl.options import Training
from compgen.csl.rules import Grammar, Rule
from compgen.csl.weights import Scores
from compgen.errors import DataError
from compgen.models.seeding import torch_stream


def learn(
    grammar: Grammar,
    examples: list[Rule],
    training: Training,
    seed: int = 0,
    watch: Callable[[int, float], None] = lambda _step, _loss: None,
) -> tuple[Scores, list[float]]:
    """Learn scores of rules from examples, rules without nonterminals in the grammar's alphabet.

    `watch` hears of each step, all starts counted together, and its loss.

    Returns:
        the scores of the start that ends with the lowest loss, the first of them; and the losses of its steps, in nats
        an example.

    Raises:
        DataError: the grammar derives none of the examples. Those that it does not derive are left out.
    """
    found = forests(grammar, examples, training.unit_limit)
    inside = Inside(grammar, found)
    if not len(inside.root):
        raise DataError(f"the grammar derives none of {len(examples):,} examples, expected some to learn from")

    def heard(before: int, step: int, loss: float) -> None:
        watch(before + step, loss)

    generator = torch_stream(seed)
    shapes = ((1 + sum(rule.arity for rule in grammar.rules), training.states), (training.states, len(grammar.rules)))
    starts = []
    for number in range(training.starts):
        tables = [(0.05 * torch.randn(shape, generator=generator)).requires_grad_() for shape in shapes]
        starts.append((tables, _descend(inside, tables, training, partial(heard, number * training.steps))))
    tables, losses = min(starts, key=lambda start: start[1][-1:])
    slots, rules = (table.detach().double().numpy() for table in tables)
    return Scores(slots, rules), losses


def _descend(
    inside: "Inside", tables: list[Tensor], training: Training, watch: Callable[[int, float], None]
) -> list[float]:
    """Make the examples more probable, by changing the tables; the loss of each step."""
    optimiser = torch.optim.Adam(tables, lr=training.rate)
    losses = []
    for step in range(1, training.steps + 1):
        loss = -inside.log_likelihood(rule_log_probs(*tables))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(float(loss.detach()))
        watch(step, losses[-1])
    return losses


def rule_log_probs(slots: Tensor, rules: Tensor) -> Tensor:
    """log p(rule | slot), (slots, rules), from scores A (slots, S) and B (S, rules); p is clamped to be positive."""
    probable = torch.softmax(slots, dim=1) @ torch.softmax(rules, dim=1)
    # The gradient of log(0) is NaN, even for rules that no example uses.
    return torch.log(probable.clamp_min(torch.finfo(probable.dtype).tiny))


class Inside:
    """The inside algorithm over the derivations of all examples, by height, all nodes of a height at once."""

    def __init__(self, grammar: Grammar, found: Forests) -> None:
        self.rule = torch.tensor(found.rule, dtype=torch.int64)
        self.levels = [_Tensors.of(level) for level in levels(found, grammar)]
        derived = [place for place in found.roots if place >= 0]
        places, counts = np.unique(np.array(derived, dtype=np.int64), return_counts=True)
        members = [(number, node) for number, place in enumerate(places.tolist()) for node in found.members[place]]
        self.example = torch.tensor([number for number, _ in members], dtype=torch.int64)
        self.root = torch.tensor([node for _, node in members], dtype=torch.int64)
        self.share = torch.from_numpy(counts / max(1, counts.sum()))

    def log_likelihood(self, log_probs: Tensor) -> Tensor:
        """The mean over examples of log p(source, target), given log p(rule | slot)."""
        score = log_probs.new_zeros(len(self.rule))
        for level in self.levels:
            pairs = log_probs[level.slot, self.rule[level.under]] + score[level.under]
            edges = _logsumexp(pairs, level.edge, len(level.node))
            score = score.index_add(0, level.node, edges)
        roots = log_probs[0, self.rule[self.root]] + score[self.root]
        return (_logsumexp(roots, self.example, len(self.share)) * self.share.to(roots.dtype)).sum()


@dataclass(frozen=True)
class _Tensors:
    """A `Level`, as tensors."""

    node: Tensor
    edge: Tensor
    slot: Tensor
    under: Tensor

    @classmethod
    def of(cls, level: Level) -> "_Tensors":
        return cls(*(torch.from_numpy(column) for column in (level.node, level.edge, level.slot, level.under)))


def _logsumexp(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """log of the sum of exp(values) in each group; every group has a value."""
    with torch.no_grad():
        most = values.new_full((groups,), -torch.inf).scatter_reduce(0, group, values, "amax")
    total = torch.zeros_like(most).index_add(0, group, torch.exp(values - most[group]))
    return most + torch.log(total)
