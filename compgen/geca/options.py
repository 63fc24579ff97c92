"""The options of GECA."""

from typing import Literal

from pydantic import Field

from compgen.augmenters.base import Options

MOST = 2**31 - 1


class GecaOptions(Options):
    """What GECA may cut out, where it may put it, and how new examples are drawn."""

    span: int = Field(1, ge=1, le=MOST, description="Cut out spans of at most this many tokens.")
    spans: int = Field(
        2, ge=1, le=MOST, description="Cut out at most this many spans together; they make up a fragment."
    )
    limit: int | None = Field(
        None,
        ge=1,
        le=MOST,
        description="Cut out only spans that occur at most this many times in the data. By default, no limit.",
    )
    window: int | None = Field(
        None,
        ge=0,
        le=MOST,
        description="Tokens on each side of a gap that must agree for two environments to match. By default, the "
        "whole template.",
    )
    variants: int = Field(
        2,
        ge=1,
        le=MOST,
        description="Make at most this many examples from each template.",
        json_schema_extra={"drawing": True},
    )
    novelty: Literal["both", "source", "pair"] = Field(
        "both", description="What must be new: both source and target, the source, or the pair."
    )
    longest: int | None = Field(
        None,
        ge=1,
        le=MOST,
        description="Leave out training examples with more tokens. By default 100, or more, up to 1,000, if needed to "
        "keep nine in ten.",
    )
    mode: Literal["published", "reference"] = Field(
        "published",
        description="published: the rule in the paper's box. reference: what the authors' program does. Like that "
        "program, both leave out candidates that share a span with every fragment of their template.",
    )
    # `max_adjacencies` in the revision of the reference that made the published SCAN data, where it was 1000.
    reach: int | None = Field(
        None,
        ge=1,
        le=MOST,
        description="Let each fragment license others in at most this many templates. By default, no limit.",
    )
    memory: float = Field(
        4.0,
        ge=0.01,
        le=1e6,
        description="Memory to use; tables that need more go to disk.",
        json_schema_extra={"metavar": "GIB", "running": True},
    )
    shard: str | None = Field(
        None,
        description="Do share I of N of the work. Do the others with the same options elsewhere; all meet in the "
        "folder OUT.shards, and share 1 writes OUT.",
        json_schema_extra={"metavar": "I/N", "running": True},
    )
    engine: Literal["local", "ray"] = Field(
        "local",
        description="Run here, or on a Ray cluster, one share per CPU. All its machines must see OUT's folder.",
        json_schema_extra={"running": True},
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Number of processes; by default up to 16, one per core that there is work for. Or of CPUs with "
        "--engine ray; by default all.",
        json_schema_extra={"running": True},
    )

    @property
    def bytes(self) -> int:
        """The memory to use, in bytes."""
        return int(self.memory * 2**30)
