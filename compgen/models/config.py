"""Configurations of networks: shape and regularisation."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

# The limits of all configurations. They are far above useful values and keep arithmetic within 64 bits. Memory is
# checked when a network is built (`training.memory`).
WIDEST = 2**16  # units of a layer, size of an embedding, clip of positions, tokens attended to
LONGEST = 2**20  # tokens of a sequence
MOST = 2**40  # epochs, updates, examples of a batch, occurrences of a token


class TransformerNetwork(BaseModel):
    """Shape and dropout of a Transformer (Samir and Silfverberg 2023, appendix A; sizes of Wu et al. 2021)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(4, ge=1, le=64, description="Number of layers of the encoder, and of the decoder.")
    heads: int = Field(4, ge=1, le=WIDEST, description="Number of heads of each attention.")
    size: int = Field(256, ge=2, le=WIDEST, description="Size of embeddings and states.")
    inner: int = Field(1024, ge=1, le=WIDEST, description="Number of units in feed-forward layers.")
    dropout: float = Field(0.3, ge=0, le=0.99, description="Dropout probability, rounded to 1/256.")
    attention_dropout: float = Field(0.1, ge=0, le=0.99, description="Dropout probability, rounded to 1/256.")
    label_smoothing: float = Field(0.2, ge=0, lt=1, description="Spread this share of the loss over all tokens.")
    invariant_tags: bool = Field(False, description="Give the tags of a source no position (Wu et al. 2021).")
    relative: int = Field(
        0,
        ge=0,
        le=WIDEST,
        description="Largest distance between tokens of a side that attention can tell (Shaw et al. 2018); tokens "
        "then have no position of their own. 0: they have one (sinusoids).",
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.size % self.heads or self.size % 2:
            raise ValueError(f"size must be even and a multiple of heads: found {self.size} and {self.heads} heads")
        if self.relative and self.invariant_tags:
            raise ValueError(
                f"relative = 0 or invariant_tags = false (relative is {self.relative}): tags without a position have "
                "no distance to other tokens"
            )
        return self


class NetworkConfig(BaseModel):
    """Shape and dropout of an encoder-decoder over `memories` token sequences (docs/julia-map.md has the letters)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    memories: int = Field(2, ge=0, le=8, description="sequences attended to: prototypes, or 1 source, or 0")
    hidden: int = Field(512, ge=1, le=WIDEST, description="decoder LSTM units")
    encoder_hidden: int = Field(512, ge=1, le=WIDEST, description="encoder LSTM units in each direction")
    embedding: int = Field(64, ge=1, le=WIDEST, description="token embedding size")
    attention: int = Field(128, ge=1, le=WIDEST, description="query, key and value size")
    positions: int = Field(16, ge=0, le=WIDEST, description="clip of relative positions; 0 for none")
    activation: Literal["tanh", "linear"] = Field("tanh", description="on queries, keys and values")
    output: int = Field(64, ge=1, le=WIDEST, description="size of the combined output u, which input feeding returns")
    feed: bool = Field(True, description="feed u back as input (needs a step-by-step loop in training)")
    tied: bool = Field(True, description="output matrix = embedding matrix (needs output = embedding)")
    copying: bool = Field(True, description="copy from memories, and from tokens written if `own`")
    mixing: Literal["joint", "gate", "word"] = Field(
        "joint",
        description="mixture of copying and writing: one softmax over both (appendix A.3), a gate (equations 16 "
        "and 17), or the probability of a word <copy> (the reference on morphology)",
    )
    own: int = Field(
        0, ge=0, le=WIDEST, description="number of last tokens written to attend to (equations 10 and 12); 0 for none"
    )
    encoder_shared: bool = Field(True, description="one encoder for all memories (reference) or one each (paper)")
    initial: Literal["zeros", "encoder"] = Field("zeros", description="first decoder state")
    latent: int = Field(0, ge=0, le=1024, description="size Z of the latent edit vector z (appendix F); 0 for none")
    latent_concentration: float = Field(25.0, gt=0, le=1000, description="kappa of its direction in training")
    latent_norm: float = Field(10.0, gt=0, allow_inf_nan=False, description="its largest norm (mu_max)")
    latent_width: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="width of its norm's distribution in training (epsilon)"
    )
    embedding_dropout: float = Field(0.5, ge=0, le=0.99, description="Dropout probability, rounded to 1/256.")
    output_dropout: float = Field(0.7, ge=0, le=0.99, description="Dropout probability, rounded to 1/256.")
    feed_dropout: float = Field(0.5, ge=0, le=0.99, description="on u, before it is fed back; rounded to 1/256")
    write_dropout: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="probability that a target loses its vocabulary slot in training, so that it must be copied",
    )
    token_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="probability that a token type is unknown throughout a training row: embedded as <unk> and only "
        "to be copied; not in the paper",
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.tied and self.output != self.embedding:
            raise ValueError(f"tied needs output = embedding, found output {self.output}, embedding {self.embedding}")
        if self.memories == 0 and (self.feed or self.initial == "encoder" or (self.copying and not self.own)):
            raise ValueError(
                "memories = 0 leaves nothing to copy, attend to or start from: set copying and feed to false"
            )
        if self.mixing != "joint" and not self.copying:
            raise ValueError(f"mixing = {self.mixing} weighs copying against writing: set copying to true")
        if self.latent == 1 or self.latent_width > self.latent_norm:
            raise ValueError(
                f"a latent vector has two numbers or more, and a latent_width of at most latent_norm: found "
                f"{self.latent}, {self.latent_width:g} and {self.latent_norm:g}"
            )
        if self.token_dropout and not self.copying:
            raise ValueError("token_dropout needs copying: an unknown token can only be copied")
        return self
