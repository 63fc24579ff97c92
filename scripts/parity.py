"""Do all runtimes draw the same samples? 10,000 addresses, batches of 1, 64 and 1,000, in float64 and float32.

    python scripts/parity.py runs/demo/recomb2.pt

Every runtime is compared, sequence by sequence, with PyTorch in float64. A difference in float64, or one in float32
that is not a draw within 1e-5 of a boundary, ends the script with an error.

    python scripts/parity.py --kinds all

compares the C++ programs with Python's runtime of the same bundle: the generator that ships, and small random models of
each kind, whose bundles are made here. The boundary is then Python's own. Of int8 bundles it may be 0.01 away, as
another rounding may be a level of 8 bits. `best` are the 3 best answers of a beam of 5; lists that differ must have
log-probabilities that are the same to 1e-5. Mixtures measure a text of as many sentences as there are samples:
perplexities must be the same to 1e-9, and the losses of sentences to the last digit written.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.append(str(Path(__file__).parents[1]))  # for the small models of the tests

from compgen.cli.export import parity_table
from compgen.data.vocabulary import EOS_ID
from compgen.export.verify import BATCH, NEAR, Written, answer_distance, counts, distance, in_cpp, parity, require, task
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import Parity

Batches = Mapping[int, int]  # sizes of batches, and how many samples to compare in each
Rows = Iterator[Parity]
SHIPPED = Path(__file__).parents[1] / "exported" / "recomb2"
NEAR_IN_INTEGERS = 1e-2
COUNT, WIDTH = 3, 5  # of the best answers, of beams


def compared(
    name: str,
    expected: list[Any],
    run: Callable[[int, int], list[Any]],
    batches: Batches,
    far: Callable[[int, Any, Any], float],
    near: float = NEAR,
    dtype: str = "float32",
) -> Rows:
    """Compare what `run` gives, of a number of samples and a size of batches, with what is expected."""
    for batch, count in batches.items():
        found = run(count, batch)
        judged = counts(expected[:count], found, lambda row, found=found: far(row, expected[row], found[row]), near)
        yield Parity.model_validate({"runtime": name, "dtype": dtype, "batch": batch} | judged)


# Networks.


def made(folder: Path, kind: str, *, int8: bool = False, **changes: Any) -> Path:
    """A bundle of a small random network."""
    from compgen.export.bundle_writer import export
    from tests.export.tiny import make

    make(kind, **changes).save(folder / "model.pt")
    export(folder / "model.pt", folder / "bundle", batches={7: 20}, torchscript=False, int8=int8, quiet=True)
    return folder / "bundle"


def draws(
    name: str, path: Path, batches: Batches, steps: tuple[str, ...] = ("own", "graph"), near: float = NEAR
) -> Rows:
    """Compare draws of a recurrent generator, by each of the runner's steps."""
    from compgen.runtime.onnx_backend import OnnxBackend

    bundle, samples = Bundle.load(path), max(batches.values())
    work, backend = task(bundle, samples), OnnxBackend(bundle, provider="cpu")
    expected = work.stepwise(backend, samples, BATCH)
    for step in steps:
        run = partial(in_cpp, work, bundle, {"--step": step})
        yield from compared(f"{name}, {step} step", expected, run, batches, partial(distance, work, backend), near)


def drawn_grammar(path: Path, batches: Batches) -> Rows:
    """Compare draws of a grammar's bundle."""
    from compgen.api import Generator
    from compgen.sampling import native

    bundle, generator, samples = Bundle.load(path), Generator.load(path), max(batches.values())
    expected = [draw.tokens for draw in generator.draw(0, 0, samples)]

    def run(count: int, batch: int) -> list[Written]:
        return [draw.tokens for draw in native.raw(bundle, 0, 0, count, generator.temperature, {"--batch": batch})]

    yield from compared("grammar", expected, run, batches, lambda *_: float("inf"), dtype="float64")


def grammar(folder: Path, batches: Batches) -> Rows:
    """Compare draws of a random grammar with a target grammar."""
    from tests.sampling.grammars import exported_grammar

    yield from drawn_grammar(exported_grammar(folder), batches)


def answers(name: str, path: Path, batches: Batches, options: Mapping[str, object]) -> Rows:
    """Compare greedy answers of a predictor, and its best answers by beam search."""
    yield from greedy_answers(name, path, batches, options)
    yield from best_answers(name, path, batches, options)


def greedy_answers(name: str, path: Path, batches: Batches, options: Mapping[str, object], near: float = NEAR) -> Rows:
    """Compare greedy answers of a predictor."""
    from compgen.api import Predictor

    bundle, samples = Bundle.load(path), max(batches.values())
    work, decoder = task(bundle, samples), Predictor.load(path, provider="cpu").decoder
    expected = work.answers(decoder, samples, BATCH)
    run = partial(in_cpp, work, bundle, options)
    yield from compared(f"{name}, greedy", expected, run, batches, partial(answer_distance, work, decoder), near)


def best_answers(name: str, path: Path, batches: Batches, options: Mapping[str, object]) -> Rows:
    """Compare a predictor's best answers by beam search."""
    from compgen.api import Predictor
    from compgen.runtime.beam import nbest
    from compgen.sampling import native

    bundle, samples = Bundle.load(path), max(batches.values())
    work, decoder = task(bundle, samples), Predictor.load(path, provider="cpu").decoder
    best = nbest(decoder, work.sources(samples), COUNT, WIDTH, work.max_length)
    scored = {row: [score for _, score in found] for row, found in enumerate(best)}
    others: dict[int, list[float]] = {}

    def ranked(count: int, batch: int) -> list[Written]:
        lists: dict[int, list[Written]] = {row: [] for row in range(count)}
        others.update({row: [] for row in range(count)})
        given = {"--batch": batch, "--best": COUNT, "--beam": WIDTH} | dict(options)
        for line in native.raw_lines(bundle, work.sources(count), given):
            lists[line["index"]].append(tuple(line["tokens"]))
            others[line["index"]].append(line["log_prob"])
        return [joined(lists[row]) for row in range(count)]

    def far(row: int, *_: Written) -> float:
        pairs = list(zip(scored[row], others[row], strict=False))
        return max(abs(a - b) for a, b in pairs) if len(scored[row]) == len(others[row]) else float("inf")

    lists = [joined([tuple(tokens) for tokens, _ in found]) for found in best]
    yield from compared(f"{name}, {COUNT} best", lists, ranked, batches, far)


def joined(answers: list[Written]) -> Written:
    """Answers one after another, each with an end symbol."""
    return tuple(token for answer in answers for token in (*answer, EOS_ID))


def transformer(folder: Path, batches: Batches) -> Rows:
    """Compare answers of a small random Transformer."""
    from compgen.export.bundle_writer import export
    from tests.export.test_transformer import saved

    path = saved(folder / "model.pt", seed=39, spread=1.0, size=16)
    export(path, folder / "bundle", batches={7: 20}, quiet=True)
    for step in ("own", "graph"):
        yield from answers(f"Transformer, {step} step", folder / "bundle", batches, {"--step": step})


def transformer_in_integers(folder: Path, batches: Batches) -> Rows:
    """Compare greedy answers in int8, where a last bit may make a level; beams part at less."""
    from compgen.export.bundle_writer import export
    from tests.export.test_transformer import LARGE, saved

    export(saved(folder / "model.pt", **LARGE), folder / "bundle", batches={7: 20}, int8=True, quiet=True)
    for step in ("own", "graph"):
        name, options = f"Transformer, int8, {step} step", {"--step": step}
        yield from greedy_answers(name, folder / "bundle", batches, options, NEAR_IN_INTEGERS)


# Language models.


def mixtures(folder: Path, batches: Batches) -> Rows:
    """Compare perplexities of a text by mixtures of all kinds of models, and the loss of each of its sentences."""
    import numpy as np
    from mutate_readers import language_models, recurrent_model

    from compgen.lm.install import program
    from compgen.lm.measuring import measure
    from compgen.lm.mixture import Mixture
    from compgen.sampling import native

    names, rng = language_models(folder), np.random.default_rng(34)
    recurrent_model(folder / "bundle")
    words = ["the", "cat", "dog", "sat", "ran", "on", "a", "zebra", "b", "c"]
    lines = [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(max(batches.values()))]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    environment = native.environment() | {"COMPGEN_SCORER": str(native.runner().with_name("compgen-score"))}
    chosen = {f"model, {Path(name).stem}": ([name], 1) for name in names}
    chosen |= {"mixture of 4": (names[:4], 1), "mixture of 4, by history": (names[3:], 9)}
    chosen |= {"mixture with a recurrent model": ([names[1], "bundle", names[3]], 9)}
    for title, (models, classes) in chosen.items():
        weights = rng.dirichlet(np.ones(len(models)), classes)
        mixture = Mixture(tuple(folder / name for name in models), weights)
        mixture.save(folder / "mix.json")
        python = measure(mixture, folder / "text.txt", sentences=folder / "python.tsv")
        for threads in (1, 3):
            command = [program("compgen-ngram"), "perplexity", folder / "mix.json", folder / "text.txt", "--json"]
            command += ["--threads", str(threads), "--sentences", folder / "native.tsv"]
            done = subprocess.run(list(map(str, command)), check=True, capture_output=True, env=environment)
            found, rows = json.loads(done.stdout), [_rows(folder / f"{who}.tsv") for who in ("python", "native")]
            apart = abs(found["perplexity"] / python.including - 1)
            apart = max(apart, abs(found["perplexity_without_unknown"] / python.excluding - 1))
            differing = sum(one != other for one, other in zip(*rows, strict=True)) + (apart > 1e-9)
            counted = {"samples": python.sentences, "tokens": python.tokens, "differing": differing, "explained": 0}
            about = {"runtime": f"{title}, threads", "dtype": "float64", "batch": threads, "largest": apart}
            yield Parity.model_validate(about | counted)


def _rows(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


KINDS: dict[str, Callable[[Path, Batches], Rows]] = {
    "shipped": lambda _, batches: draws("recomb2, which ships", SHIPPED, batches),
    "generator": lambda folder, batches: draws("generator", made(folder, "generator"), batches),
    "int8": lambda folder, batches: draws(
        "generator, int8", made(folder, "generator", int8=True, hidden=64), batches, near=NEAR_IN_INTEGERS
    ),
    "one": lambda folder, batches: draws(
        "generator, one prototype", made(folder, "generator", memories=1, feed=False, initial="encoder"), batches
    ),
    "none": lambda folder, batches: draws(
        "generator, no prototypes", made(folder, "generator", memories=0, copying=False, feed=False), batches
    ),
    "latent": lambda folder, batches: draws(
        "latent generator", made(folder, "generator", latent=5, own=9, mixing="gate"), batches, ("graph",)
    ),
    "grammar": grammar,
    "predictor": lambda folder, batches: answers(
        "predictor", made(folder, "predictor", initial="encoder"), batches, {"--step": "own"}
    ),
    "transformer": transformer,
    "transformer-int8": transformer_in_integers,
    "mixtures": mixtures,
}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, nargs="?")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64, 1000])
    parser.add_argument("--native", action="store_true", help="compare the C++ runner too, which `make cpp` builds")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, "all"], help="compare the C++ programs with Python")
    options = parser.parse_args()
    batches = dict.fromkeys(options.batches, options.samples)
    if (options.checkpoint is None) == (options.kinds is None):
        parser.error("give a checkpoint, or --kinds")
    if options.checkpoint is not None:
        Console(width=120).print(parity_table(parity(options.checkpoint, batches, native=options.native)))
        return
    rows: list[Parity] = []
    for kind in KINDS if "all" in options.kinds else options.kinds:
        with tempfile.TemporaryDirectory() as name:
            rows += KINDS[kind](Path(name), batches)
    Console(width=140).print(parity_table(rows, "Python's runtime of the same bundle"))
    require(rows, "C++ does not give what Python does")


if __name__ == "__main__":
    main()
