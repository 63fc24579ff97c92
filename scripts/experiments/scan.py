"""R&R on SCAN (table 1 of the paper): each cell trains a generator, samples it, trains a predictor, evaluates on test.

A cell is a folder under --out with its checkpoints, samples and `result.json`; a cell that has its result is not run
again, so an interrupted grid goes on where it stopped. Everything goes through the `compgen` command, so every step
can be repeated by hand from the printed lines. Predictors are never selected: the last weights are tested.

    python scripts/experiments/scan.py --splits look opposite_right --seeds 0 --variant recomb2 unaided
    python scripts/experiments/scan.py --splits jump around_right --seeds 0 1 2
    python scripts/experiments/scan.py --splits jump --seeds 0 --variant nocopy

Choices are made on `look` and `opposite_right`, so that nothing is selected on what *jump* and *around right* test:
`look` takes jump's training data and holds out another verb the same way, all commands with *look* but *look* itself;
`opposite_right` is the published split that is to *opposite* what around right is to *around*.
"""

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from cells import call, train

from compgen.data.catalog import load
from compgen.data.scan import interpret
from compgen.errors import DataError
from compgen.files import atomic_path


@dataclass(frozen=True)
class Kind:
    """How a kind of split is treated. Nothing here names the word or the phrase that is tested."""

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
VARIANTS: dict[str, tuple[str, ...] | None] = {
    "baseline": None,
    "recomb2": (),
    "recomb1": ("--set", "prototypes=1", "--set", "swap.rows=0", "--set", "swap.seconds=[0,0]"),
    "unaided": UNAIDED,
    "nocopy": (*UNAIDED, "--set", "network.copying=false"),
    "vae": ("--set", "network.latent=32"),  # latent edit vectors, table 1b
}


@dataclass(frozen=True)
class Cell:
    """One run of one variant on one split with one seed."""

    split: str
    variant: str
    seed: int

    def run(self, out: Path, extra: list[str]) -> dict[str, float]:
        """Train, sample, train, evaluate; the result is also written to the cell's folder."""
        folder = out / f"{self.split}-{self.variant}-{self.seed}"
        result = folder / "result.json"
        if result.exists():
            return dict(json.loads(result.read_text()))
        folder.mkdir(parents=True, exist_ok=True)
        kind, settings = SPLITS[self.split], VARIANTS[self.variant]
        data, seed = data_of(self.split, out), ("--seed", str(self.seed))
        began = time.monotonic()
        row: dict[str, float] = {}
        augmented: tuple[str, ...] = ()
        if settings is not None:
            generator = folder / "generator.pt"
            train(folder, generator, "recombine", data, "--config", kind.config, *settings, *seed)
            row["generator_seconds"] = time.monotonic() - began
            samples = sample(folder, kind, seed)
            row["samples"] = 0
            if samples.stat().st_size:  # a generator may have nothing to give: the predictor then is the baseline
                row |= sample_quality(samples)
                augmented = ("--augmented", str(samples), *kind.mixture)
        predictor = folder / "predictor.pt"
        train(folder, predictor, "seq2seq", data, *kind.predictor, *augmented, *extra, *seed)
        scored = json.loads(call(folder, "evaluate", str(predictor), data, "--json"))
        row |= {"exact_match": scored["exact_match"], "f1": scored["f1"], "seconds": time.monotonic() - began}
        result.write_text(json.dumps(row, indent=1) + "\n")
        return row


def sample(folder: Path, kind: Kind, seed: tuple[str, ...]) -> Path:
    """Export the generator and sample it, unless that is done; the file is empty if nothing passes."""
    bundle, out = folder / "bundle", folder / "samples.jsonl"
    if not bundle.exists():
        call(folder, "export", str(folder / "generator.pt"), "-o", str(bundle), "--no-torchscript", "--samples", "100")
    if not out.exists():
        call(folder, "sample", str(bundle), "-o", str(out), "--workers", "1", *kind.sampling, *seed)
    return out


def data_of(split: str, out: Path) -> str:
    """What `compgen` is to call the data of a split; `look` is made when first asked for."""
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
    """Run the grid, cells side by side, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", nargs="+", default=["jump", "around_right"], choices=list(SPLITS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--variant", nargs="+", default=["baseline", "recomb2"], choices=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=Path("runs/scan"))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, one CPU thread each")
    parser.add_argument("--predictor", nargs="*", default=[], help="further options of `compgen train seq2seq`")
    options = parser.parse_args()
    cells = [Cell(s, v, seed) for seed in options.seeds for s in options.splits for v in options.variant]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = dict(zip(cells, pool.map(lambda cell: cell.run(options.out, options.predictor), cells), strict=True))
    print("| split | variant | seeds | exact match | each | samples right / commands / all | minutes a seed |")
    print("|---|---|---|---|---|---|---|")
    for split in options.splits:
        for variant in options.variant:
            got = [rows[Cell(split, variant, seed)] for seed in options.seeds]
            exact = [row["exact_match"] for row in got]
            spread = f" ± {stdev(exact):.3f}" if len(exact) > 1 else ""
            quality = ", ".join(
                f"{row.get('samples_right', 0)} / {row.get('samples_commands', 0)} / {row['samples']}"
                for row in got
                if "samples" in row
            )
            minutes = mean(row["seconds"] for row in got) / 60
            each = " ".join(f"{value:.4f}" for value in exact)
            print(
                f"| {split} | {variant} | {len(got)} | {mean(exact):.3f}{spread} | {each} | {quality} | {minutes:.1f} |"
            )


if __name__ == "__main__":
    main()
