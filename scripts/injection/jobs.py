"""The commands that faults are injected into, and the small data, models and texts that they read."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

NETWORK = ("hidden=8", "encoder_hidden=6", "embedding=6", "output=6", "attention=5")
STEPS = ("optimisation.steps=6", "optimisation.batch=4", "optimisation.warmup=1", "held_out=0.0")
COVER = ("neighborhood.cover=false", "neighborhood.delta=0.1")
GRAMMAR = ("--config", "csl_scan", "--set", "training.steps=5", "--set", "drawing.longest=30")


@dataclass(frozen=True)
class Job:
    """A command.

    Attributes:
        name: of the job.
        words: after `cgen`, or of `program`; {in} and {out} stand for the folders of what is read and written.
        resume: more words with which it goes on, if `journal` is there or none is named; without any, the same command.
        journal: ends the name of a file in {out} that an interrupted run leaves.
        journals: names, as a regular expression, of what is in {out} until a run ends.
        grows: {out} itself is what it writes, file by file.
        program: another program than Python.
        settings: values of modules, "module:name", that are set before it runs.
        leap: see shim.c.
        temporary: its temporary files are watched, too; ONNX Runtime has some of its own there.
        memory: allocations are failed, too.
        kenlm: it needs KenLM's programs.
        slow: left out unless it is asked for by name, or all are.
        careless: it is no command, and writes as none should; left out unless it is asked for by name.
    """

    name: str
    words: tuple[str, ...]
    resume: tuple[str, ...] = ()
    journal: str = ""
    journals: str = r".*\.(partial(\.json|\.old)?|log\.jsonl)|more\.jsonl\.shards"
    grows: bool = False
    program: Path | None = None
    settings: tuple[tuple[str, object], ...] = ()
    leap: int = 0
    temporary: bool = True
    memory: bool = False
    kenlm: bool = False
    slow: bool = False
    careless: bool = False


def _sets(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in ("--set", value))


def _augment(method: str, *more: str, data: str = "pairs.tsv", name: str = "", **options: Any) -> Job:
    words = ("augment", method, "{in}/" + data, "-n", "5", *more, "-o", "{out}/more.jsonl")
    return Job(name or f"augment {method}", words, **options)


OFTEN = (("compgen.trained.run:SAVE_EVERY", 0.0), ("compgen.training.loop:SAVE_EVERY", 0.0))
TINY_NETWORK = tuple(f"network.{value}" for value in NETWORK)
RECOMBINE = (
    "--config",
    "recombine_small",
    *_sets((*TINY_NETWORK, *STEPS, *COVER, "unknown_below=0")),
    "--device",
    "cpu",
)
SEQ2SEQ = _sets((*TINY_NETWORK, *STEPS))
TRAINING: dict[str, Any] = {"resume": ("--resume",), "journal": ".partial", "settings": OFTEN}
SAMPLE = ("{in}/bundle", "--draws", "12", "--filter", "unique", "--batch", "3", "--workers", "1")
TEXTS = ("--validation", "{in}/validation.txt")


def jobs(runner: Path | None) -> list[Job]:
    """All jobs; those of the C++ runner where it is built."""
    sampling: dict[str, Any] = {"resume": ("--resume",), "settings": OFTEN, "temporary": False}
    found = [
        Job("sample", ("sample", *SAMPLE, "-o", "{out}/samples.jsonl"), **sampling),
        Job("sample .parquet", ("sample", *SAMPLE, "-o", "{out}/samples.parquet"), **sampling),
        Job("sample --vote", ("sample", *SAMPLE[:3], "--vote", "-o", "{out}/samples.tsv.gz"), temporary=False),
        Job(
            "train recombine", ("train", "recombine", "{in}/pairs.tsv", *RECOMBINE, "-o", "{out}/model.pt"), **TRAINING
        ),
        Job("train seq2seq", ("train", "seq2seq", "{in}/pairs.tsv", *SEQ2SEQ, "-o", "{out}/model.pt"), **TRAINING),
        Job("train csl", ("train", "csl", "{in}/pairs.tsv", *GRAMMAR, "-o", "{out}/model.grammar")),
        Job(
            "export of a grammar",
            ("export", "{in}/model.grammar", "-o", "{out}/bundle", "--samples", "10"),
            temporary=False,
        ),
        Job(
            "export of a network",
            ("export", "{in}/model.pt", "-o", "{out}/bundle", "--samples", "10"),
            temporary=False,
            slow=True,
        ),
        Job("predict", ("predict", "{in}/predictor.pt", "{in}/sources.txt", "-o", "{out}/answers.tsv")),
        Job("predict of .gz", ("predict", "{in}/predictor.pt", "{in}/sources.txt", "-o", "{out}/answers.tsv.gz")),
        Job("data write", ("data", "write", "{in}/pairs.tsv", "-o", "{out}/pairs.jsonl.gz")),
        Job("data write of a folder", ("data", "write", "{in}/pairs.tsv", "-o", "{out}/pairs")),
        Job("select", ("select", "{in}/pairs.tsv", "-n", "4", "--by", "umt", "-o", "{out}/some.jsonl")),
        _augment("recombine", *RECOMBINE[:-2], "--set", "filters=[]", **TRAINING),
        _augment("geca"),
        _augment("geca", "--shard", "1/1", name="augment geca by a share"),
        _augment("csl", *GRAMMAR, "--rules", "{out}/rules.txt"),
        _augment("substitute"),
        _augment("lexsym"),
        _augment("stemcorrupt", data="words.tsv"),
        _augment("concat"),
        _augment("resample"),
    ]
    if runner is not None:
        native: dict[str, Any] = {"resume": ("--resume",), "program": runner, "leap": 3, "temporary": False}
        found += [
            Job("compgen-sample", (*SAMPLE, "-o", "{out}/samples.jsonl"), memory=True, **native),
            Job("compgen-sample .gz", (*SAMPLE[:3], "-o", "{out}/samples.tsv.gz"), program=runner, temporary=False),
            Job("compgen-sample of a grammar", ("{in}/rules", *SAMPLE[1:], "-o", "{out}/samples.tsv"), **native),
        ]
    shell = "printf one > {out}/file; printf two >> {out}/file"
    found.append(Job("a careless program", ("-c", shell), program=Path("/bin/sh"), careless=True))
    lm = ("--order", "3", "--discount-fallback")
    small = (*TEXTS, "--test", "{in}/test.txt", "--order", "2", "--discount-fallback", "--seeds", "0")
    kenlm: dict[str, Any] = {"kenlm": True, "settings": (("compgen.lm.estimation:ASLEEP", 3.0),)}
    found += [
        Job("lm train", ("lm", "train", "{in}/text.txt", *lm, "--memory", "100M", "-o", "{out}/model.bin"), **kenlm),
        Job(
            "lm interpolate",
            ("lm", "interpolate", "{in}/one.bin", "{in}/other.bin", *TEXTS, "-o", "{out}/mix.json"),
            **kenlm,
        ),
        Job("lm augment", ("lm", "augment", "{in}/text.txt", *small, "-o", "{out}"), grows=True, slow=True, **kenlm),
    ]
    return [*found, *_comparisons()]


def _comparisons() -> list[Job]:
    """Comparisons of few updates, in one process and with the usual one beside it, without a bundle (a job above)."""
    words = ("compare", "{in}/commands.tsv", "--methods", "geca", "--test", "20", "--by", "random", "--seeds", "1")
    words = (*words, "--minutes", "600", "--jobs", "1", "-o", "{out}")  # so long that no plan depends on speed
    plan, planning = "compgen.comparison.plan:", "compgen.comparison.planning:"
    few: dict[str, Any] = {
        f"{plan}FIRST_UPDATES": 2,
        f"{planning}FIRST_UPDATES": 2,
        f"{planning}LAST_UPDATES": 2,
        f"{planning}MEASURED": 2,
        f"{plan}TIMES": (1.0,),
        f"{planning}TIMES": (1.0,),
        "compgen.comparison.experiment:TIMES": (1.0,),
        f"{planning}make_plan": _poorest_plan,
        "compgen.comparison.steps:EXAMPLES_SHOWN": 2,
        "compgen.comparison.run:recipe": _small,
        "compgen.api:export_bundle": _no_bundle,
    }
    settings = tuple(few.items())
    found: dict[str, Any] = {"journals": r"made/.*|(.*/)?\..*", "grows": True, "temporary": False, "slow": True}
    return [
        Job("compare", words, settings=(*settings, ("compgen.comparison.run:workers", _alone)), **found),
        Job("compare by a process", words, settings=settings, **found),
    ]


def _small(name: str | None, dataset: Any) -> Any:
    from compgen.comparison.predictors import recipe

    found = recipe(name, dataset)
    return found._replace(changes=(*found.changes, *TINY_NETWORK[:4]))


def _poorest_plan(_seconds: float, _per_update: float, updates: int, _methods: int, seeds: int, _count: int) -> Any:
    from compgen.comparison.plan import _poorest

    return _poorest(updates, seeds)


def _no_bundle(_: Path, out: Path) -> None:
    out.mkdir()


@contextmanager
def _alone(folder: Path, *_: object) -> Iterator[Any]:
    """Workers of a comparison that are its own process, and so need not import anything."""
    import torch

    from compgen.comparison.steps import perform

    class Alone:
        count = 1

        def run(self, steps: Sequence[Any], finished: Callable[[Any], Sequence[Any]]) -> None:
            waiting = list(steps)
            while waiting:
                step = waiting.pop(0)
                perform(folder, step)
                waiting += finished(step)

    torch.set_num_threads(1)
    yield Alone()


def needed(found: Sequence[Job]) -> set[str]:
    """The names of what jobs read."""
    words = (word for job in found for word in job.words)
    return {word.removeprefix("{in}/") for word in words if word.startswith("{in}/")}


def make_inputs(folder: Path, names: set[str]) -> None:
    """Write what is named and not there."""
    sys.path.insert(0, str(ROOT))
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in INPUTS.items():
        if name in names and not (folder / name).exists():
            made = folder / f"made-{name}"
            make(made)
            made.rename(folder / name)


def _pairs(out: Path) -> None:
    pairs = [*_examples(), ("jump", "JUMP")]
    out.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))


def _examples() -> list[tuple[str, str]]:
    times = {"": 1, "twice": 2, "thrice": 3}
    return [(f"{verb} {word}".strip(), " ".join([verb.upper()] * n)) for verb in VERBS for word, n in times.items()]


def _sources(out: Path) -> None:
    out.write_text("a b c\nd\ne f g a\n")


def _words(out: Path) -> None:
    out.write_text("".join(f"{stem}\t{stem}la\tN;PL\n" for stem in STEMS))


def _sentences(seed: int, count: int) -> Callable[[Path], None]:
    def make(out: Path) -> None:
        rng = random.Random(seed)
        lines = [f"the {rng.choice(NOUNS)} {rng.choice(SEEN)} a {rng.choice(NOUNS)}\n" for _ in range(count)]
        out.write_text("".join(lines))

    return make


def _network(kind: str) -> Callable[[Path], None]:
    def write(out: Path) -> None:
        from tests.export.tiny import make

        made = out.with_suffix(".pt")
        make(kind).save(made)
        made.replace(out)

    return write


def _grammar(out: Path) -> None:
    from tests.sampling.grammars import grammar_file

    grammar_file(13, True).save(out)


def _bundle(model: str) -> Callable[[Path], None]:
    def make(out: Path) -> None:
        from compgen.export.bundle_writer import export

        saved = out.with_name(model)
        if not saved.exists():
            INPUTS[model](saved)
        export(saved, out, batches={7: 20}, quiet=True)

    return make


def _language_model(order: int) -> Callable[[Path], None]:
    def make(out: Path) -> None:
        from compgen.lm.estimation import Estimation, estimate

        text = out.with_name("text-of-models")
        _sentences(0, 120)(text)
        estimate([text], out, Estimation(order, fallback=True, memory="100M"))

    return make


def _commands(out: Path) -> None:
    from tests.comparison.test_parts import commands

    pairs = [f"{' '.join(source)}\t{' '.join(target)}\n" for source, target in commands().pairs()[::2]]
    out.write_text("".join(pairs))


INPUTS: dict[str, Callable[[Path], None]] = {
    "commands.tsv": _commands,
    "pairs.tsv": _pairs,
    "sources.txt": _sources,
    "words.tsv": _words,
    "text.txt": _sentences(0, 120),
    "validation.txt": _sentences(1, 40),
    "test.txt": _sentences(2, 40),
    "model.pt": _network("generator"),
    "predictor.pt": _network("predictor"),
    "model.grammar": _grammar,
    "bundle": _bundle("model.pt"),
    "rules": _bundle("model.grammar"),
    "one.bin": _language_model(2),
    "other.bin": _language_model(3),
}
VERBS = ("walk", "run", "look", "hop")
STEMS = ("ketil", "pemik", "neksi", "timer", "katol", "pomak", "naska", "tomar")
NOUNS, SEEN = ("cat", "dog", "bird", "fish", "cow", "fox"), ("saw", "ate", "met", "heard")
