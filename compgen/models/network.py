"""The one network of the package: an LSTM decoder over n memories (R&R, appendix A).

A generator writes a whole example `source → target` while it attends to n prototypes; a predictor writes the target
while it attends to one memory, the source. Both are this class with different configurations, so both train, decode
and export by the same code. `advance` is one step of the decoder, in decoding (`compgen.models.decoding`) and, as the
definition, with input feeding in training (`compgen.models.teacher_forcing`).

Symbols: B batch, n memories, T memory tokens, L decoder steps, V vocabulary, H hidden, F size of the output u, S tokens
written that a step may attend to, A attention size, D last encoder state, Z size of the latent vector.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compgen.data.vocabulary import PAD_ID, SPECIALS, UNK_ID
from compgen.models.attention import MASKED, Attention
from compgen.models.choosing import written_greedily
from compgen.models.config import NetworkConfig
from compgen.models.copying import Mixture, OwnAttention
from compgen.models.dropout import Dropout
from compgen.models.embedding import Embedding
from compgen.models.encoder import Encoder, init_lstm
from compgen.models.latent import Posterior
from compgen.models.products import Linear, exact
from compgen.models.recurrence import Memory, Notes, Recurrence, Terms, lstm_cell
from compgen.models.teacher_forcing import attended
from compgen.models.trainable import Trainable


class Network(Trainable):
    """Encoders, attention, an LSTM decoder and an output that writes words or copies them."""

    architecture = "recurrent"
    shown: Tensor  # (V) which embedding each token has: its own, or the unknown token's

    def __init__(self, config: NetworkConfig, vocabulary: int) -> None:
        super().__init__()
        c = config
        self.memories, self.feed, self.copying, self.window = c.memories, c.feed, c.copying, c.own
        self.hidden, self.output, self.vocabulary = c.hidden, c.output, vocabulary
        self.pad = PAD_ID  # an attribute, because TorchScript does not read a module's globals
        self.write_dropout, self.token_dropout = c.write_dropout, c.token_dropout
        self.register_buffer("shown", torch.arange(vocabulary, device="cpu"))  # on meta, a second of imports
        self.embedding = Embedding(vocabulary, c.embedding)
        nn.init.xavier_uniform_(self.embedding.weight)
        encoders = min(c.memories, 1) if c.encoder_shared else c.memories
        self.encoders = nn.ModuleList([Encoder(c.embedding, c.encoder_hidden) for _ in range(encoders)])
        read = c.embedding + c.latent + (c.output if c.feed else 0)
        self.lstm = nn.LSTM(read, c.hidden, batch_first=True)
        init_lstm(self.lstm)
        # What a configuration does not use is None, which TorchScript leaves out at compile time.
        self.attention: Attention | None = None
        if c.memories:
            self.attention = Attention(
                c.memories, c.hidden + read, 2 * c.encoder_hidden, c.attention, c.positions, c.activation
            )
        self.latent, self.latent_norm = c.latent, c.latent_norm
        self.posterior: Posterior | None = None
        if c.latent:
            edit = (c.latent, c.latent_concentration, c.latent_norm, c.latent_width)
            self.posterior = Posterior(c.memories, c.embedding, c.encoder_hidden, *edit)
        self.bridge = nn.Linear(2 * c.encoder_hidden, 2 * c.hidden) if c.initial == "encoder" else None
        self.own: OwnAttention | None = OwnAttention(c.hidden, c.attention) if c.own else None
        sources = c.memories + (c.own > 0)
        self.mixture: Mixture | None = Mixture(c.mixing, c.hidden, c.output, sources) if c.copying else None
        # What a step hands to the next beside the LSTM's state: u, z, the last tokens written, and their notes.
        self.noted = c.attention
        self.carried = c.output + c.latent + c.own * (1 + self.noted)
        self.combine = Linear(c.hidden + sources * c.attention, c.output)
        self.project = None if c.tied else Linear(c.output, vocabulary)
        self.embedding_dropout = Dropout(c.embedding_dropout)
        self.output_dropout = Dropout(c.output_dropout)
        self.feed_dropout = Dropout(c.feed_dropout)

    def treat_as_unknown(self, tokens: list[int]) -> None:
        """Embed these tokens as the unknown one from now on: they are too rare for an embedding of their own.

        Copying still tells them apart. With `token_dropout` training shows what to do with such a token.
        """
        self.shown[tokens] = UNK_ID

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings (..., E) of tokens (...), under dropout."""
        embedded: Tensor = self.embedding_dropout(self.embedding(self.shown[tokens]))
        return embedded

    # -- memories -------------------------------------------------------------------------------------------------

    @torch.jit.export
    def encode(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode sequences (B, T), padded with 0, apart from any decoding, so that each prototype is encoded only once.

        Returns:
            keys and values (B, n, T, A) of each sequence in each of the n roles, and last encoder states (B, n, D).
        """
        lengths = (tokens != self.pad).sum(dim=1)
        embedded = self.embed(tokens)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        finals: list[Tensor] = []
        attention = self.attention
        assert attention is not None, "a network without memories encodes nothing"
        for encoder in self.encoders:
            states, final = encoder(embedded, lengths)
            key, value = attention.prepare(states)
            keys.append(key)
            values.append(value)
            finals.append(final)
        if len(finals) == 1:
            final = finals[0].unsqueeze(1).expand(tokens.shape[0], self.memories, finals[0].shape[1])
            return keys[0], values[0], final
        own_keys = [keys[slot][:, slot] for slot in range(self.memories)]
        own_values = [values[slot][:, slot] for slot in range(self.memories)]
        return torch.stack(own_keys, dim=1), torch.stack(own_values, dim=1), torch.stack(finals, dim=1)

    @torch.jit.export
    def recall(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode n memories a row, tokens (B, n, T), each in its role: keys, values (B, n, T, A), finals (B, n, D)."""
        keys: list[Tensor] = []
        values: list[Tensor] = []
        finals: list[Tensor] = []
        attention = self.attention
        assert attention is not None, "a network without memories recalls nothing"
        for slot in range(tokens.shape[1]):
            lengths = (tokens[:, slot] != self.pad).sum(dim=1)
            # Roles differ in length (a second prototype may be a few tokens): no encoder runs over another's padding.
            longest = int(lengths.max())
            embedded = self.embed(tokens[:, slot, :longest])
            rest = [0, 0, 0, tokens.shape[2] - longest]
            for number, encoder in enumerate(self.encoders):
                if len(self.encoders) == 1 or number == slot:
                    states, final = encoder(embedded, lengths)
                    key, value = attention.prepare_one(states, slot)
                    keys.append(F.pad(key, rest))
                    values.append(F.pad(value, rest))
                    finals.append(final)
        return torch.stack(keys, dim=1), torch.stack(values, dim=1), torch.stack(finals, dim=1)

    @torch.jit.export
    def start(self, final: Tensor) -> tuple[Tensor, Tensor]:
        """First hidden and cell state (B, H) from last encoder states (B, n, D); zeros by configuration."""
        bridge = self.bridge
        if bridge is not None:
            hidden, cell = torch.tanh(bridge(final.mean(dim=1))).chunk(2, dim=1)
            return hidden, cell
        zeros = torch.zeros((final.shape[0], self.hidden), dtype=final.dtype, device=final.device)
        return zeros, zeros

    @torch.jit.export
    def begin(self, memory_tokens: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The start of decoding over memories (B, n, T): keys and values (B, n, T, A), finals (B, n, D), and the first
        hidden and cell state (B, H). Without memories the first three are empty.
        """
        weight, rows = self.embedding.weight, memory_tokens.shape[0]
        keys = weight.new_zeros((rows, 0, 0, 0))
        values, final = keys, weight.new_zeros((rows, 0, 0))
        if self.memories > 0:
            keys, values, final = self.recall(memory_tokens)
        hidden, cell = self.start(final)
        return keys, values, final, hidden, cell

    # -- decoding -------------------------------------------------------------------------------------------------

    def by_operand(self) -> tuple[Terms, Terms, Terms, Terms, Terms]:
        """The maps to gates and to queries, split by what they multiply.

        Returns:
            biases (4H), (nA), and weights of an embedding (4H, E), (nA, E), of the latent vector (4H, Z), (nA, Z), of
            the output fed back (4H, F), (nA, F), and of the hidden state (4H, H), (nA, H). Without input feeding F
            is 0.
        """
        from_input, from_hidden, input_bias, hidden_bias = list(self.lstm.parameters())
        size, z = self.embedding.embedding_dim, self.latent
        token, latent, fed = torch.split(from_input, [size, z, from_input.shape[1] - size - z], dim=1)
        gates = input_bias + hidden_bias, token, latent, fed, from_hidden
        if self.attention is None:
            nothing = from_input.new_zeros(0)
            queries = nothing, *(nothing.reshape(0, some.shape[1]) for some in gates[1:])
        else:
            query = self.attention.query
            sizes = [self.hidden, size, z, query.weight.shape[1] - self.hidden - size - z]
            hidden, token, latent, fed = torch.split(query.weight, sizes, dim=1)
            queries = query.bias, token, latent, fed, hidden
        biases, tokens, latents, feds, hiddens = map(Terms, gates, queries)
        return biases, tokens, latents, feds, hiddens

    def for_steps(self) -> tuple[Terms, Terms, Terms, Terms]:
        """The maps of `by_operand` as single steps multiply by them: transposed, and fed and hidden state joined.

        Returns:
            biases, and weights of an embedding, as in `by_operand`; weights (Z, 4H), (Z, nA) of the latent vector;
            weights (F + H, 4H), (F + H, nA) of the state [fed, hidden].
        """
        biases, tokens, latents, feds, hiddens = self.by_operand()
        states = Terms(*(torch.cat(pair, dim=1).t().contiguous() for pair in zip(feds, hiddens, strict=True)))
        return biases, tokens, Terms(*(weight.t().contiguous() for weight in latents)), states

    def advance(
        self, terms: Terms, weights: Terms, state: Recurrence, memory: Memory, notes: Notes, step: Tensor
    ) -> tuple[Recurrence, list[Tensor]]:
        """Take one step of the decoder.

        Args:
            terms: (B, 4H), (B, nA), what the token read and the latent vector add to gates and queries.
            weights: (F + H, 4H), (F + H, nA), those of the state from `for_steps`.
            state: what the step before has left; its `fed` after dropout.
            memory: from `recall`.
            notes: of tokens written, with L = 1.
            step: (B, 1) or (1, 1), the number of this step, from 0.

        Returns:
            the new state, with u (B, F) as `fed`, and copy scores as `attend` gives them, with L = 1.
        """
        queries = terms.queries
        read = torch.cat([state.fed, state.hidden], dim=1) if self.feed else state.hidden  # (B, F + H)
        hidden, cell = lstm_cell(torch.addmm(terms.gates, read, weights.gates), state.cell)
        if self.attention is not None:
            read = torch.cat([state.fed, hidden], dim=1) if self.feed else hidden
            queries = torch.addmm(queries, read, weights.queries)
        u, scores = self.attend(hidden.unsqueeze(1), queries.unsqueeze(1), memory, notes, step)
        return Recurrence(hidden, cell, u[:, 0]), scores

    def attend(
        self, hidden: Tensor, query: Tensor, memory: Memory, notes: Notes, step: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """Combine LSTM states (B, L, H) with what they find in memories and in what is written.

        Args:
            hidden, query: (B, L, H) and (B, L, nA).
            memory, notes: what to attend to.
            step: (B, L) or (1, L), the number of each step.

        Returns:
            u (B, L, F), and copy scores of each memory (B, L, T), then of what is written (B, L, S).
        """
        found = [self.output_dropout(hidden)]
        scores: list[Tensor] = []
        attention = self.attention
        if attention is not None:
            queries = attention.queries(query)  # (B, n, L, A)
            context, each = attention(queries, memory.keys, memory.values, memory.inside, step)
            found.append(context)  # (B, L, nA)
            scores.extend([each[:, slot] for slot in range(self.memories)])
        own = self.own
        if own is not None:
            context, score = own(hidden, notes.notes, notes.seen)
            found.append(context)  # (B, L, A)
            scores.append(score)
        return self.combine(torch.cat(found, dim=2)), scores

    def note(self, hidden: Tensor) -> Tensor:
        """The notes (..., A) kept of the states (..., H) that write tokens, to attend to later."""
        own = self.own
        assert own is not None, "only a network that attends to what it writes has notes"
        noted: Tensor = own.note(hidden)
        return noted

    def write(self, u: Tensor) -> Tensor:
        """Vocabulary logits (B, L, V) of outputs u (B, L, F)."""
        project = self.project
        if project is not None:
            logits: Tensor = project(u)
            return logits
        return torch.matmul(u, self.embedding.weight.t())

    def slots(self, hidden: Tensor, u: Tensor, scores: list[Tensor]) -> Tensor:
        """Log-probabilities of words and copies: (B, L, V) and behind them, if it copies, those of each source's slots.

        Args:
            hidden, u: (B, L, H), (B, L, F).
            scores: from `attend`.
        """
        logits = self.write(u)
        mixture = self.mixture
        if mixture is not None:
            shares: Tensor = mixture(hidden, u, logits, scores)
            return shares
        return torch.log_softmax(logits, dim=2)

    def merge(self, slots: Tensor, tokens: Tensor) -> Tensor:
        """Log-probabilities (..., V) of words, the copies of each word added to it (appendix A.3).

        Args:
            slots: (..., V + slots that copy) from `slots`.
            tokens: (..., slots that copy), the token in each of them.
        """
        if not self.copying:
            return slots
        shares = torch.exp(slots)
        words = shares[..., : self.vocabulary]
        return torch.log(words.scatter_add(-1, tokens, shares[..., self.vocabulary :]) + 1e-20)

    @torch.jit.unused  # training alone goes through here
    def forward(self, inputs: Tensor, memory_tokens: Tensor, latent: Tensor | None = None) -> Tensor:
        """Teacher-forced decoding of inputs (B, L) over memories (B, n, T): (B, L, V + slots), as `slots` says.

        The slots of what is written are those of the inputs but the first, and one more that is never used: (L). Unless
        it is given, z (B, Z) is drawn for the inputs.
        """
        hidden, u, scores = attended(self, inputs, memory_tokens, latent)
        with torch.autocast("cpu", enabled=False):  # log-probabilities need more digits than bfloat16 has
            return self.slots(exact(hidden), exact(u), [exact(score) for score in scores])

    # -- training -------------------------------------------------------------------------------------------------

    def log_likelihood(self, sequences: Tensor, memory_tokens: Tensor, latent: Tensor | None = None) -> Tensor:
        """Log-probability (B, L - 1) of each token after the first, 0 at padding.

        Args:
            sequences: (B, L) ids that begin with the start symbol and end with the end symbol, padded with 0.
            memory_tokens: (B, n, T).
            latent: (B, Z); drawn for the sequences if it is not given and the network has it.

        A token's probability is the sum over its vocabulary slot and every memory slot that holds it. In training each
        vocabulary slot is closed with probability `write_dropout`, and with probability `token_dropout` a token type
        is unknown in a whole row; a token left without any slot counts 0.
        """
        targets = sequences[:, 1:]
        known = torch.ones((len(targets), self.vocabulary), dtype=torch.bool, device=targets.device)
        if self.training and self.token_dropout > 0:
            known = torch.rand(known.shape, device=targets.device) >= self.token_dropout
            known[:, : len(SPECIALS)] = True
        slots = self(_hide(sequences[:, :-1], known), _hide(memory_tokens, known), latent)
        written: Tensor = slots.gather(2, targets.unsqueeze(2)).squeeze(2)  # (B, L - 1)
        real = targets != PAD_ID
        if not self.copying:
            return written * real
        copies = slots[:, :, self.vocabulary :]
        same = self._copied(memory_tokens, targets).unsqueeze(1) == targets.unsqueeze(2)
        if self.training:
            closed = (torch.rand_like(written) < self.write_dropout) | ~known.gather(1, targets)
            written = written.masked_fill(closed, MASKED)
            real = real & (~closed | (same & (copies > 0.5 * MASKED)).any(dim=2))
        found = torch.cat([written.unsqueeze(2), copies.masked_fill(~same, MASKED)], dim=2)
        likelihood: Tensor = _log_sum_exp(found) * real
        return likelihood

    def _copied(self, memory_tokens: Tensor, written: Tensor) -> Tensor:
        """The tokens in slots that copy: of memories (B, n, T), and those written (B, L) if it looks at them."""
        memories = memory_tokens.flatten(1)
        return memories if self.own is None else torch.cat([memories, written], dim=1)

    def loss(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """The negative log-likelihood (B, L - 1), which training minimises."""
        return -self.log_likelihood(sequences, memory_tokens)

    def predicts(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Whether greedy decoding from the first token of each sequence (B, L) would write the rest: (B), boolean."""
        targets = sequences[:, 1:]
        tokens = self._copied(memory_tokens, targets).unsqueeze(1).expand(-1, targets.shape[1], -1)
        return written_greedily(self.merge(self(sequences[:, :-1], memory_tokens), tokens), targets)


def _log_sum_exp(x: Tensor) -> Tensor:
    """The logarithm of the sum of exponentials along the last dimension.

    For x with entries of MASKED this is many times as fast as `torch.logsumexp`, which takes exponentials by MKL: those
    that come to 0 take it fifty times as long as others.
    """
    largest = x.argmax(dim=-1, keepdim=True)
    return (x.gather(-1, largest) - torch.log_softmax(x, dim=-1).gather(-1, largest)).squeeze(-1)


def _hide(tokens: Tensor, known: Tensor) -> Tensor:
    """Tokens (B, ...) with those that are not known (B, V) in their row replaced by the unknown token."""
    flat = tokens.reshape(tokens.shape[0], -1)
    return torch.where(known.gather(1, flat), flat, UNK_ID).reshape(tokens.shape)
