"""R&R on SCAN (table 1 of the paper): each cell trains a generator, samples it, trains a predictor, evaluates on test.

A cell is a folder under --out with its predictor, samples and `result.json`; a cell that has its result is not run
again, so an interrupted grid goes on where it stopped. Variants that differ in sampling alone share a generator.
Everything goes through the command `cgen`, so every step can be repeated by hand from the printed lines. Predictors
are never selected: the last weights are tested.

    python scripts/experiments/scan.py --table 1a
    python scripts/experiments/scan.py --table 1b
    python scripts/experiments/scan.py --splits look opposite_right --seeds 0 --variant recomb2 unaided
    python scripts/experiments/scan.py --splits jump around_right --seeds 0 1 2
    python scripts/experiments/scan.py --splits jump --seeds 0 --variant nocopy

Choices are made on `look` and `opposite_right`, so that nothing is selected on what *jump* and *around right* test:
`look` takes jump's training data and holds out another verb the same way, all commands with *look* but *look* itself;
`opposite_right` is the published split that is to *opposite* what around right is to *around*.
"""

import argparse
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from cells import call, require_same, train

from compgen.data.catalog import load
from compgen.data.scan import interpret
from compgen.errors import DataError
from compgen.files import atomic_path


@dataclass(frozen=True)
class Kind:
    """The settings for a kind of split. Nothing here names the word or the phrase that is tested."""

    config: str
    sampling: tuple[str, ...]
    predictor: tuple[str, ...] = ()
    mixture: tuple[str, ...] = ()  # of the predictor's data, where there are samples


# Samples are new on both sides, and for a new verb hold a token that few distinct training examples hold (for a new
# phrase every token is frequent). Few augmented examples are drawn more often than their number (p_aug), as in the
# paper; where few of them are as long as what is tested, input feeding helps.
VERB = Kind("recombine_small", ("--filter", "novel,rare", "--draws", "150000", "--vote", "--best", "1000"))
PHRASE = Kind(
    "recombine_small_around_right",
    ("--filter", "novel", "--draws", "3000000", "--vote", "--margin", "3", "--support", "0.1"),
    ("--set", "network.feed=true", "--set", "optimisation.steps=8000"),
    ("--set", "p_aug=0.2"),
)
SPLITS = {"jump": VERB, "look": VERB, "around_right": PHRASE, "opposite_right": PHRASE}
UNAIDED = ("--set", "network.token_dropout=0.0", "--set", "unknown_below=0")  # without what is not in the paper
GENERATORS: dict[str, tuple[str, ...]] = {
    "recomb2": (),
    "recomb1": ("--set", "prototypes=1", "--set", "swap.rows=0", "--set", "swap.seconds=[0,0]"),
    # Without prototypes there is nothing to copy from, so that no token may be embedded as <unk> either.
    "recomb0": (*UNAIDED, "--set", "prototypes=0", "--set", "network.initial=zeros", "--set", "network.feed=false",
                "--set", "network.copying=false", "--set", "swap.rows=0", "--set", "swap.seconds=[0,0]"),
    "unaided": UNAIDED,
    "nocopy": (*UNAIDED, "--set", "network.copying=false"),
    "vae": ("--set", "network.latent=32"),  # latent edit vectors
    "protovae": ("--set", "prototypes=1", "--set", "network.latent=32", "--set", "swap.rows=0",
                 "--set", "swap.seconds=[0,0]"),  # Guu et al. 2018
}  # fmt: skip
# A variant is a generator whose samples a predictor learns from, or one of these.
BASELINE = "baseline"  # nothing is added
TRAINING_BASELINE = threading.Lock()  # held where a variant without samples trains its baseline
DIRECT = "direct"  # recomb2 answers by itself (appendix E)
PLAIN = "plain"  # recomb2, samples that are new, with rare tokens or without (no resampling)
VARIANTS = (BASELINE, *GENERATORS, DIRECT, PLAIN)
TABLES = {
    "1a": (["jump", "around_right"], [BASELINE, "recomb2", "plain", "recomb1", "recomb0"]),
    "1b": (["jump"], ["recomb2", "plain", "vae", "nocopy", "direct"]),
}
NOTHING = ", and nothing is written: "  # what `cgen sample` then says, with exit code 2
# Exact match in the paper: table 1. Around right is sampled without `rare` here, which is the paper's row without
# resampling; with it the paper has 0.75 ± 0.14.
PAPER = {
    ("jump", BASELINE): "0.00 ± 0.00", ("around_right", BASELINE): "0.00 ± 0.00",
    ("jump", "recomb2"): "0.87 ± 0.08", ("around_right", "recomb2"): "0.82 ± 0.08",
    ("jump", PLAIN): "0.88 ± 0.07", ("around_right", PLAIN): "0.82 ± 0.08", ("around_right", "recomb1"): "0.17 ± 0.07",
    ("jump", "recomb1"): "all samples rejected", ("jump", "recomb0"): "all samples rejected",
    ("around_right", "recomb0"): "all samples rejected",
    ("jump", "vae"): "0.88 ± 0.07", ("jump", "nocopy"): "0.00", ("jump", DIRECT): "0.57 ± 0.05",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One run of one variant on one split with one seed."""

    split: str
    variant: str
    seed: int

    def run(self, out: Path, extra: list[str]) -> dict[str, float]:
        """Run the cell, or read its result if it has been run before; return the scores."""
        folder = out / f"{self.split}-{self.variant}-{self.seed}"
        result = folder / "result.json"
        if result.exists():
            return dict(json.loads(result.read_text()))
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        data, seed = data_of(self.split, out), ("--seed", str(self.seed))
        row: dict[str, float] = {}
        if self.variant == DIRECT:
            tested = ["evaluate", str(generator(self, out) / "generator.pt"), data, "--direct"]
        else:
            samples = None if self.variant == BASELINE else sample(self, out, folder)
            augmented: tuple[str, ...] = ()
            if samples is not None and not samples.stat().st_size:  # nothing to give: the predictor is the baseline
                with TRAINING_BASELINE:
                    row |= Cell(self.split, BASELINE, self.seed).run(out, extra) | {"samples": 0}
                return keep(row, result)
            if samples is not None:
                row |= sample_quality(samples)
                augmented = ("--augmented", str(samples), *SPLITS[self.split].mixture)
            predictor = folder / "predictor.pt"
            train(folder, predictor, "seq2seq", data, *SPLITS[self.split].predictor, *augmented, *extra, *seed)
            tested = ["evaluate", str(predictor), data]
        scored = json.loads(call(folder, *tested, "--json"))
        row |= {"exact_match": scored["exact_match"], "f1": scored["f1"], "seconds": time.monotonic() - began}
        return keep(row, result)


def keep(row: dict[str, float], result: Path) -> dict[str, float]:
    """Write a cell's result to its file, and return it."""
    with atomic_path(result) as temporary:
        temporary.write_text(json.dumps(row, indent=1) + "\n")
    return row


def generator(cell: Cell, out: Path) -> Path:
    """The folder of a cell's generator."""
    name = cell.variant if cell.variant in GENERATORS else "recomb2"
    return out / "generators" / f"{cell.split}-{name}-{cell.seed}"


def make_generator(cell: Cell, out: Path) -> None:
    """Train and export a cell's generator, unless that is done."""
    folder = generator(cell, out)
    folder.mkdir(parents=True, exist_ok=True)
    name = folder.name.split("-")[1]
    config = SPLITS[cell.split].config
    settings = ("--config", config, *GENERATORS[name], "--seed", str(cell.seed))
    train(folder, folder / "generator.pt", "recombine", data_of(cell.split, out), *settings)
    bundle = folder / "bundle"
    if not bundle.exists():
        call(folder, "export", str(folder / "generator.pt"), "-o", str(bundle), "--no-torchscript", "--samples", "100")


def sample(cell: Cell, out: Path, folder: Path) -> Path:
    """Sample a cell's generator, unless that is done; the file is empty if nothing passes the filters."""
    path = folder / "samples.jsonl"
    if not path.exists():
        sampling = SPLITS[cell.split].sampling
        if cell.variant == PLAIN:
            sampling = tuple(word.replace("novel,rare", "novel") for word in sampling)
        bundle = str(generator(cell, out) / "bundle")
        try:
            call(folder, "sample", bundle, "-o", str(path), "--workers", "1", *sampling, "--seed", str(cell.seed))
        except SystemExit:
            if NOTHING not in (folder / "log.txt").read_text():
                raise
            path.touch()
    return path


def data_of(split: str, out: Path) -> str:
    """The name or file by which `cgen` takes the data of a split; that of `look` is made when it is first needed."""
    if split != "look":
        return f"scan/{split}"
    path = out / "look.tsv"
    if not path.exists():
        lines = []
        for source, target in load("scan/jump").split("train").unique().pairs():
            part = "test" if "look" in source and source != ["look"] else "train"
            lines.append("\t".join((" ".join(source), " ".join(target), part)))
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            temporary.write_text("\n".join(lines) + "\n")
    return str(path)


def sample_quality(path: Path) -> dict[str, float]:
    """How many samples are commands of SCAN, and how many of those are answered rightly (for the record only)."""
    pairs = load(str(path)).pairs()
    commands = right = 0
    for source, target in pairs:
        try:
            right += interpret(source) == target
            commands += 1
        except DataError:
            continue
    return {"samples": len(pairs), "samples_commands": commands, "samples_right": right}


def main() -> None:
    """Run the grid, seed by seed and cells side by side, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=list(TABLES), help="the splits and variants of a table of the paper")
    parser.add_argument("--splits", nargs="+", default=["jump", "around_right"], choices=list(SPLITS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--variant", nargs="+", default=["baseline", "recomb2"], choices=VARIANTS)
    parser.add_argument("--out", type=Path, default=Path("runs/scan"))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, one CPU thread each")
    parser.add_argument(
        "--predictor", nargs=argparse.REMAINDER, default=[], help="further options of `cgen train seq2seq`, at the end"
    )
    options = parser.parse_args()
    splits, variants = TABLES[options.table] if options.table else (options.splits, options.variant)
    cells = [Cell(s, v, seed) for seed in options.seeds for s in splits for v in variants]
    generators = {generator(cell, options.out): cell for cell in cells if cell.variant != BASELINE}
    options.out.mkdir(parents=True, exist_ok=True)
    require_same(options.out / "predictor.txt", options.predictor)
    rows: dict[Cell, dict[str, float]] = {}
    for split in splits:
        data_of(split, options.out)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda cell: make_generator(cell, options.out), generators.values()))
        # Baselines first: a variant without samples is its baseline, which no two threads may train at a time.
        for first in (True, False):
            some = [cell for cell in cells if (cell.variant == BASELINE) == first]
            rows |= zip(some, pool.map(lambda cell: cell.run(options.out, options.predictor), some), strict=True)
    table(rows, splits, variants, options.seeds)


def table(rows: dict[Cell, dict[str, float]], splits: list[str], variants: list[str], seeds: list[int]) -> None:
    """Print the cells' results, with the paper's figures. The minutes do not include training of generators."""
    print("| split | variant | seeds | exact match | each | samples right / commands / all | minutes | paper |")
    print("|---|---|---|---|---|---|---|---|")
    for split in splits:
        for variant in variants:
            got = [rows[Cell(split, variant, seed)] for seed in seeds]
            exact = [row["exact_match"] for row in got]
            spread = f" ± {stdev(exact):.3f}" if len(exact) > 1 else ""
            quality = ", ".join(
                f"{row.get('samples_right', 0)} / {row.get('samples_commands', 0)} / {row['samples']}"
                for row in got
                if "samples" in row
            )
            minutes = mean(row["seconds"] for row in got) / 60
            each = " ".join(f"{value:.4f}" for value in exact)
            shown = [split, variant, f"{len(got)}", f"{mean(exact):.3f}{spread}", each, quality, f"{minutes:.1f}",
                     PAPER.get((split, variant), "")]  # fmt: skip
            print(f"| {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
