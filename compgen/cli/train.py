"""`cgen train`: from data to a checkpoint."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from pydantic import BaseModel, model_validator

from compgen.augmenters.registry import find
from compgen.cli.common import (
    LEARNT,
    DataArgument,
    LearnOption,
    ResumeOption,
    SeedOption,
    SetOption,
    load_augmented,
    need_torch,
    part_of,
    say,
)
from compgen.cli.lazy import lazy_group
from compgen.cli.options import option, with_options
from compgen.configuration import check_one_value, load_config
from compgen.data.named import Columns
from compgen.errors import UserError
from compgen.files import as_utf8
from compgen.progress import stages

if TYPE_CHECKING:
    from compgen.data.examples import Dataset

METHODS = {
    "recombine": ("compgen.cli.train:recombine", "Train a generator that recombines training examples."),
    "seq2seq": ("compgen.cli.train:seq2seq", "Train a predictor: an attentive LSTM encoder-decoder."),
    "transformer": ("compgen.cli.train:transformer", "Train a predictor: a Transformer, from scratch."),
    "pretrained": ("compgen.cli.train:pretrained", "Fine-tune a pretrained encoder-decoder such as T5."),
    "csl": ("compgen.cli.grammar:command", "Induce a grammar, which is a generator."),
}

app = typer.Typer(
    cls=lazy_group(METHODS),
    no_args_is_help=True,
    help="Train a generator (recombine, csl) or a predictor (seq2seq, transformer, pretrained). A network's training "
    "logs to OUT.log.jsonl and saves its state to OUT.partial. You can stop it with Ctrl-C and continue it with "
    "--resume.",
)

OutOption = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The checkpoint to write (.pt).")]
ConfigOption = Annotated[
    str, typer.Option("--config", metavar="C", help="The name of a shipped configuration, or a TOML file.")
]
AugmentedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--augmented",
        metavar="DATA",
        help="Also train on these examples, as `cgen augment` or `cgen sample` wrote them. May be repeated.",
    ),
]


class Options(BaseModel):
    """The options of training any network.

    Attributes:
        described: the model of its configuration, as MODULE:NAME, which is imported when it is needed.
    """

    described: ClassVar[str]
    out: OutOption
    config: ConfigOption
    changes: SetOption = None
    split: LearnOption = LEARNT
    seed: SeedOption = 0
    resume: ResumeOption = False
    device: str = option("auto", "Train on cpu, cuda, or auto: CUDA if there is a GPU.")
    threads: int | None = option(None, "Number of CPU threads. By default, one per core.", ge=1, le=1024)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """With --set '?', raise the list of settings before a missing option is an error."""
        if "?" in (values.get("changes") or []):
            known = {name: values.get(name, field.default) for name, field in cls.model_fields.items()}
            asking = cls.model_construct(**known)
            module, _, name = cls.described.partition(":")
            load_config(getattr(import_module(module), name), asking.config, asking.sets())
        return values

    def run(self, train: Any, data: str, columns: Columns, *arguments: Any, **options: Any) -> None:
        """Load DATA, and train by one of the functions of `compgen.api`."""
        from compgen.data.catalog import load

        need_torch("training")
        if self.threads is not None:
            import torch

            torch.set_num_threads(self.threads)
        whole = load(data, columns=columns)
        dataset = part_of(data, whole, *dict.fromkeys(self.split))
        common = {"seed": self.seed, "name": as_utf8(data)}
        common |= {"resume": self.resume, "device": self.device, "split": None}
        options |= common | self.more(dataset, data, whole)
        finished(self.out, train(dataset, *arguments, self.config, self.out, self.sets(), **options))

    def sets(self) -> list[str]:
        """Changes of the configuration, KEY=VALUE each."""
        return self.changes or []

    def more(self, dataset: "Dataset", data: str, whole: "Dataset") -> dict[str, Any]:  # noqa: ARG002
        """Further options of the function; `dataset` is the part of DATA, the `whole`, that is learnt from."""
        return {}


class RecombineOptions(Options):
    """The options of training a generator."""

    described = "compgen.recombine.config:RecombineConfig"
    config: ConfigOption = "auto"
    minutes: float | None = option(
        None,
        "With --config auto: train for about M minutes. If updates are slow, fewer are made, but never too few to "
        "learn anything. By default, as many as take 8 minutes on two cores.",
        gt=0,
        metavar="M",
    )

    def sets(self) -> list[str]:
        """Add the minutes to the changes."""
        if self.minutes is None:
            return super().sets()
        check_one_value(f"--minutes {self.minutes:g}", "minutes", self.minutes, super().sets())
        return [*super().sets(), f"minutes={self.minutes}"]


class Seq2SeqOptions(Options):
    """The options of training a recurrent predictor."""

    described = "compgen.training.config:Seq2SeqConfig"
    augmented: AugmentedOption = None
    augment: str | None = option(
        None,
        "Instead of --augmented: make new examples in each epoch by this method of `cgen augment`.",
        metavar="METHOD",
    )
    augment_config: str | None = option(None, "With --augment: the configuration of the method.", metavar="C")
    augment_set: list[str] = option(
        [], "With --augment: set an option of the method, for instance rounds=3.", metavar="KEY=VALUE"
    )
    hard: bool = option(
        False,
        "With --augment: make four times as many examples and keep a quarter of them, chosen with "
        "probabilities in proportion to the predictor's loss.",
    )
    config: ConfigOption = "seq2seq_small"

    def more(self, dataset: "Dataset", data: str, whole: "Dataset") -> dict[str, Any]:
        """Load the augmented examples, or fit the method that makes them."""
        from compgen.cli.augment import check_written, configured
        from compgen.training.pairs import Fresh

        for name in ("augment_config", "augment_set", "hard"):
            if self.augment is None and getattr(self, name):
                raise UserError(f"--{name.replace('_', '-')}: expected --augment METHOD beside it")
        if self.augment is not None and self.augmented:
            raise UserError("--augmented gives examples, --augment draws them anew in each epoch: not both")
        fresh = None
        if self.augment is not None:
            kind = find(self.augment)
            method = configured(kind, self.augment_config, self.augment_set, kind.each_epoch, beside=self.out)
            own = [self.out.with_name(self.out.name + end) for end in ("", ".log.jsonl", ".partial", ".partial.old")]
            check_written(method, own, data, self.config, self.augment_config, *method.reads())
            with stages() as watch:
                fresh = Fresh(method.fit(dataset, self.seed, watch), self.hard)
        augmented = load_augmented(*self.augmented) if self.augmented else None
        if augmented is not None:
            _say_foreign(dataset, augmented, data)
            _say_leaked(whole, self.split, augmented, data)
        return {"augmented": augmented, "fresh": fresh}


def _say_foreign(dataset: "Dataset", augmented: "Dataset", data: str) -> None:
    """Warn of augmented examples that seem to be made from other data: most have tokens that these do not have.

    For words, tokens of both sides are known on each side: StemCorrupt writes letters of forms into lemmas, too.
    """
    import polars as pl

    from compgen.data.examples import SIDES
    from compgen.data.unimorph import task_of

    words = task_of(dataset) is not None
    for side in SIDES:
        known = pl.concat(dataset.frame[one].explode() for one in (SIDES if words else [side])).unique().implode()
        tokens = augmented.frame.select(pl.col(side).alias("token")).with_row_index("row").explode("token")
        foreign = tokens.filter(~pl.col("token").is_in(known))
        if 2 * (rows := foreign["row"].n_unique()) > len(augmented):
            say(
                f"warning: {rows:,} of {len(augmented):,} augmented examples have {side} tokens that {data} does not "
                f"have, as {foreign['token'][0]!r}: were they made from these data, with the same spaces around signs?"
            )


def _say_leaked(whole: "Dataset", learnt: list[str], augmented: "Dataset", data: str) -> None:
    """Say how many examples of splits that are not learnt from are among the augmented ones nevertheless."""
    import polars as pl

    from compgen.data.checks import rows_of
    from compgen.data.examples import SIDES

    rest = rows_of(whole).filter(~pl.col("split").is_in(learnt))
    found = rest.join(rows_of(augmented), on=SIDES, how="semi").group_by("split", maintain_order=True).len()
    for split, count in found.iter_rows():
        of = f"{count:,} of {whole.splits[split]:,} examples of split {split} of {data} are among the augmented ones"
        say(f"{of}: a score on these partly measures memory (see `cgen data overlap`)")


class TransformerOptions(Seq2SeqOptions):
    """The options of training a Transformer."""

    described = "compgen.training.config:TransformerConfig"
    config: ConfigOption = "transformer_small"


class PretrainedOptions(Seq2SeqOptions):
    """The options of fine-tuning."""

    described = "compgen.training.config:PretrainedConfig"
    model: str = option(
        ..., "The pretrained model: a folder that transformers saved, or a name on the Hugging Face Hub.", metavar="M"
    )
    out: Path = option(..., "The folder to write.", "--output", "-o", metavar="OUT")
    config: ConfigOption = "t5_small"


@with_options
def recombine(data: DataArgument, options: RecombineOptions, columns: Columns) -> None:
    """Train a generator that recombines training examples (R&R: recomb0, recomb1, recomb2 and more).

    By default, settings are found from the data and shown: which examples are similar enough to be combined, how long
    they may be, which tokens are rare, and how many updates there is time for. Change single ones with --set.

    Other shipped configurations: recombine_small (two cores, long-short neighborhoods), recombine_small_around_right
    (two cores, long-long), recombine_morphology_small (two cores, words and their tags), and the paper's sizes for a
    GPU: recombine_scan, recombine_scan_around_right, recombine_morphology, rnnlm_scan. rnnlm_small is a recurrent
    language model of sentences, for `cgen lm`.

    Example: cgen train recombine scan/jump -o recomb2.pt
    """
    from compgen.api import train_generator

    options.run(train_generator, data, columns)


@with_options
def seq2seq(data: DataArgument, options: Seq2SeqOptions, columns: Columns) -> None:
    """Train a predictor: an LSTM encoder-decoder with attention that predicts targets from sources.

    Augmented examples are added to the originals, or drawn with probability p_aug: --set p_aug=0.2. To let the network
    copy from sources, use --set network.copying=true.

    Examples: cgen train seq2seq scan/jump --augmented samples.jsonl -o predictor.pt

        cgen train seq2seq scan/jump --augment lexsym -o predictor.pt
    """
    from compgen.api import train_predictor

    options.run(train_predictor, data, columns)


@with_options
def transformer(data: DataArgument, options: TransformerOptions, columns: Columns) -> None:
    """Train a predictor from scratch: a Transformer that predicts targets from sources.

    Augmented examples are added to the originals, or drawn with probability p_aug: --set p_aug=0.2. Shipped
    configurations: transformer_small (two cores), transformer_relative (the same, with relative positions, which may
    help if tests are longer or deeper than training) and transformer. For inflection, --set network.invariant_tags=true
    tells tags from letters by giving them no position in the source.

    Example: cgen train transformer words.tsv --augmented more.tsv -o predictor.pt
    """
    from compgen.api import train_predictor

    options.run(train_predictor, data, columns, architecture="transformer")


@with_options
def pretrained(data: DataArgument, options: PretrainedOptions, columns: Columns) -> None:
    """Fine-tune a pretrained encoder-decoder such as T5 to predict targets from sources.

    Augmented examples are drawn as often as the originals, or with another probability: --set p_aug=0.2. Shipped
    configurations: t5_small (two cores) and t5, as in Qiu et al. (2022); for SCAN and SMCalFlow, add
    --set optimisation.learning_rate=1e-3. Needs transformers: pip install 'compgen[train,pretrained]'.

    Example: cgen train pretrained geo.tsv --model google-t5/t5-base --config t5 --augmented more.tsv -o t5-geo
    """
    from compgen.api import train_pretrained

    options.run(train_pretrained, data, columns, options.model)


def finished(out: Path, done: dict[str, Any]) -> None:
    """Print what a checkpoint was trained on to standard error, and its path to standard output."""
    from compgen.trained.predictor import EXAMPLES

    other = ("warning", "settings", EXAMPLES)
    figures = {name: value for name, value in done.items() if value is not None and name not in other}
    if "fresh" in figures:
        figures["fresh"] = f"{figures['fresh']['augment']} in each epoch"
    say(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures.items()))
    if "warning" in done:
        say(f"warning: {done['warning']}")
    print(out)
