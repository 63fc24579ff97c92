"""Learning theta: the scores of rules from the derivations of examples (Qiu et al. 2022, sections 3.1.2 and 3.1.3).

    p(x, y) = sum over derivations z of <x, y> of p(z)                                (Eq. 1)
    p(z) = product over the rules r of z of p(r | r_p, i)                             (Eq. 3)

r_p is the rule above r, whose nonterminal i it expands; (r_p, i) is a slot (see `weights`, Eqs. 4, 8 and 9). The
reference pads its tables, and padding takes a share of the probability; here there is none. It trains on batches of 256
examples; here each update sees all examples, as they share one forest, so their order does not matter.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from compgen.csl.forests import Forests, forests
from compgen.csl.options import Training
from compgen.csl.rules import Grammar, Rule
from compgen.csl.weights import Scores, slots
from compgen.errors import DataError, UserError
from compgen.models.adam import Adam
from compgen.models.seeding import torch_stream

RISE = 1.0  # of the loss, in nats per example: more is divergence, less may be the noise of a few steps


@torch.inference_mode(False)  # gradients, even where the caller has turned them off
def learn(
    grammar: Grammar,
    examples: list[Rule],
    training: Training,
    seed: int = 0,
    watch: Callable[[int, float], None] = lambda _step, _loss: None,
) -> tuple[Scores, list[float]]:
    """Learn scores of rules from examples in the grammar's alphabet; those that it does not derive are left out.

    `watch` is called after each step with its number, counted over all starts, and its loss.

    Returns:
        The scores of the start with the lowest final loss, and the losses of its steps in nats per example.

    Raises:
        DataError: the grammar derives no example.
        UserError: learning makes the examples less probable, as the rate is too high.
    """
    found = forests(grammar, examples, training.unit_limit)
    inside = Inside(grammar, found)
    if not len(inside.root):
        raise DataError(f"the grammar derives none of {len(examples):,} examples, expected some to learn from")

    generator = torch_stream(seed)
    shapes = ((grammar.shape[0], training.states), (training.states, grammar.shape[1]))
    starts = []
    for number in range(training.starts):
        tables = [(0.05 * torch.randn(shape, generator=generator)).requires_grad_() for shape in shapes]
        starts.append((tables, _descend(inside, tables, training, number * training.steps, watch)))
    tables, losses = min(starts, key=lambda start: start[1][-1:])
    if losses and not losses[-1] <= losses[0] + RISE:
        raise UserError(
            f"training.rate {training.rate:g}: the loss rose from {losses[0]:.2f} to {losses[-1]:.2f} nats per "
            "example, expected it to fall: lower training.rate"
        )
    learned, rules = (table.detach().double().numpy() for table in tables)
    return Scores(learned, rules), losses


def _descend(
    inside: "Inside", tables: list[Tensor], training: Training, before: int, watch: Callable[[int, float], None]
) -> list[float]:
    """Change the tables in place, by Adam, to make the examples more probable; return the loss of each step.

    `before` is the number of steps before the first.
    """
    optimiser = Adam(tables, lr=training.rate)
    losses = []
    for step in range(1, training.steps + 1):
        loss = -inside.log_likelihood(rule_log_probs(*tables))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(float(loss.detach()))
        watch(before + step, losses[-1])
    return losses


def rule_log_probs(slots: Tensor, rules: Tensor) -> Tensor:
    """Return log p(rule | slot), (slots, rules), from theta: A (slots, S) and B (S, rules). See `Scores`, Eq. 4."""
    probable = torch.softmax(slots, dim=1) @ torch.softmax(rules, dim=1)
    # The gradient of log(0) is NaN, even for rules that no example uses.
    return torch.log(probable.clamp_min(torch.finfo(probable.dtype).tiny))


class _Level(NamedTuple):
    """The nodes of one height, by their nonterminals ("edges", E) and the nodes that can fill these (P pairs)."""

    node: Tensor  # (E) whose nonterminal it is
    edge: Tensor  # (P)
    slot: Tensor  # (P) that of the edge
    under: Tensor  # (P) the node that fills it


class Inside:
    """The inside algorithm over the forest of all examples, all nodes of one height at once.

    for each node, the lower ones first:
        score[node] = sum over its nonterminals i of
                      log sum over nodes m of the place under i of exp(log p(rule[m] | slot i) + score[m])
    """

    def __init__(self, grammar: Grammar, found: Forests) -> None:
        self.rule = torch.tensor(found.rule, dtype=torch.int64)
        first = slots(grammar)
        heights: list[list[int]] = [[] for _ in range(1 + max(found.height, default=0))]
        for number, height in enumerate(found.height):
            heights[height].append(number)
        self.levels = [_level(found, first, nodes) for nodes in heights[1:]]
        derived = [place for place in found.roots if place >= 0]
        places, counts = np.unique(np.array(derived, dtype=np.int64), return_counts=True)
        members = [(number, node) for number, place in enumerate(places.tolist()) for node in found.members[place]]
        self.example = torch.tensor([number for number, _ in members], dtype=torch.int64)  # (R)
        self.root = torch.tensor([node for _, node in members], dtype=torch.int64)  # (R)
        self.share = torch.from_numpy(counts / max(1, counts.sum()))  # (different examples)

    def log_likelihood(self, log_probs: Tensor) -> Tensor:
        """Return the mean over examples of log p(x, y), given log p(rule | slot), (slots, rules)."""
        score = log_probs.new_zeros(len(self.rule))
        for node, edge, slot, under in self.levels:
            pairs = log_probs[slot, self.rule[under]] + score[under]  # (P)
            edges = _logsumexp(pairs, edge, len(node))  # (E)
            score = score.index_add(0, node, edges)
        roots = log_probs[0, self.rule[self.root]] + score[self.root]  # (R)
        return (_logsumexp(roots, self.example, len(self.share)) * self.share.to(roots.dtype)).sum()


def _level(found: Forests, first: list[int], nodes: list[int]) -> _Level:
    """Build the arrays of some nodes; `first` is the first slot of each rule."""
    edges = [(node, first[found.rule[node]] + i, place) for node in nodes for i, place in enumerate(found.below[node])]
    pairs = [(edge, slot, under) for edge, (_, slot, place) in enumerate(edges) for under in found.members[place]]
    edge, slot, under = torch.tensor(pairs, dtype=torch.int64).T.contiguous()
    return _Level(torch.tensor([node for node, *_ in edges], dtype=torch.int64), edge, slot, under)


def _logsumexp(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """Return log of the sum of exp(values) in each group, (n) to (groups); every group has a value."""
    with torch.no_grad():
        most = values.new_full((groups,), -torch.inf).scatter_reduce(0, group, values, "amax")
    total = torch.zeros_like(most).index_add(0, group, torch.exp(values - most[group]))
    return most + torch.log(total)
