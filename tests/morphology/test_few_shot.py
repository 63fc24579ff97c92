import os
from pathlib import Path

import pytest

from compgen.data.unimorph import read_words
from compgen.errors import DataError
from compgen.morphology.few_shot import HINTS, few_shot

FOLDS = {
    "train": ("train_easy", "train_hard"),
    "dev": ("val_easy",),
    "past": ("val_hard",),
    "other": ("test_easy",),
    "future": ("test_hard",),
}


def words(past=60, future=60, other=150, types=3):
    """Words of a language of its own: enough combinations of tags for pools of 20 a type."""
    made = []
    for tense, count in (("PST", past), ("FUT", future), ("PRS", other)):
        for number in range(count * types):
            lemma = "".join("abcdefgh"[number // 8**place % 8] for place in range(5))
            made.append((lemma, lemma + tense.lower(), ("V", tense, str(number % types))))
    return made


@pytest.mark.parametrize(
    "language", [*(pytest.param(name, marks=pytest.mark.long) for name in ("spanish", "swahili")), "turkish"]
)
def test_splits_are_the_published_ones(language):
    folder = Path(os.environ.get("COMPGEN_DATA", "nowhere"))
    source, published = folder / "sigmorphon2018" / f"{language}-train-high", folder / "morphology_hints"
    if not (source.is_file() and published.is_dir()):
        pytest.skip(f"no {source} and {published}: set COMPGEN_DATA")
    hints = HINTS if language == "swahili" else (4,)  # all of them once: they take seconds
    count = 0
    for split in few_shot(read_words(source), language, hints):
        text = (published / f"{language}.hints-{split.hints}.seed-{split.seed}.tsv").read_text(encoding="utf-8")
        rows = [line.split("\t") for line in text.splitlines()]
        for part, folds in FOLDS.items():
            wanted = [(lemma, form, tuple(tags.split(";"))) for fold, lemma, form, tags in rows if fold in folds]
            assert split.parts[part] == wanted
        count += 1
    assert count == 5 * len(hints)


def test_past_and_future_are_hints_in_training_and_tests_beside_it():
    made = list(few_shot(words(past=200, future=200, other=500, types=8), "", (4,)))
    assert [(split.hints, split.seed) for split in made] == [(4, seed) for seed in range(5)]
    for split in made:
        assert {part: len(found) for part, found in split.parts.items()} == {
            "train": 1000,
            "dev": 100,
            "past": 100,
            "other": 100,
            "future": 100,
        }
        tenses = [tags[1] for _, _, tags in split.parts["train"]]
        assert tenses == ["PRS"] * 992 + ["PST"] * 4 + ["FUT"] * 4
        assert {tags[1] for _, _, tags in split.parts["past"]} == {"PST"}
        assert len({word for part in split.parts.values() for word in part}) == 1400
    assert made[0].parts != made[1].parts


def test_too_few_words_are_said():
    says = r"for 4 hints: found 56 for the part past, expected 100; .* by `cgen data split lemma` or `random`"
    with pytest.raises(DataError, match=says):
        list(few_shot(words(past=60, future=200, other=500), "", (4,)))
    with pytest.raises(DataError, match="501 hints of past and future each do not fit into the 1,000 words"):
        list(few_shot(words(), "", (4, 501)))
    with pytest.raises(DataError, match="for the part train, expected 1000"):
        list(few_shot(words(other=20), "", (4,)))
