"""Does augmentation lower perplexity? GECA on sentences, interpolation, and a control.

A mixture of two models of the same text is better than either alone, whatever the second has seen. So a gain over the
base model says nothing. What counts is the gain over the control: the same mixture, in which each synthetic sentence is
replaced by a training sentence drawn again.

Two schemes:

- `paper`: GECA by the paper's settings; one model of the training text and the synthetic sentences; one weight.
- `worth`: two kinds of synthetic sentences, many of each, each with a model of its own (with the training text), and a
  model of resampled training sentences; weights by the known history. So a weight is what a synthetic n-gram counts
  for, given how much of the history the training text knows. The control has the same models, of resampled sentences.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from compgen.claim import claimed
from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.errors import DataError, UserError, tell
from compgen.evaluation.significance import need_scipy, paired
from compgen.files import check_apart, reading, sha256
from compgen.geca.augmenter import Geca
from compgen.geca.options import GecaOptions
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.mixture import Mixture, Perplexity, check_vocabularies, fitted, perplexity
from compgen.lm.report import Report, Trial, losses
from compgen.lm.scoring import Scores, opened, score, score_all, split_words

CLAIM = "run.json"  # says of which texts and options a folder is, and is locked while it is filled
_TUNED_TO_TEST = "found {}: a mixture's weights would be fitted to the test"
LONGEST = 98  # tokens of a sentence that is recombined: the reference's 100 less its two markers


@dataclass(frozen=True)
class Scheme:
    """How augmentation is used.

    Attributes:
        kinds: GECA's options for each kind of synthetic sentences, which has a model of its own. Their `variants`, the
            most sentences per template, limit how far `sentences_of` goes.
        count: the most sentences of each kind.
        resampled: whether there is a model of resampled training sentences too.
        by_history: whether weights depend on the known history.
    """

    kinds: tuple[GecaOptions, ...]
    count: int
    resampled: bool
    by_history: bool


SCHEMES = {
    "paper": Scheme(
        (GecaOptions(mode="reference", span=2, spans=1, limit=20, window=2, longest=LONGEST, variants=1),),
        count=5000,
        resampled=False,
        by_history=False,
    ),
    "worth": Scheme(
        (
            GecaOptions(mode="published", span=2, spans=1, limit=20, window=1, longest=LONGEST, variants=20),
            GecaOptions(mode="published", span=2, spans=1, limit=500, window=2, longest=LONGEST, variants=20),
        ),
        count=100_000,
        resampled=True,
        by_history=True,
    ),
}


def sentences_of(augmenter: Geca, count: int, seed: int) -> list[list[str]]:
    """Return up to `count` sentences of a fitted augmenter.

    The most sentences per template are doubled from 1, up to the augmenter's own `variants`, until there are as many as
    wanted: sentences of one template share all but a fragment, and what they share counts again with each.
    """
    variants = 1
    while True:
        made = augmenter.with_options(variants=variants).sample(count, seed).frame["source"].to_list()
        if len(made) == count or variants == augmenter.options.variants:
            return made
        variants = min(2 * variants, augmenter.options.variants)


def experiment(
    training: Dataset,
    validation: Path,
    test: Path,
    folder: Path,
    scheme: Scheme,
    estimation: Estimation | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    partners: Sequence[Path] = (),
    watch: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run base, augmented and control models, and keep them in `folder`.

    Weights are chosen on the validation text; the test text is measured once, at the end.

    Args:
        training: sentences: examples with an empty target.
        validation, test: texts, a sentence a line.
        folder: for models and texts; the mixtures are `interpolated-SEED.json` there. It is new, or empty, or of the
            same run: mixtures name their models, which another run would replace.
        scheme: how augmentation is used.
        estimation: of all models. Those with synthetic or resampled sentences may use fixed discounts in any case; the
            report's `fallbacks` say so.
        seeds: one trial each.
        partners: models of the same words, a recurrent one for instance, for the mixture and the control alike.
        watch: called before each step.

    Raises:
        DataError, UserError, ExhaustedError: a text is bad, a program is missing, GECA finds nothing, a file that is
            read would be overwritten, or the folder holds another run or other files. A new folder is left as it was.
    """
    need_scipy()
    if not seeds or len({*seeds}) < len(seeds) or not all(0 <= seed < 2**64 for seed in seeds):
        raise UserError(f"seeds {list(seeds)}: expected different whole numbers from 0 on, less than 2^64")
    for path in outputs(folder, scheme, seeds):
        check_apart(path, validation, test, *partners)
    if (training.frame["target"].list.len() > 0).any():
        raise UserError("the training text: found pairs, expected sentences: a text file with one a line")
    _check_texts(validation, test)
    measured = {"validation": validation, "test": test}
    learnt = _learnt(training, measured)
    for part in learnt:
        watch(f"warning: {measured[part]}: all sentences of the {part} text are in the training text: give others")
    estimation = estimation or Estimation()
    if any(estimation.prune[:1]):
        raise UserError(f"prune {estimation.prune}: expected 0 for 1-grams: models that are mixed know the same words")
    check_vocabularies(partners, set(training.frame["source"].explode()))
    read, settings = _read(training, measured, partners), _settings(scheme, estimation, seeds)
    if read["validation sentences"] == read["test sentences"]:
        raise UserError(f"{test}: {_TUNED_TO_TEST.format(f'a copy of the validation text {validation}')}")
    with claimed(folder / CLAIM, "run", read, settings):
        setting = _Setting(training, scheme, estimation, measured, folder, partners, watch)
        trials = [setting.trial(seed) for seed in seeds]
    for remark in setting.alike():
        tell(remark)
    mixed = np.mean([losses(trial.mixture) for trial in trials], axis=0)
    controlled = np.mean([losses(trial.control) for trial in trials], axis=0)
    against_control, against_base = paired(mixed, controlled), paired(mixed, losses(setting.plain))
    return Report(setting.plain, trials, against_control, against_base, setting.fallbacks, "test" in learnt)


def _read(training: Dataset, measured: dict[str, Path], partners: Sequence[Path]) -> dict[str, Any]:
    """Return the digests of all that is read, by what it is."""
    sentences = training.frame.select("source").write_json().encode()
    found = {part: _digest(path) for part, path in measured.items()}
    return {
        "training sentences": hashlib.sha256(sentences).hexdigest(),
        **{f"{part} sentences": digest for part, digest in found.items()},
        "other models": [_digest(path) for path in partners],
    }


def _digest(path: Path) -> str | list[str]:
    """Return the digest of a file, or those of the files of a bundle, which is a folder."""
    with reading(path):
        if path.is_dir():
            return [sha256(one) for one in sorted(path.rglob("*")) if one.is_file()]
        return sha256(path)


def _settings(scheme: Scheme, estimation: Estimation, seeds: Sequence[int]) -> dict[str, Any]:
    """Return all options that results depend on, by name; those of GECA have a value for each kind of sentences."""
    kinds = [kind.identity() for kind in scheme.kinds]
    used = asdict(estimation)
    del used["memory"]  # results do not depend on it
    return {
        **{name: [kind[name] for kind in kinds] for name in kinds[0]},
        **{name: getattr(scheme, name) for name in ("count", "resampled", "by_history")},
        **used,
        "seeds": list(seeds),
    }


def _check_texts(validation: Path, test: Path) -> None:
    """Read the texts before any work; raise DataError or UserError if one cannot be measured, or both are one."""
    if validation.resolve() == test.resolve():
        raise UserError(f"{test}: {_TUNED_TO_TEST.format('it as validation and test text')}")
    for part, path, needed in (("validation", validation, 1), ("test", test, 2)):
        if str(path) == "-":
            raise UserError(f"the {part} text is read by each model: give the name of a file, not -")
        found = sum(len(block.lengths) for block in score([], path))
        if found < needed:
            raise DataError(f"{path}: found {found or 'no'} sentence, expected {needed} or more")


def _learnt(training: Dataset, measured: dict[str, Path]) -> list[str]:
    """Return the names of the texts whose sentences are all in the training text."""
    known = {" ".join(words) for words in training.frame["source"].to_list()}
    return [part for part, path in measured.items() if _all_in(path, known)]


def _all_in(path: Path, known: Set[str]) -> bool:
    """Whether all sentences of a text are among those known."""
    with opened(path) as (stream, _):
        lines = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="\n")
        return all(" ".join(words) in known for words in map(split_words, lines) if words)


def outputs(folder: Path, scheme: Scheme, seeds: Sequence[int]) -> list[Path]:
    """Return the files that `experiment` may write."""
    names = [CLAIM, "training.txt", "base.bin"]
    for seed in seeds:
        names += [f"interpolated-{seed}.json", f"control-{seed}.json"]
        models = [f"{kind}-{seed}-{number}" for kind in ("augmented", "control") for number in range(len(scheme.kinds))]
        names += [f"{model}.{suffix}" for model in (f"resampled-{seed}", *models) for suffix in ("txt", "bin")]
    return [folder / name for name in names]


class _Setting:
    """What all seeds share: models, their scores, and augmenters."""

    def __init__(
        self,
        training: Dataset,
        scheme: Scheme,
        estimation: Estimation,
        measured: dict[str, Path],
        folder: Path,
        partners: Sequence[Path],
        watch: Callable[[str], None],
    ) -> None:
        self.scheme, self.estimation, self.measured = scheme, estimation, measured
        self.folder, self.watch = folder, watch
        self.sentences: list[list[str]] = training.frame["source"].to_list()
        self.fallbacks: dict[str, list[int]] = {}
        self.made: dict[tuple[str, int], list[int]] = {}  # the seeds by the digest and number of their sentences
        self.text = write_sentences(self.sentences, folder / "training.txt")
        self.common = [self.model("base", []), *partners]
        check_vocabularies(self.common)
        self.scores = {part: score_all(self.common, path) for part, path in measured.items()}
        single = Mixture.open(self.common[0])
        self.plain = {part: perplexity(single, scores.of([0])) for part, scores in self.scores.items()}
        self.augmenters = []
        for kind in scheme.kinds:
            watch("fragments and templates")
            self.augmenters.append(Geca(kind).fit(training))

    def model(self, name: str, sentences: Sequence[Sequence[str]]) -> Path:
        """Estimate a model of the training text and more sentences; return its path."""
        self.watch(f"model {name}")
        texts, out, estimation = [self.text], self.folder / f"{name}.bin", self.estimation
        if sentences:
            texts.append(write_sentences(sentences, self.folder / f"{name}.txt"))
            # With enough sentences no n-gram occurs only once, and discounts are estimated from those.
            estimation = replace(estimation, fallback=True)
        try:
            self.fallbacks[name] = estimate(texts, out, estimation)["fallback_orders"]
        except DataError as error:  # names a file that is none of the user's
            said = str(error).replace(f"{self.text}, line", "the training text, sentence")
            raise DataError(said.replace(str(self.text), "the training text")) from error
        return out

    def trial(self, seed: int) -> Trial:
        """Run one seed."""
        random = stream(Purpose.RESAMPLING, seed)

        def resampled(count: int) -> list[list[str]]:
            return [self.sentences[index] for index in random.integers(0, len(self.sentences), count).tolist()]

        synthetic = []
        for number, augmenter in enumerate(self.augmenters, start=1):
            self.watch(f"synthetic sentences, kind {number}, seed {seed}")
            synthetic.append(sentences_of(augmenter, self.scheme.count, seed))
        found = repr([sorted(map(" ".join, kind)) for kind in synthetic])
        digest = hashlib.sha256(found.encode()).hexdigest()
        self.made.setdefault((digest, sum(map(len, synthetic))), []).append(seed)
        most = max(map(len, synthetic))
        shared = [self.model(f"resampled-{seed}", resampled(most))] if self.scheme.resampled else []
        augmented, control = list(shared), list(shared)
        for number, sentences in enumerate(synthetic):
            augmented.append(self.model(f"augmented-{seed}-{number}", sentences))
            control.append(self.model(f"control-{seed}-{number}", resampled(len(sentences))))
        own = list(dict.fromkeys([*augmented, *control]))
        every = [*self.common, *own]
        scores = {part: self.scores[part].beside(score_all(own, path)) for part, path in self.measured.items()}
        best, gained = self.mixed(f"interpolated-{seed}", [*self.common, *augmented], every, scores)
        _, controlled = self.mixed(f"control-{seed}", [*self.common, *control], every, scores)
        against_control, against_base = (paired(losses(gained), losses(other)) for other in (controlled, self.plain))
        return Trial(seed, list(map(len, synthetic)), gained, controlled, against_control, against_base, best)

    def alike(self) -> Iterator[str]:
        """Say which seeds made the same sentences, as they do where each takes all that there are."""
        for (_, count), seeds in self.made.items():
            if len(seeds) > 1:
                yield (
                    f"seeds {', '.join(map(str, seeds))} made the same {count:,} synthetic sentences: their augmented "
                    "rows are one result, whose p values do not confirm each other; only what is drawn again differs"
                )

    def mixed(
        self, name: str, models: Sequence[Path], every: Sequence[Path], scores: dict[str, Scores]
    ) -> tuple[Mixture, dict[str, Perplexity]]:
        """Save the best mixture of some of the scored models by a name; return it and its perplexities."""
        own = {part: found.of([every.index(model) for model in models]) for part, found in scores.items()}
        best = fitted(models, own["validation"], self.scheme.by_history, self.measured["validation"])
        best.save(self.folder / f"{name}.json")
        return best, {part: perplexity(best, found) for part, found in own.items()}
