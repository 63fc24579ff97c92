"""One decoding step with the choice of the next token: what sampling, TorchScript and ONNX all run.

The choice takes a uniform number as an input, so that a sample depends on its address alone. Each half of an example
has its temperature T: T > 0 draws from p^(1/T), T = 0 takes the most probable token. The reference's "mixed" decoding
is (T, 0): draw the source, then answer greedily.
"""

import torch
from torch import Tensor, nn

from compgen.data.vocabulary import PAD_ID, SEP_ID
from compgen.models.attention import MASKED
from compgen.models.choosing import choose, forbidden_tokens
from compgen.models.network import Network
from compgen.models.recurrence import Memory, Notes, Recurrence, Terms, terms_of


class DecodingStep(nn.Module):
    """One step of a network in evaluation mode, and the choice of the next token.

    What a token adds to gates and queries is looked up in tables, made once from the network's present weights.
    """

    forbidden: Tensor  # (2, V), see `forbidden_tokens`
    token_gates: Tensor  # (V, 4H)
    token_queries: Tensor  # (V, nA)
    latent_gates: Tensor  # (Z, 4H)
    latent_queries: Tensor  # (Z, nA)
    state_gates: Tensor  # (F + H, 4H)
    state_queries: Tensor  # (F + H, nA)

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        # Attributes, because TorchScript does not read a module's globals.
        self.pad, self.separator, self.masked = PAD_ID, SEP_ID, MASKED
        self.register_buffer("forbidden", forbidden_tokens(network.vocabulary), persistent=False)
        with torch.no_grad():
            embedded = network.embedding(network.shown)  # (V, E)
            biases, weights, latent, state = network.for_steps()
            token = terms_of(embedded, weights, biases)
            for name, terms in (("token", token), ("latent", latent), ("state", state)):
                self.register_buffer(f"{name}_gates", terms.gates.detach(), persistent=False)
                self.register_buffer(f"{name}_queries", terms.queries.detach(), persistent=False)

    def forward(
        self,
        token: Tensor,
        hidden: Tensor,
        cell: Tensor,
        fed: Tensor,
        position: Tensor,
        half: Tensor,
        uniform: Tensor,
        temperature: Tensor,
        keys: Tensor,
        values: Tensor,
        memory_tokens: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Advance every row by one token: from `runtime.backend.StepInputs` to `StepOutputs`, which give the shapes.

        The arguments are written out because exported graphs have them as named inputs.
        """
        network = self.network
        step = position.unsqueeze(1)  # (B, 1)
        u, kept = fed[:, : network.output], fed[:, network.output :]
        z, ring = kept[:, : network.latent], kept[:, network.latent :]
        copied = memory_tokens.flatten(1)  # (B, n * T)
        notes = Notes(keys, step > 0)  # not looked at without a ring
        if network.window > 0:
            ring, written, notes = self.remember(ring, token, hidden, step)
            copied = torch.cat([copied, written], dim=1) if network.memories > 0 else written
        terms = Terms(self.token_gates[token], self.token_queries[token])  # (B, 4H), (B, nA)
        if network.latent > 0:
            terms = Terms(terms.gates + z @ self.latent_gates, terms.queries + z @ self.latent_queries)
        weights, memory = Terms(self.state_gates, self.state_queries), Memory(keys, values, memory_tokens != self.pad)
        following, scores = network.advance(terms, weights, Recurrence(hidden, cell, u), memory, notes, step)
        hidden, cell, u = following.hidden, following.cell, following.fed
        slots = network.slots(hidden.unsqueeze(1), u.unsqueeze(1), scores)[:, 0]  # (B, V + slots that copy)
        log_probs = network.merge(slots, copied)  # (B, V)
        forbidden = self.forbidden[(position == 0).to(torch.int64)]  # (B, V)
        chosen = choose(log_probs, forbidden, uniform, temperature[half], self.masked)
        half = torch.maximum(half, (chosen == self.separator).to(torch.int64))
        if network.carried > network.output:
            u = torch.cat([u, z, ring], dim=1)
        return chosen, log_probs, half, hidden, cell, u

    def remember(self, ring: Tensor, token: Tensor, hidden: Tensor, step: Tensor) -> tuple[Tensor, Tensor, Notes]:
        """Put the token read, with a note of the state that wrote it, into the ring of the last S tokens written.

        The token read at step t goes to place (t - 1) mod S. At step 0 nothing is written yet: what goes into the last
        place then is overwritten before a step may look at it.

        Args:
            ring: (B, S + S * A), the ids of the tokens and their notes.
            token: (B).
            hidden: (B, H), the state before this step.
            step: (B, 1).

        Returns:
            the new ring, the tokens in it (B, S), and their notes.
        """
        network = self.network
        window, size = network.window, network.noted
        place = (step - 1) % window  # (B, 1)
        places = place * size + torch.arange(size, device=token.device)  # (B, A)
        ids = ring[:, :window].scatter(1, place, token.to(ring.dtype).unsqueeze(1))  # (B, S)
        flat = ring[:, window:].scatter(1, places, network.note(hidden))  # (B, S * A)
        seen = (torch.arange(window, device=token.device) < step).unsqueeze(1)  # (B, 1, S)
        return torch.cat([ids, flat], dim=1), ids.to(torch.int64), Notes(flat.reshape(-1, window, size), seen)
