"""How fast text is scored: `cgen lm` against KenLM's own `query`, the same model and text, in one run.

    python scripts/bench/lm.py [MODEL TEXT]

Without arguments a text of a million tokens is drawn from a Zipf distribution, and a 5-gram model estimated from it.
Medians of --repeats runs that take turns; a token's end of sentence is a token. `query -v summary` only adds up;
`compgen-ngram` writes each token's score; `score` reads them as arrays in Python; `kenlm` is the loop over the Python
binding, where it is installed.
"""

import argparse
import os
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


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        model, text = options.model, options.text
        if model is None or text is None:
            model, text = made(Path(name))
        tokens = sum(int(block.lengths.sum()) for block in score([], text))
        table(runs(model, text), tokens, options.repeats)


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
        "compgen-ngram": lambda: run(program("compgen-ngram"), model),
        "score, 1 thread": lambda: scored(1),
        "perplexity, 1 thread": lambda: void(measure(mixture, text, 1)),
    }
    for threads in range(2, (os.cpu_count() or 1) + 1):
        found[f"perplexity, {threads} threads"] = lambda threads=threads: void(measure(mixture, text, threads))  # type: ignore[misc]
    try:
        import kenlm
    except ModuleNotFoundError:
        return found

    def loop() -> None:
        opened = kenlm.Model(str(model))
        for line in text.open():
            list(opened.full_scores(line))

    return found | {"kenlm in Python": loop}


def void(_: object) -> None:
    """A result that is not wanted."""


def table(found: dict[str, Callable[[], None]], tokens: int, repeats: int) -> None:
    """Run in turns; print seconds, tokens a second and the ratio to the first."""
    seconds: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(repeats):
        for name, run in found.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    first = median(next(iter(seconds.values())))
    print(f"| {tokens:,} tokens | s (least to most) | million tokens/s | of query's |")
    print("|---|---|---|---|")
    for name, each in seconds.items():
        middle = median(each)
        rate, spread = tokens / middle / 1e6, f"{middle:.2f} ({min(each):.2f}-{max(each):.2f})"
        print(f"| {name} | {spread} | {rate:.1f} | {first / middle:.2f} |")


if __name__ == "__main__":
    main()
