"""One decoding step with its choice of token: what sampling, TorchScript and ONNX all run.

The choice is by inverse CDF from a uniform number that is passed in, so that a sample depends on its address alone.
Each half of an example has its temperature: T > 0 draws from p^(1/T), T = 0 takes the most probable token. The
reference's "mixed" decoding is (T, 0): draw the source, then answer greedily.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compgen.data.vocabulary import NEVER_FIRST, NEVER_WRITTEN, PAD_ID, SEP_ID
from compgen.models.network import Network

BANNED = -1e9


class DecodingStep(nn.Module):
    """One step of a network in evaluation mode, and the choice of the next token.

    What a token gives to gates and queries is looked up in tables made here, once, of the network's weights as they
    are now. `network` is public: its `encode`, `recall` and `start` come before any step.
    """

    banned: Tensor  # (2, V) tokens that may not come: at later steps, and at the first
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
        self.pad, self.separator, self.low = PAD_ID, SEP_ID, BANNED
        banned = torch.zeros(2, network.vocabulary, dtype=torch.bool)
        banned[0, list(NEVER_WRITTEN)] = True
        banned[1, list(NEVER_FIRST)] = True
        self.register_buffer("banned", banned, persistent=False)
        with torch.no_grad():
            embedded = network.embedding(network.shown)  # (V, E)
            token_gates, gate_bias, state_gates, token_queries, query_bias, state_queries = network.by_operand()
            self.register_buffer("token_gates", F.linear(embedded, token_gates, gate_bias), persistent=False)
            self.register_buffer("token_queries", F.linear(embedded, token_queries, query_bias), persistent=False)
            latent_gates, latent_queries = network.by_latent()
            self.register_buffer("latent_gates", latent_gates.detach(), persistent=False)
            self.register_buffer("latent_queries", latent_queries.detach(), persistent=False)
            self.register_buffer("state_gates", state_gates.detach(), persistent=False)
            self.register_buffer("state_queries", state_queries.detach(), persistent=False)

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
        """Advance every row by one token.

        Args:
            token, position, half: (B) ids, step numbers from 0, and 0 before the separator was written, 1 after.
            hidden, cell: (B, H), the LSTM's state.
            fed: (B, network.carried), what else the step before has left: its output u (F), the latent vector (Z), and
                if the network looks at what it writes, the last S tokens written and their notes (S * A), in a ring. At
                first all zeros but the latent vector.
            uniform: (B) numbers in [0, 1).
            temperature: (2), of the source half and of the target half.
            keys, values, memory_tokens: (B, n, T, A), (B, n, T, A), (B, n, T).

        Returns:
            next token (B), log-probabilities (B, V) before bans and temperature, next half (B), next hidden, cell, fed.
        """
        network = self.network
        tokens, step = memory_tokens.flatten(1), position.unsqueeze(1)
        after = network.output + network.latent
        z, ids, ring = (
            fed[:, network.output : after],
            fed[:, after : after + network.window],
            fed[:, after + network.window :],
        )
        notes, noted = keys, step > 0  # without a ring these have no part
        if network.window > 0:
            # The token read is what the state before this step has written. At first there is none, and what is put
            # into the last place is not looked at before it is overwritten.
            place, size = (step - 1) % network.window, network.noted
            ids = ids.scatter(1, place, token.to(fed.dtype).unsqueeze(1))
            ring = ring.scatter(1, place * size + torch.arange(size, device=token.device), network.note(hidden))
            written = ids.to(torch.int64)
            tokens = torch.cat([tokens, written], dim=1) if network.memories > 0 else written
            notes = ring.reshape(-1, network.window, size)
            noted = (torch.arange(network.window, device=token.device) < step).unsqueeze(1)
        gates, query = self.token_gates[token], self.token_queries[token]
        if network.latent > 0:
            gates, query = gates + z @ self.latent_gates, query + z @ self.latent_queries
        hidden, cell, u, scores = network.advance(
            gates, query, self.state_gates, self.state_queries,
            hidden, cell, fed[:, : network.output], keys, values, memory_tokens != self.pad, step, notes, noted,
        )  # fmt: skip
        log_probs = network.merge(network.slots(hidden.unsqueeze(1), u, scores)[:, 0], tokens)
        banned = self.banned[(position == 0).to(torch.int64)]
        allowed = torch.where(banned, torch.full_like(log_probs, self.low), log_probs)
        warmth = temperature[half].unsqueeze(1)  # (B, 1)
        heat = torch.where(warmth > 0, warmth, torch.ones_like(warmth))
        cdf = torch.cumsum(torch.softmax(allowed / heat, dim=1), dim=1)
        edge = uniform.unsqueeze(1) * cdf[:, -1:]
        drawn = (cdf <= edge).to(torch.int64).sum(dim=1).clamp(max=log_probs.shape[1] - 1)
        chosen = torch.where(warmth[:, 0] > 0, drawn, allowed.argmax(dim=1))
        half = torch.maximum(half, (chosen == self.separator).to(torch.int64))
        following = u[:, 0]
        if network.carried > network.output:
            following = torch.cat([following, z, ids, ring], dim=1)
        return chosen, log_probs, half, hidden, cell, following
