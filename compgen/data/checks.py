"""What is wrong, or odd, in a table of examples: each check looks at all rows at once and returns a finding or none.

Rows are a frame with the columns `number` (of the line), `source`, `target` and `split`, all text; tokens stand between
spaces. In sentences all targets are empty.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from compgen.data.brackets import balanced, labelled
from compgen.data.examples import COLUMNS, PREDICTED, SIDES, TRAIN, Dataset
from compgen.data.named import SPLITS, TAGS, USUAL, plain, unnamed_forms
from compgen.data.signs import JOINER, PIECE
from compgen.data.unimorph import BUNDLE, SOME_TAGS, are_tags
from compgen.data.vocabulary import CONTROL, SPECIALS

SAMPLE = 1_000  # rows that `worst` looks at
FEWEST = 10  # rows, from which on the first can be told from the others
NEARLY = 0.9  # share of rows that counts as nearly all
RARE = 20  # rows without a word of other rows are rare if there are at least so many times as many rows
GOLDEN = (5**0.5 - 1) / 2  # multiples of it fill the unit interval evenly
NAMES = frozenset([*USUAL["source"], *USUAL["target"], *TAGS, "lemma", "form", "id", "split", "representation"])
ID = r"^\s*[^\d\s]{0,8}\d+\s*$"
AGAIN = "the same example as before"
APART = (
    "`cgen data write DATA --signs apart -o OUT` puts spaces around brackets and other signs, and between letters of "
    "scripts without spaces"
)
BACK = "answers keep them: where they must not, write --signs marked, and then answers with --signs joined"
WORD = r"^(?:(?:[^\p{Uppercase}\d\s]|\^[\p{Uppercase}\d])\s+)+(?:[\p{Uppercase}\d]\S*\s*)+$"  # letters, then tags
QUOTED = r'(?s)^"((?:[^"]|"")+)"$'  # a side in quotes, with doubled ones inside
GLUED = rf"[^\s{JOINER}][()\[\]{{}}]|[()\[\]{{}}]\S"  # a bracket in a token
LIST = r"""^\s*"?\[\s*["'].*["']\s*\]"?\s*$"""  # as JSON or Python writes a list of tokens, in a cell of a table
INVISIBLE = "\u200b\u2060\ufeff"  # joiners and non-joiners (U+200C, U+200D) are letters' own in some scripts
NO_BREAK = "\u00a0\u2007\u202f"

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class Finding(NamedTuple):
    """Something to know about a table.

    Attributes:
        severity: error (no command reads the table so), warning, or note.
        what: a sentence without its end.
        lines: the lines where it is so; none if it is so of the whole table.
        advice: what to do.
    """

    severity: Severity
    what: str
    lines: list[int]
    advice: str


Check = Callable[[pl.DataFrame], Finding | None]


def rows_of(dataset: Dataset) -> pl.DataFrame:
    """Return a dataset as rows, numbered from 1."""
    joined = [pl.col(side).list.join(" ") for side in SIDES]
    return dataset.frame.select(*joined, "split").with_row_index("number", offset=1)


def unsplit(dataset: Dataset) -> list[Finding]:
    """The finding for tokens of a dataset that no text holds, and no row shows; none if there are none."""
    odd = [pl.col(side).list.eval(pl.element().str.contains(r"^$|[ \t\r\n]")).list.any() for side in SIDES]
    numbers = (dataset.frame.select(pl.any_horizontal(odd)).to_series().arg_true() + 1).to_list()
    what, advice = "a token that is empty or has a space in it", "split texts at white space, as text.split() does"
    return [Finding("warning", what, numbers, advice)] if numbers else []


def worst(dataset: Dataset) -> str | None:
    """Return in a few words the worst that a cheap look, at some of the examples, finds in a table; None if nothing."""
    frame = dataset.frame.select(COLUMNS)
    # Evenly spread, and by no fixed step: tables may repeat something every ten rows. The first row is among them.
    places = (np.arange(min(SAMPLE, frame.height)) * GOLDEN % 1 * frame.height).astype(np.int64)
    places = np.union1d(places, (frame["split"] == TRAIN).arg_true()[:1].to_numpy())  # `splits` looks for one
    rows = rows_of(Dataset(frame[places] if frame.height > SAMPLE else frame))
    found = (check(rows) for check in (unformed, header, bars, splits, quotes, brackets))
    return next((finding.what for finding in found if finding and finding.severity != "note"), None)


def findings(rows: pl.DataFrame) -> list[Finding]:
    """Return what all checks find."""
    return [finding for check in CHECKS if (finding := check(rows))]


def _found(rows: pl.DataFrame, where: pl.Expr, severity: Severity, what: str, advice: str) -> Finding | None:
    """Return a finding for the rows where an expression holds, if there are any."""
    lines = rows.filter(where)["number"].to_list()
    return Finding(severity, what, lines, advice) if lines else None


def _either(test: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """Whether one side, at least, passes a test."""
    return pl.any_horizontal(test(pl.col(side)) for side in SIDES)


def unformed(rows: pl.DataFrame) -> Finding | None:
    """Words whose form is missing: no column is called `form`, or there are only lemmas and tags."""
    if rows.height > 1 and (named := unnamed_forms(rows.select(COLUMNS).row(0))):
        what = f"the first line names columns of words, lemma and {named[0]}, but none is called form"
        return Finding("error", what, [rows["number"][0]], f"if {named[1]!r} holds the forms, call it form")
    tags = rows["target"]
    several = 2 * tags.str.contains(BUNDLE).sum() > rows.height and (rows["split"] == TRAIN).all()
    if not (several and tags.str.contains(f"^{SOME_TAGS}$").all()):
        return None
    advice = "`cgen predict` reads them so; to learn from, write lemma TAB form TAB tags"
    return Finding("warning", "words to inflect, lemma TAB tags, without forms", [], advice)


def header(rows: pl.DataFrame) -> Finding | None:
    """The first row is the names of the columns."""
    if rows.height < 2 or unformed(rows):
        return None
    sides = [rows[side][0].split() for side in SIDES]
    named = [any(plain(word) in NAMES for word in side) or plain(" ".join(side)) in NAMES for side in sides]
    its_own = rows[0, "split"] == TRAIN or rows[0, "split"] not in rows[1:, "split"]
    words = all(len(side) <= 4 and re.fullmatch(r"[\w:.-]+", "".join(side)) for side in sides)
    if not (words and all(named) and its_own):
        return None
    return Finding(
        "warning",
        f"the first line ({' | '.join(map(' '.join, sides))}) looks like names of columns, and is read as an example",
        [rows["number"][0]],
        "delete the line, or name the columns by --source and --target",
    )


def strange_first(rows: pl.DataFrame, fields: Sequence[str]) -> Finding | None:
    """The first row, of these fields, has a few words that no other row has, which is rare: names of columns?"""
    bags = [{*source.split(), *target.split()} for source, target in rows.select(SIDES).iter_rows()]
    held = Counter(token for bag in bags for token in bag)
    strange = [all(held[token] == 1 for token in bag) for bag in bags]
    first = [rows[side][0] for side in SIDES]
    few = all(0 < len(text.split()) <= 4 for text in first)
    known = header(rows) or unformed(rows)
    if len(bags) < FEWEST or not (few and strange[0] and RARE * sum(strange) <= len(bags)) or known:
        return None
    return Finding(
        "note",
        f"all words of the first line ({' | '.join(fields)}) occur in no other: is it a header?",
        [rows["number"][0]],
        f"if it names the columns, delete it, or say {naming(*fields)}",
    )


def naming(*names: str) -> str:
    """Return the options that name two columns: those with a usual name as a part of theirs, or the first ones."""
    left, chosen = [*names], dict[str, str]()
    for side in SIDES:
        usual = (name for name in left if {*re.split(r"[\W_]+", name.lower())} & {*USUAL[side]})
        if name := next(usual, ""):
            left.remove(name)
            chosen[side] = name
    source, target = [chosen.get(side) or left.pop(0) for side in SIDES]
    return shlex.join(["--source", source.strip(), "--target", target.strip()])


def bars(rows: pl.DataFrame) -> Finding | None:
    """Sentences of which most are pairs with bars between them."""
    barred = pl.col("source").str.contains(r"\S\s*\|\|\|\s*\S") & (pl.col("target") == "")
    finding = _found(rows, barred, "warning", "lines with ||| are read as sentences", "write TABs for |||, in a .tsv")
    return finding if finding and 2 * len(finding.lines) > rows.height else None


def splits(rows: pl.DataFrame) -> Finding | None:
    """Names of splits that look like targets, or without the one to learn from, where not all are answers."""
    if unformed(rows):
        return None
    names = rows["split"].unique(maintain_order=True)
    spaced = names.str.strip_chars().str.contains(r"\s").sum()
    many = len(names) > max(20, rows.height / 20)
    odd = many or 2 * spaced > len(names) or ids(rows["source"], rows["split"])
    if not odd and (TRAIN in names or names.is_in([PREDICTED]).all()):  # or there are no rows
        return None
    shown = ", ".join(names[:3].str.slice(0, 20).to_list()) + (f"... {len(names):,} in all" if len(names) > 3 else "")
    if not odd and names.str.contains(SPLITS).all():
        advice = f"name the one to learn from by --split, or call it {TRAIN}"
        return Finding("note", f"no split {TRAIN}, which commands learn from; found {shown}", [], advice)
    what = f"read as names of splits: {shown}" + "; they look like targets" * bool(odd)
    what += "" if TRAIN in names else f"; {TRAIN} is not among them"
    return Finding("warning" if TRAIN in names else "error", what, [], _splits_advice(rows))


def _splits_advice(rows: pl.DataFrame) -> str:
    """What to do about a third column that holds no splits."""
    third, spaced = rows["split"], [pl.col(side).str.contains(r"\S\s+\S") for side in SIDES]
    usual = third.str.contains(f"^{SOME_TAGS}$").all()  # not parted by commas or spaces
    # Targets in capitals are no tags that are parted by spaces: lemmas and forms are mostly single words.
    words = usual or 2 * rows.select(pl.any_horizontal(spaced).sum()).item() < rows.height
    tags = words and all(map(are_tags, third)) and not third.str.contains(SPLITS).any()
    second, last = (2 * rows[column].str.contains(BUNDLE).sum() > rows.height for column in ("target", "split"))
    if second or (last and (usual or not tags)):
        return "words? these are lemma TAB form TAB tags, in this order; tags begin with a capital or a digit: N;NOM;PL"
    return "words with one tag each, or without semicolons between tags? name the file .unimorph; " * tags + (
        "lines are source TAB target, or source TAB target TAB split: leave out a first column of ids; "
        f"examples to learn from have the split {TRAIN}, or none"
    )


def ids(first: pl.Series, third: pl.Series) -> bool:
    """Whether a first column is ids, by its own look and by a third that is no split; a header line does not matter."""
    if len(first) > 2:
        first, third = first[1:], third[1:]
    return bool(
        len(first) > 1
        and first.str.contains(ID).all()
        and first.n_unique() == len(first)
        and not third.str.contains(SPLITS).all()
    )


def quotes(rows: pl.DataFrame) -> Finding | None:
    """Quotes as of CSV that are read as part of the text."""
    quoted = _either(lambda side: side.str.strip_chars().str.contains(QUOTED))
    what = "sides in double quotes: the quotes are read as part of the text"
    finding = _found(rows, quoted, "warning", what, "save it as .csv, or without quotes")
    return finding if finding and 100 * len(finding.lines) >= rows.height else None


def lists(rows: pl.DataFrame) -> Finding | None:
    """A side that is a list of tokens in most rows, written as text: its brackets, quotes and commas are read, too."""
    sides = [f"{side}s" for side in SIDES if 2 * rows[side].str.contains(LIST).sum() > rows.height]
    what = f"most {' and '.join(sides)} are lists of tokens, of which brackets, quotes and commas are read as text"
    advice = "write the tokens with spaces between them, or name the column of the plain text"
    return Finding("warning", what, [], advice) if sides else None


def empty(rows: pl.DataFrame) -> Finding | None:
    """A side without a token."""
    none = [pl.col(side).str.contains(r"\S").not_() for side in SIDES]
    sentences = not rows["target"].str.contains(r"\S").any()
    where = none[0] if sentences else none[0] | none[1]
    return _found(rows, where, "error", "an empty side", "fill it in, or delete the line")


def special(rows: pl.DataFrame) -> Finding | None:
    """A token that no data may have."""
    sentences = not rows["target"].str.contains(r"\S").any()
    where = _either(lambda side: side.str.contains(f"[{CONTROL}]"))
    if not sentences:
        where |= _symbols()
    what = f"a control character, or a special symbol ({' '.join(SPECIALS)})"
    return _found(rows, where, "error", what, "rename it, or delete it")


def reserved(rows: pl.DataFrame) -> Finding | None:
    """Special symbols in sentences, which may stand there; not all that learns from sentences takes them."""
    if rows["target"].str.contains(r"\S").any():
        return None
    what = f"a special symbol ({' '.join(SPECIALS)}), which networks and language models refuse"
    return _found(rows, _symbols(), "warning", what, "rename it, or delete it, unless GECA alone is to read it")


def _symbols() -> pl.Expr:
    words = "|".join(map(re.escape, SPECIALS))
    return _either(lambda side: side.str.contains(rf"(?:^|\s)(?:{words})(?:\s|$)"))


def duplicates(rows: pl.DataFrame) -> Finding | None:
    """Examples that are there before."""
    again = pl.struct(COLUMNS).is_first_distinct().not_()
    return _found(_spaced(rows), again, "note", AGAIN, "remove it, if it is not to count twice")


def _spaced(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows whose sides are equal if their tokens are; in sentences only plain spaces part tokens."""
    if not rows["target"].str.contains(r"\S").any():
        return rows
    return rows.with_columns(pl.col(SIDES).str.replace_all(r"\s+", " ").str.strip_chars())


SEVERAL = "see which is right; where sources have several right targets, --keep-targets has --fix keep them"


def contradictions(rows: pl.DataFrame) -> Finding | None:
    """Sources whose target is another than before, in the same split."""
    other = _spaced(rows).with_columns(pl.col("number", "target").first().over("source", "split").name.suffix("_first"))
    other = other.filter(pl.col("target") != pl.col("target_first"))
    if other.is_empty():
        return None
    first, earlier = other.select("number", "number_first").row(0)
    what = f"a source with another target than before (that of line {first} is in line {earlier})"
    return Finding("warning", what, other["number"].to_list(), SEVERAL)


def leaks(rows: pl.DataFrame) -> Finding | None:
    """Test examples that are training examples."""
    return _leak(rows, ["source", "target"], "warning", "a test example that is also in train")


def leaked_sources(rows: pl.DataFrame) -> Finding | None:
    """Test examples whose source is in training, with another target."""
    whole = leaks(rows)
    rest = rows.filter(~pl.col("number").is_in(whole.lines)) if whole else rows
    return _leak(rest, ["source"], "note", "a test source that is in train with another target")


def _leak(rows: pl.DataFrame, on: list[str], severity: Severity, what: str) -> Finding | None:
    rows = _spaced(rows)
    train = rows.filter(pl.col("split").str.contains("(?i)^train"))
    rest = rows.filter(~pl.col("split").str.contains("(?i)^train"))
    if train.is_empty() or rest.is_empty():
        return None
    lines = rest.join(train.select(on).unique(), on=on, how="semi", maintain_order="left")["number"].to_list()
    advice = "keep it out of one of them, or its score is no generalisation"
    return Finding(severity, what, lines, advice) if lines else None


def brackets(rows: pl.DataFrame) -> Finding | None:
    """Sides with brackets that do not pair, where most rows have brackets that do."""
    bad: pl.Expr = pl.lit(False)
    skeletons = rows.select(pl.col(SIDES).str.replace_all(r"[^()\[\]{}]", ""))
    for side in SIDES:
        unbalanced = [text for text in skeletons[side].unique().to_list() if not balanced(text)]
        wrong = skeletons[side].is_in(unbalanced)
        if 2 * (skeletons[side] != "").sum() > rows.height and 4 * wrong.sum() < rows.height:
            bad |= pl.lit(wrong)
    what = "unbalanced brackets, where those of most lines are balanced"
    return _found(rows, bad, "warning", what, "mend it, or leave it out")


def lengths(rows: pl.DataFrame) -> Finding | None:
    """Sides that are far longer than the usual."""
    counts = [pl.col(side).str.count_matches(r"\S+") for side in SIDES]
    far = [(count > 5 * count.median()) & (count > count.median() + 30) for count in counts]
    what = "more than five times as long as usual"
    return _found(rows, far[0] | far[1], "note", what, "see whether it is one example")


def characters(rows: pl.DataFrame, signs: str, what: str, advice: str) -> Finding | None:
    """Sides with one of some characters."""
    where = _either(lambda side: side.str.contains(f"[{signs}]"))
    return _found(rows, where, "warning", what, advice)


def invisible(rows: pl.DataFrame) -> Finding | None:
    """Characters of zero width, which nobody sees."""
    return characters(rows, INVISIBLE, "zero-width characters: tokens that look the same are different", "remove them")


def no_break(rows: pl.DataFrame) -> Finding | None:
    """Spaces that keep lines together."""
    return characters(rows, NO_BREAK, "no-break spaces, as web pages have", "write plain spaces")


def replacement(rows: pl.DataFrame) -> Finding | None:
    """The sign that stands for a character which an earlier conversion has lost."""
    return characters(rows, "\ufffd", "a character lost in a conversion (U+FFFD)", "save the table again as UTF-8")


def decomposed(rows: pl.DataFrame) -> Finding | None:
    """Accents stored apart from their letters (text that is not in NFC)."""
    apart = _either(lambda side: side.str.normalize("NFC") != side)
    what = "accents stored apart from their letters (not in Unicode's NFC)"
    return _found(rows, apart, "warning", what, "compose them: NFC")


def unsegmented(rows: pl.DataFrame) -> Finding | None:
    """A side that is one long token in most rows, or one token in nearly all rows, nearly always another one."""
    for side in () if unformed(rows) else SIDES:
        text = rows[side].str.strip_chars()
        one = ~text.str.contains(r"\s") & (text.str.len_chars() > 1)
        long, count = one & (text.str.len_chars() > 12), rows.height
        alike = "long " if 2 * long.sum() > count else ""
        words = count >= FEWEST and min(one.sum(), text.n_unique()) >= NEARLY * count
        if count and (alike or words):
            shown = text.filter(long if alike else one)[0][:40]
            advice = "put spaces between what is to be exchanged: between letters, or between words"
            advice += f"; {APART}; {BACK}" if pl.Series([shown]).str.count_matches(PIECE)[0] > 1 else ""
            return Finding("warning", f"most {side}s are one {alike}token, as {shown!r}", [], advice)
    return None


def copies(rows: pl.DataFrame) -> Finding | None:
    """Targets that are, nearly all of them, their sources."""
    same = rows.select(((pl.col("source") == pl.col("target")) & (pl.col("target") != "")).sum()).item()
    if rows.height < FEWEST or same < NEARLY * rows.height:
        return None
    what = f"{same:,} of {rows.height:,} targets are the same as their sources"
    return Finding("warning", what, [], "see whether source and target are the columns that you mean")


def glued(rows: pl.DataFrame) -> Finding | None:
    """Brackets that are part of tokens, and are no brackets with labels, in most rows of a side with several tokens."""
    inside = {side: _unlabelled(rows[side]).str.contains(GLUED) for side in SIDES}
    several = {side: rows[side].str.contains(r"\S\s+\S") & ~rows[side].str.contains(LIST) for side in SIDES}
    sides = [side for side in SIDES if 2 * (inside[side] & several[side]).sum() > rows.height]
    what = f"brackets in {' and '.join(f'{side}s' for side in sides)} are parts of tokens"
    return Finding("note", what, [], f"{APART}, so that parts can be exchanged; {BACK}") if sides else None


def _unlabelled(side: pl.Series) -> pl.Series:
    """Return texts without the brackets that have labels: methods see that these are brackets."""
    tokens = side.str.extract_all(r"\S+")
    labels = labelled({*tokens.explode().drop_nulls()})
    return tokens.list.eval(pl.element().filter(~pl.element().is_in([*labels]))).list.join(" ") if labels else side


def marks(rows: pl.DataFrame) -> Finding | None:
    """Words on both sides that differ by the joiner alone: they are different tokens, so they are not shared."""
    if not any(rows[side].str.contains(JOINER, literal=True).any() for side in SIDES):
        return None
    lost: list[str] = []  # one word for each example that loses any
    sharing = 0
    for pair in rows.select(SIDES).iter_rows():
        sides = [{*side.split()} for side in pair]
        bare = [{token.removeprefix(JOINER) for token in side} for side in sides]
        words = {word for word in bare[0] & bare[1] if any(map(str.isalnum, word))}
        sharing += bool(words)
        lost += sorted(word for word in words if not {word, JOINER + word} & sides[0] & sides[1])[:1]
    if 2 * len(lost) <= sharing:
        return None
    what = f"most words that both sides have differ by the sign of what stood close, as {lost[0]} and {JOINER}{lost[0]}"
    advice = "csl and mask find little that is shared so; --signs apart leaves it shared, but cannot be joined again"
    return Finding("note", what, [], advice)


def spelled(rows: pl.DataFrame) -> Finding | None:
    """Sides that are letters, not words; words of inflection are meant to be."""
    if 2 * rows["source"].str.contains(r"(?:^|\s)[\p{Lu}\d][^\s]*$").sum() > rows.height:
        return None
    for side in SIDES:
        tokens = rows[side].str.extract_all(r"\S+").explode().drop_nulls()
        if len(tokens) > 3 * rows.height and 10 * tokens.str.contains(r"^\p{L}$").sum() > 7 * len(tokens):
            advice = "methods exchange letters; for words, take the spaces out and put them between words"
            return Finding("note", f"{side}s are letters separated by spaces", [], advice)
    return None


def repeated_tags(rows: pl.DataFrame) -> Finding | None:
    """Words with a tag twice, where most rows are words."""
    words = rows.filter(pl.col("source").str.contains(WORD))
    tags = pl.col("source").str.extract_all(r"\s[\p{Uppercase}\d]\S*")
    if 2 * words.height <= rows.height:
        return None
    again = tags.list.len() > tags.list.n_unique()
    return _found(words, again, "note", "the tags of a word have one of them twice", "see whether it is meant")


CHECKS: tuple[Check, ...] = (
    *(unformed, header, bars, splits, quotes, lists, empty, special, reserved, brackets, contradictions, leaks),
    *(invisible, no_break, replacement, decomposed, unsegmented, duplicates, leaked_sources, lengths, glued, marks),
    *(spelled, repeated_tags, copies),
)
