"""Training configurations, shipped as TOML under the reference's names or given as files.

A file may name another as its `base` and change some of its values. `--set a.b=value` changes one more. Every key is
checked: an unknown or impossible one is an error that names it.
"""

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from compgen.errors import ConfigError
from compgen.models.config import LONGEST, MOST, NetworkConfig, TransformerNetwork

MOST_AUGMENTED = 0.999  # of an epoch, which has each original once: a thousand augmented examples for each
LARGEST = 2**20  # bytes of a configuration file


class OptimisationConfig(BaseModel):
    """How a network's weights are found: by Adam, as in the paper; by Adafactor, where they are pretrained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(8, ge=1, le=MOST)
    steps: int | None = Field(None, ge=1, le=MOST, description="stop after so many updates, whatever `epochs` says")
    batch: int = Field(32, ge=1, le=MOST)
    optimiser: Literal["adam", "adafactor"] = "adam"
    learning_rate: float = Field(0.002, gt=0, allow_inf_nan=False)
    warmup: int = Field(0, ge=0, le=MOST, description="updates in which the rate rises from 0")
    schedule: Literal["plateau", "linear", "constant"] = Field(
        "plateau",
        description="plateau: shrink the rate when held-out loss stalls (reference); linear: fall to 5% of it; or "
        "constant",
    )
    patience: int = Field(4, ge=0, le=MOST, description="plateau: epochs without improvement before the rate shrinks")
    tolerance: float = Field(0.0025, ge=0, description="plateau: what counts as improvement, in held-out score")
    decay: float = Field(0.5, gt=0, lt=1, description="plateau: factor of the rate")
    clip: float | None = Field(1.0, gt=0, description="largest gradient norm; inf for none")
    keep: Literal["best", "last"] = Field("best", description="weights kept: best held-out score, or the last")


class Configuration(BaseModel):
    """What every kind of training has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimisation: OptimisationConfig = OptimisationConfig()
    held_out: float = Field(
        0.1, ge=0, lt=1, description="share of training data held out to watch training; 0 for none"
    )


class PredictorConfig(Configuration):
    """A predictor of targets from sources."""

    p_aug: float | None = Field(
        None,
        ge=0,
        le=MOST_AUGMENTED,
        description="chance that an example is drawn from the augmented data; unset: union",
    )
    held_out_augmented: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of augmented pairs held out, too: they ask for what training data lack, as the test will",
    )
    deduplicate: bool = Field(True, description="train on distinct original pairs (reference)")
    max_length: int | None = Field(
        None, ge=2, le=LONGEST, description="most tokens decoded; unset: twice the longest target seen"
    )


class PretrainedConfig(PredictorConfig):
    """A pretrained encoder-decoder, fine-tuned; defaults as for T5 in Qiu et al. (2022)."""

    p_aug: float | None = Field(
        0.5, ge=0, le=MOST_AUGMENTED, description="chance that an example is drawn from augmented data, if there is any"
    )
    deduplicate: bool = Field(False, description="train on distinct original pairs")
    max_length: int = Field(256, ge=2, le=LONGEST, description="most pieces of a target, its end included")
    source_length: int = Field(512, ge=2, le=LONGEST, description="most pieces of a source, prefix and end included")
    prefix: str = Field("semanticparse: ", description="stands before each source")


class TransformerConfig(PredictorConfig):
    """A Transformer."""

    network: TransformerNetwork = TransformerNetwork()


class Seq2SeqConfig(PredictorConfig):
    """A recurrent network that attends to its source."""

    network: NetworkConfig

    @model_validator(mode="before")
    @classmethod
    def _one_memory(cls, values: dict[str, Any]) -> dict[str, Any]:
        return with_memories(values, 1)

    @model_validator(mode="after")
    def _no_latent(self) -> Self:
        if self.network.latent:
            raise ValueError("a predictor has no latent vector: it answers, it does not vary; set network.latent to 0")
        return self


def with_memories(values: dict[str, Any], memories: int) -> dict[str, Any]:
    """Raw configuration values with the network's number of memories filled in.

    Raises:
        ValueError: another number is given.
    """
    network = values.get("network")
    if isinstance(network, dict) and "memories" in network and network["memories"] != memories:
        raise ValueError(f"network.memories is {memories} here, found {network['memories']!r}: leave it out")
    return values | {"network": network | {"memories": memories}} if isinstance(network, dict) else values


C = TypeVar("C", bound=BaseModel)


def load_config(kind: type[C], name: str, overrides: list[str] | None = None) -> C:
    """The configuration `name` (shipped, or a TOML file) with `a.b=value` overrides, checked as `kind`.

    Raises:
        ConfigError: no such configuration, not TOML, or a key or value that `kind` does not have.
    """
    values = _read(name)
    for override in overrides or []:
        key, separator, text = override.partition("=")
        if not separator:
            raise ConfigError(f"--set {override}: expected KEY=VALUE, for instance optimisation.batch=64")
        *parents, last = key.strip().split(".")
        table = values
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise ConfigError(f"--set {override}: {parent} is a value, not a table")
        table[last] = _value(text.strip())
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        known = [*_settings(kind)]
        problems = "; ".join(_problem(found, known) for found in error.errors()[:5])
        raise ConfigError(f"configuration {name}: {problems}") from error


def _settings(kind: type[BaseModel], table: str = "") -> Iterator[str]:
    """The names of all settings, those of tables with dots, and of the tables themselves."""
    for name, field in kind.model_fields.items():
        yield table + name
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _settings(part, f"{table}{name}.")


def _problem(found: Any, known: Sequence[str]) -> str:
    """One line on what pydantic found: at a place, with the value there, or between settings."""
    if not found["loc"]:
        return str(found["msg"])
    place = ".".join(str(part) for part in found["loc"]) or "''"
    if found["type"] == "extra_forbidden":
        near = [name for name in known if name.endswith("." + place)] or difflib.get_close_matches(place, known, 1)
        return f"{place:.100}: no such setting" + (f"; did you mean {' or '.join(near)}?" if near else "")
    return f"{place}: {found['msg']}, found {_shown(found['input'])}"[:200]


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return "tables too deep in each other"


def shipped() -> list[str]:
    """Names of the configurations that come with the package."""
    folder = resources.files("compgen") / "configs"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def _read(name: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    if name in seen:
        raise ConfigError(f"configuration {name}: its base leads back to it: {' -> '.join([*seen, name])}")
    content = (
        (resources.files("compgen") / "configs" / f"{name}.toml").read_bytes() if name in shipped() else _own(name)
    )
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise ConfigError(
            f"configuration {name}: not TOML that can be read: brackets too deep in each other"
        ) from error
    except ValueError as error:
        raise ConfigError(f"configuration {name}: not TOML: {error}") from error
    base = values.pop("base", None)
    return values if base is None else _merge(_read(str(base), (*seen, name)), values)


def _own(name: str) -> bytes:
    """The content of a user's file."""
    path = Path(name)
    try:
        if not path.is_file():
            raise ConfigError(f"no configuration {name}: expected a TOML file or one of {', '.join(shipped())}")
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"configuration {name}: cannot be read: {getattr(error, 'strerror', error)}") from error
    if len(content) > LARGEST:
        raise ConfigError(f"configuration {name}: more than {LARGEST:,} bytes, expected a TOML file of settings")
    return content


def _merge(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text  # a bare word is a string
