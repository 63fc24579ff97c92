"""How fast text is scored: `cgen lm` against KenLM's own `query`, the same model and text, in one run.

    python scripts/bench/lm.py [MODEL TEXT]

Without arguments a text of a million tokens is drawn from a Zipf distribution, and a 5-gram model estimated from it.
Medians of --repeats runs that take turns; the end of a sentence is a token. `query -v summary` and `compgen-ngram` are
whole programs, loading and all; `score` reads arrays in Python; `kenlm` is the loop over the Python binding, if it is
installed. Further tables have the text scored by four models, alone and mixed; three of them are estimated from the
text and a part of it once more.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from compgen.lm.estimation import Estimation, estimate
from compgen.lm.install import program
from compgen.lm.measuring import measure
from compgen.lm.mixture import Mixture
from compgen.lm.scoring import score


def ours(*words: str | Path | int) -> list[str | Path | int]:
    """A command of our own program."""
    return [program("compgen-ngram"), "perplexity", *words]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.model is not None and options.text is None:
        parser.error("TEXT is missing: give MODEL and TEXT, or neither")
    with tempfile.TemporaryDirectory() as name:
        model, text = options.model, options.text
        if model is None:
            model, text = made(Path(name))
        tokens = sum(int(block.lengths.sum()) for block in score([], text))
        table(measured(runs(model, text), options.repeats), tokens, "of query's")
        mixture = mixed(model, text, Path(name))
        for threads in (1, 2):
            seconds = measured(mixing(mixture, text, threads), options.repeats)
            alone = [each for name, each in seconds.items() if name.startswith("alone")]
            added = {f"the four added, {threads} threads": [sum(turn) for turn in zip(*alone, strict=True)]}
            table(added | seconds, tokens, "of the four's")


def made(folder: Path) -> tuple[Path, Path]:
    """A model and a text."""
    random = np.random.default_rng(0)
    text = folder / "text.txt"
    ranks = np.minimum(random.zipf(1.3, 1_000_000), 50_000)
    lines = [" ".join(f"w{rank}" for rank in row) for row in np.array_split(ranks, 50_000)]
    text.write_text("\n".join(lines) + "\n")
    estimate([text], folder / "model.bin", Estimation(fallback=True))
    return folder / "model.bin", text


def runs(model: Path, text: Path) -> dict[str, Callable[[], None]]:
    """What is measured, by name."""

    def run(*command: object) -> None:
        with text.open("rb") as stream:
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run([str(word) for word in command], stdin=stream, check=True, **silent)

    def scored(threads: int) -> None:
        for _ in score([model], text, threads):
            pass

    mixture = Mixture.open(model)
    found: dict[str, Callable[[], None]] = {
        "query -v summary": lambda: run(program("query"), "-v", "summary", model),
        "compgen-ngram perplexity, 1 thread": lambda: run(*ours(model, "--threads", 1)),
        "compgen-ngram perplexity, 2 threads": lambda: run(*ours(model, "--threads", 2)),
        "score in Python, 1 thread": lambda: scored(1),
        "perplexity in Python, 1 thread": lambda: void(measure(mixture, text, 1)),
        "perplexity in Python, 2 threads": lambda: void(measure(mixture, text, 2)),
    }
    try:
        import kenlm
    except ModuleNotFoundError:
        return found

    def loop() -> None:
        opened = kenlm.Model(str(model))
        for line in text.open():
            list(opened.full_scores(line))

    return found | {"kenlm in Python": loop}


def mixed(model: Path, text: Path, folder: Path) -> Path:
    """A mixture of the model and three more."""
    models, lines = [model], text.read_text().splitlines(keepends=True)
    for part in range(3):
        more = folder / f"more-{part}.txt"
        more.write_text("".join([*lines, *lines[part::3]]))
        models.append(folder / f"more-{part}.bin")
        estimate([more], models[-1], Estimation(fallback=True))
    Mixture(tuple(models), np.full((9, 4), 0.25)).save(folder / "mix.json")
    return folder / "mix.json"


def mixing(mixture: Path, text: Path, threads: int) -> dict[str, Callable[[], None]]:
    """The mixture, and each of its models alone."""

    def run(model: Path) -> None:
        command = ours(model, text, "--threads", threads)
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)

    found: dict[str, Callable[[], None]] = {f"mixed, {threads} threads": lambda: run(mixture)}
    for number, model in enumerate(Mixture.open(mixture).models):
        found[f"alone, model {number}"] = lambda model=model: run(model)  # type: ignore[misc]
    return found


def void(_: object) -> None:
    """A result that is not wanted."""


def measured(found: dict[str, Callable[[], None]], repeats: int) -> dict[str, list[float]]:
    """The seconds of runs that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(repeats):
        for name, run in found.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    return seconds


def table(seconds: dict[str, list[float]], tokens: int, ratio: str) -> None:
    """Print seconds, tokens a second and the ratio to the first."""
    first = median(next(iter(seconds.values())))
    print(f"| {tokens:,} tokens | s (least to most) | million tokens/s | {ratio} |")
    print("|---|---|---|---|")
    for name, each in seconds.items():
        middle = median(each)
        rate, spread = tokens / middle / 1e6, f"{middle:.2f} ({min(each):.2f}-{max(each):.2f})"
        print(f"| {name} | {spread} | {rate:.1f} | {first / middle:.2f} |")
    print()


if __name__ == "__main__":
    main()
