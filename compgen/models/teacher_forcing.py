"""The decoder over tokens that are known: all steps of a sequence at once, as far as they do not wait for one another.

Without input feeding the LSTM runs over all steps, and attention after it. With it each step waits for the one before;
then the loop is `compgen.models.fed_loop`'s one operation; on a GPU, or with attention to what is written, it is one
step of the network after the other, which the one operation is tested against.

Symbols as in `compgen.models.network`.
"""

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from compgen.data.vocabulary import EOS_ID, PAD_ID
from compgen.models.attention import MASKED
from compgen.models.cell import sigmoids_first
from compgen.models.encoder import Encoder
from compgen.models.fed_loop import Attended, Dropped, Weights, by_distance, fed_loop
from compgen.models.packed import Slot, encode_packed, pack, prepare_packed
from compgen.models.recurrence import Memory, Notes, Recurrence, Terms, terms_of

if TYPE_CHECKING:
    from compgen.models.network import Network


def attended(
    network: "Network", inputs: Tensor, memory_tokens: Tensor, latent: Tensor | None = None
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """States (B, L, H), outputs u (B, L, F) and copy scores, see `Network.attend`; arguments as for `forward`."""
    read = network.embed(inputs)  # (B, L, E)
    if packs(network, memory_tokens):
        keys, values, final = recall_packed(network, memory_tokens)
        hidden, cell = network.start(final)
    else:
        keys, values, final, hidden, cell = network.begin(memory_tokens)
    memory = Memory(keys, values, memory_tokens != PAD_ID)
    if network.posterior is not None and latent is None:
        latent = network.posterior(read[:, 1:], _written(inputs[:, 1:]).clamp(min=1), final)
    step = torch.arange(inputs.shape[1], device=inputs.device).unsqueeze(0)  # (1, L)
    back = step.t() - step  # (L, L): how many steps ago
    seen = ((back > 0) & (back <= network.window)).unsqueeze(0)
    if network.feed and network.own is None and read.device.type == "cpu":
        return all_at_once(network, inputs, read, latent, (hidden, cell), memory)
    if network.feed:
        return step_by_step(network, read, latent, Recurrence(hidden, cell, read), memory, step, seen)
    if latent is not None:
        read = torch.cat([read, latent.unsqueeze(1).expand(-1, read.shape[1], -1)], dim=2)  # (B, L, E + Z)
    state = (hidden.unsqueeze(0).contiguous(), cell.unsqueeze(0).contiguous())  # cuDNN takes no other
    states = network.lstm(read, state)[0]  # (B, L, H)
    query = read if network.attention is None else network.attention.query(torch.cat([states, read], dim=2))
    notes = Notes(states if network.own is None else network.note(states), seen)
    u, scores = network.attend(states, query, memory, notes, step)
    return states, u, scores


def _written(tokens: Tensor) -> Tensor:
    """How many tokens (B) of each row (B, T) are before its end symbol.

    Inputs end before the last place of the batch, so that the longest rows alone have no end symbol: counting it would
    have the latent vector of a row depend on the rows beside it.
    """
    return ((tokens != PAD_ID) & (tokens != EOS_ID)).sum(dim=1)


def step_by_step(
    network: "Network",
    embedded: Tensor,
    latent: Tensor | None,
    state: Recurrence,
    memory: Memory,
    step: Tensor,
    seen: Tensor,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The recurrence with input feeding; what does not depend on the state is computed for all steps at once."""
    biases, weights, latent_weights, state_weights = network.for_steps()
    given = terms_of(embedded, weights, biases)  # (B, L, 4H), (B, L, nA)
    if latent is not None:
        given = Terms(*(term + (latent @ w).unsqueeze(1) for term, w in zip(given, latent_weights, strict=True)))
    steps = [Terms(*term) for term in zip(given.gates.unbind(1), given.queries.unbind(1), strict=True)]
    rows, length = embedded.shape[:2]
    state = state._replace(fed=embedded.new_zeros((rows, network.output)))
    outputs: list[Tensor] = []
    states: list[Tensor] = []
    all_scores: list[list[Tensor]] = []
    blank = embedded.new_zeros((rows, 1, 0 if network.own is None else network.own.size))
    noted: list[Tensor] = []
    for now, terms in enumerate(steps):
        so_far = torch.stack(noted, dim=1) if noted else blank  # (B, S, A)
        notes = Notes(so_far, seen[:, now : now + 1, : so_far.shape[1]])
        state, scores = network.advance(terms, state_weights, state, memory, notes, step[:, now : now + 1])
        outputs.append(state.fed)
        states.append(state.hidden)
        # A view of its own: gradients are then summed in one order, with dropout and without, to the last bit.
        state = state._replace(fed=network.feed_dropout(state.fed.view_as(state.fed)))
        if network.own is not None:
            noted.append(network.note(state.hidden))
            scores[-1] = F.pad(scores[-1], [0, length - scores[-1].shape[2]], value=MASKED)  # (B, 1, L)
        all_scores.append(scores)
    joined = [torch.cat(each, dim=1) for each in zip(*all_scores, strict=True)]
    return torch.stack(states, dim=1), torch.stack(outputs, dim=1), joined


def all_at_once(
    network: "Network",
    inputs: Tensor,
    embedded: Tensor,
    latent: Tensor | None,
    start: tuple[Tensor, Tensor],
    memory: Memory,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """What `step_by_step` computes, for a network without `own`, as one operation (see `compgen.models.fed_loop`)."""
    biases, weights, latents, feds, hiddens = (
        terms._replace(gates=sigmoids_first(terms.gates, dim=0)) for terms in network.by_operand()
    )
    by_word = _by_word(network, inputs)
    given = terms_of(network.embedding.weight if by_word else embedded.transpose(0, 1), weights, biases)
    if by_word:
        given = Terms(*(F.embedding(network.shown[inputs.t()], each) for each in given))  # (L, B, 4H), (L, B, nA)
    if latent is not None:
        given = Terms(*(term + latent @ w.t() for term, w in zip(given, latents, strict=True)))
    attention = network.attention
    assert attention is not None, "a network without memories has no feeding"
    rows, length = embedded.shape[:2]
    tables: list[Tensor] = [attention.position_keys, attention.position_values]
    if attention.positions:
        tables = [by_distance(table, length, memory.keys.shape[2]) for table in tables]
    states, u, scores = fed_loop(
        *given,
        Weights(
            torch.cat([hiddens.gates, feds.gates], dim=1),
            torch.cat([feds.queries, hiddens.queries], dim=1),
            network.combine.weight,
            network.combine.bias,
        ),
        Attended(*memory, *tables),
        Dropped(*dropped(network, length, rows, embedded)),
        start,
        attention.tanh,
    )
    return states.transpose(0, 1), u.transpose(0, 1), list(scores.permute(2, 1, 0, 3))


def _by_word(network: "Network", tokens: Tensor) -> bool:
    """Whether a linear map of embedded tokens is less work for each word of the vocabulary than for each token."""
    return tokens.numel() > network.vocabulary and not (network.training and network.embedding_dropout.dropped)


def packs(network: "Network", tokens: Tensor) -> bool:
    """Whether `recall_packed` applies to memories (B, n, T), and is faster than an LSTM that reads padding."""
    return tokens.device.type == "cpu" and _by_word(network, tokens) and bool((tokens[..., 0] != PAD_ID).all())


def recall_packed(network: "Network", tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What `recall` computes, without reading padding (see `compgen.models.packed`)."""
    attention = network.attention
    assert attention is not None, "a network without memories recalls nothing"
    rows, memories, time = tokens.shape
    slots = [*range(memories)]
    states: list[Tensor] = []
    of_slots: list[Slot] = []
    finals: list[Tensor] = []
    read_by = [slots] if len(network.encoders) == 1 else [[slot] for slot in slots]  # the slots of each encoder
    for which, (encoder, own) in enumerate(zip(network.encoders, read_by, strict=True)):
        assert isinstance(encoder, Encoder)
        sequences = tokens[:, own].reshape(-1, time)  # (R, T), row by row of the batch
        packing = pack((sequences != PAD_ID).sum(dim=1))
        read = network.shown[sequences[packing.row, packing.place]]  # (N)
        found, final = encode_packed(encoder, network.embedding.weight, read, packing)
        states.append(found)
        finals.append(final.reshape(rows, len(own), -1))
        example, number = packing.row // len(own), packing.row % len(own)
        place = (example * memories + own[0] + number) * time + packing.place
        for slot in own:
            mine = torch.nonzero(own[0] + number == slot)[:, 0]
            of_slots.append(Slot(which, mine, place[mine]))
    keys, values = prepare_packed(attention, states, of_slots, (rows, memories, time))
    return keys, values, torch.cat(finals, dim=1)


def dropped(network: "Network", length: int, rows: int, like: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The factors of dropout of all steps, for hidden states and for what is fed back."""
    layers = ((network.output_dropout, network.hidden), (network.feed_dropout, network.output))
    hidden, fed = (
        layer.factors(like, [length, rows, size]) if network.training and layer.dropped else None
        for layer, size in layers
    )
    return hidden, fed
