"""The options of GECA."""

from typing import Literal

from pydantic import Field

from compgen.augmenters.base import Options

MOST = 2**31 - 1


class GecaOptions(Options):
    """What GECA may cut out, where it may put it, and how new examples are drawn."""

    span: int = Field(1, ge=1, le=MOST, description="Most tokens of a span.")
    spans: int = Field(2, ge=1, le=MOST, description="Most spans that are cut out together: a fragment.")
    limit: int | None = Field(
        None, ge=1, le=MOST, description="Cut only spans that occur at most so often in the data; by default all."
    )
    window: int | None = Field(
        None,
        ge=0,
        le=MOST,
        description="Tokens on each side of a gap that must agree, the environment; by default the whole template.",
    )
    variants: int = Field(
        2,
        ge=1,
        le=MOST,
        description="Most examples made of one template.",
        json_schema_extra={"drawing": True},
    )
    novelty: Literal["both", "source", "pair"] = Field(
        "both", description="What must be new: both (source and target), source, or pair."
    )
    longest: int | None = Field(
        None,
        ge=1,
        le=MOST,
        description="Leave out examples of more tokens; by default 100, or more to keep nine in ten.",
    )
    mode: Literal["published", "reference"] = Field(
        "published",
        description="published: the paper's boxed rule. reference: what its program does. Both leave out candidates "
        "that keep a span of each fragment that their template has, as the program does.",
    )
    # `max_adjacencies` in the revision of the reference that made the published SCAN data, where it was 1000.
    reach: int | None = Field(
        None, ge=1, le=MOST, description="To how many templates a fragment may bring others; by default all."
    )
    memory: float = Field(
        4.0,
        ge=0.01,
        le=1e6,
        description="Memory to use; past it, tables go to disk.",
        json_schema_extra={"metavar": "GIB", "running": True},
    )
    shard: str | None = Field(
        None,
        description="Do share I of N, together with the others, which are run with the same options elsewhere and meet "
        "in the folder OUT.shards; share 1 writes OUT.",
        json_schema_extra={"metavar": "I/N", "running": True},
    )
    engine: Literal["local", "ray"] = Field(
        "local",
        description="local, or ray: a share for each CPU of a cluster that sees OUT's folder.",
        json_schema_extra={"running": True},
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Processes, or CPUs of the engine ray; by default all, or as many as there is work for.",
        json_schema_extra={"running": True},
    )

    @property
    def bytes(self) -> int:
        """The memory to use, in bytes."""
        return int(self.memory * 2**30)
