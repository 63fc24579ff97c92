"""`compgen train`: from data to a checkpoint."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compgen.cli import grammar
from compgen.cli.common import (
    DataArgument,
    LearnOption,
    ResumeOption,
    SeedOption,
    SetOption,
    console,
    load_split,
    need_torch,
)

if TYPE_CHECKING:
    from compgen.data.examples import Dataset

app = typer.Typer(
    no_args_is_help=True,
    help="Train a generator (recombine, csl) or a predictor (seq2seq, transformer, pretrained). Training of a network "
    "logs to OUT.log.jsonl, saves its state to OUT.partial, stops cleanly on Ctrl-C, and goes on where it stopped with "
    "--resume.",
)

OutOption = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The checkpoint to write (.pt).")]
ConfigOption = Annotated[str, typer.Option("--config", metavar="C", help="A shipped configuration, or a TOML file.")]
AugmentedOption = Annotated[
    str | None, typer.Option("--augmented", metavar="DATA", help="More examples, as `compgen sample` writes them.")
]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto: cuda where there is one.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, max=1024, help="CPU threads; by default all cores.")
]


@app.command()
def recombine(
    data: DataArgument,
    out: OutOption,
    config: ConfigOption = "recombine_small",
    set_: SetOption = None,
    split: LearnOption = "train",
    seed: SeedOption = 0,
    resume: ResumeOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Train a generator that recombines training examples (R&R: recomb0, recomb1, recomb2 and more).

    Shipped configurations: recombine_small (two cores, long-short neighborhoods), recombine_small_around_right
    (two cores, long-long), recombine_morphology_small (two cores, words and their tags), and the paper's sizes for a
    GPU: recombine_scan, recombine_scan_around_right, recombine_morphology, rnnlm_scan. rnnlm_small is a recurrent
    language model of sentences, for `compgen lm`.

    Example: compgen train recombine scan/jump -o recomb2.pt
    """
    from compgen.api import train_generator

    _threads(threads)
    dataset = load_split(data, split)
    done = train_generator(dataset, config, out, set_ or [], seed=seed, name=data, resume=resume, device=device)
    _finished(out, done)


@app.command()
def seq2seq(
    data: DataArgument,
    out: OutOption,
    augmented: AugmentedOption = None,
    config: ConfigOption = "seq2seq_small",
    set_: SetOption = None,
    split: LearnOption = "train",
    seed: SeedOption = 0,
    resume: ResumeOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Train a predictor of targets from sources: an attentive LSTM encoder-decoder, with copying by configuration.

    Augmented examples join the originals, or are drawn with probability p_aug: --set p_aug=0.2.

    Example: compgen train seq2seq scan/jump --augmented samples.jsonl -o predictor.pt
    """
    options = {"seed": seed, "name": data, "resume": resume, "device": device}
    _predictor(data, split, augmented, config, out, set_ or [], threads, options)


@app.command()
def transformer(
    data: DataArgument,
    out: OutOption,
    augmented: AugmentedOption = None,
    config: ConfigOption = "transformer_small",
    set_: SetOption = None,
    split: LearnOption = "train",
    seed: SeedOption = 0,
    resume: ResumeOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Train a predictor of targets from sources: a Transformer, from scratch.

    Augmented examples join the originals, or are drawn with probability p_aug: --set p_aug=0.2. Shipped configurations:
    transformer_small (two cores) and transformer. In data of inflection, tags are told from letters by
    --set network.invariant_tags=true: then they have no place in the source.

    Example: compgen train transformer words.tsv --augmented more.tsv -o predictor.pt
    """
    options = {"seed": seed, "name": data, "resume": resume, "device": device, "architecture": "transformer"}
    _predictor(data, split, augmented, config, out, set_ or [], threads, options)


@app.command()
def pretrained(
    data: DataArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="M", help="A folder as transformers saves models, or a name on the Hugging Face hub."
        ),
    ],
    out: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The folder to write.")],
    augmented: AugmentedOption = None,
    config: ConfigOption = "t5_small",
    set_: SetOption = None,
    split: LearnOption = "train",
    seed: SeedOption = 0,
    resume: ResumeOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Train a predictor of targets from sources: a pretrained encoder-decoder such as T5, fine-tuned.

    Augmented examples are drawn as often as the originals, or with another probability: --set p_aug=0.2. Shipped
    configurations: t5_small (two cores) and t5, as in Qiu et al. (2022): for SCAN and SMCalFlow add
    --set optimisation.learning_rate=1e-3. Needs transformers: pip install 'compgen[train,pretrained]'.

    Example: compgen train pretrained geo.tsv --model google-t5/t5-base --config t5 --augmented more.tsv -o t5-geo
    """
    from compgen.api import train_pretrained

    _threads(threads)
    dataset = load_split(data, split)
    options = {"augmented": _augmented(augmented), "seed": seed, "name": data, "resume": resume, "device": device}
    _finished(out, train_pretrained(dataset, model, config, out, set_ or [], **options))


app.command("csl")(grammar.command)


def _predictor(
    data: str,
    split: str,
    augmented: str | None,
    config: str,
    out: Path,
    overrides: list[str],
    threads: int | None,
    options: dict[str, Any],
) -> None:
    from compgen.api import train_predictor

    _threads(threads)
    dataset = load_split(data, split)
    _finished(out, train_predictor(dataset, config, out, overrides, augmented=_augmented(augmented), **options))


def _augmented(data: str | None) -> "Dataset | None":
    from compgen.data.catalog import load

    return load(data) if data is not None else None


def _threads(threads: int | None) -> None:
    need_torch("training")
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def _finished(out: Path, done: dict[str, Any]) -> None:
    figures = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in done.items() if value is not None)
    console().print(figures, highlight=False, markup=False)
    print(out)
