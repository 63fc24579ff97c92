"""LexSym as an augmenter: `fit` finds a lexicon and its types, `sample` exchanges words with what they mean.

    for each sample: copy a random example; draw a permutation of the lexemes of each type; replace each word by the
                     form, of its type, of the lexeme that takes its place, and each symbol likewise

A sample is in the orbit of the training examples under the symmetries of the lexicon (Akyürek and Andreas 2023, theorem
1). Deviations: a draw permutes all lexemes of the example, not two (`move`); types are found from contexts in source
and target, which needs no tagger, and forms of a lexeme have types of their own (`mode`). A word whose symbols are not
in the target stays as it is.
"""

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from itertools import count as count_from
from math import prod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from compgen.augmenters.agreement import Agreement
from compgen.augmenters.base import HOST, Augmenter, Shown, counted
from compgen.augmenters.drawing import BLOCK, MANY, until_exhausted
from compgen.csl.seeds import shared_phrases
from compgen.data.examples import Dataset, Side, first_rows
from compgen.data.ragged import lists_of, ranges
from compgen.data.random import SamplePurpose, words
from compgen.errors import DataError, ExhaustedError
from compgen.lexsym import lexicon
from compgen.lexsym.alignment import Pairs
from compgen.lexsym.elsewhere import Elsewhere
from compgen.lexsym.lexicon import ALONE, JOINED, Entry
from compgen.lexsym.options import LexsymOptions
from compgen.progress import Watch

Change = dict[str, str]  # words and their images


class _Host(NamedTuple):
    """An example with words that may be exchanged, and its row in the data."""

    source: Side
    target: Side
    row: int
    words: list[str]


class Lexsym(Augmenter[LexsymOptions]):
    """Exchange words of the same type, and their meanings (LexSym, Akyürek and Andreas 2023).

    Samples are new and distinct, and their sources are not in DATA. They have the columns `host`, the row of the
    training example that was changed, and `swaps`, what was put for what.

    Attributes, after `fit`:
        entries: the lexicon, in mode `pairs`.
        agreement: of exchanges with the data, by type.
        ambiguous: in how many examples some word stays, because another has a symbol of it too (`Elsewhere`).
    """

    name = "lexsym"
    options_type = LexsymOptions
    columns: ClassVar[dict[str, Any]] = {HOST: pl.Int64, "swaps": pl.String}
    usual = 10_000
    moment = 10_000
    example = """cgen augment lexsym scan/jump -o more.tsv

        cgen augment lexsym cogs/lf --write-lexicon lexicon.tsv -n 20000 -o more.tsv"""

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002
        """Find the lexicon, and in each distinct example the words that may be exchanged."""
        rows = first_rows(dataset)
        if any(JOINED in token for pair in rows for side in pair for token in side):
            raise DataError(f"lexsym: found a token with the control character {JOINED!r}, expected none")
        self._known = {source for source, _ in rows}
        given = None if self.options.lexicon is None else lexicon.read(Path(self.options.lexicon))
        join = _joiner(dataset, given or [])
        pairs = [(join(source), join(target)) for source, target in rows]
        self._find(pairs, given)
        self.ambiguous = 0
        hosts = (_Host(*pair, row, self._movable(*pair)) for row, pair in zip(rows.values(), pairs, strict=True))
        self._hosts = [host for host in hosts if host.words]
        if not self._hosts:
            raise ExhaustedError(
                f"lexsym can make nothing of these data: of {len(self._symbols):,} words that are linked with symbols, "
                f"{len(self._partners):,} have another to be exchanged with; correct the lexicon (--write-lexicon, "
                "--lexicon; in Python write_lexicon=, lexicon=), or give more examples"
            )

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:
        """The first `count` new, distinct examples of draws 0, 1, ...; if few changes are possible, of all of them."""
        total = sum(map(self._ways, self._hosts))
        made: dict[Side, tuple[Side, int, str]] = {}
        few = total if total <= MANY else 0
        for block in until_exhausted([self._every(seed)] if few else self._draws(seed), made, count, watch, few):
            for host, change, pick in block:
                if len(made) == count:
                    break
                moved = self._symmetry(host, change)
                source = _put(host.source, moved)
                if moved and source not in self._known and source not in made:
                    made[source] = _put(host.target, self._meaning(moved, pick)), host.row, _named(moved)
        if not made and count != 0:
            raise ExhaustedError(f"lexsym: {total:,} exchanges of words make no new example of these data")
        targets, rows, swaps = zip(*made.values(), strict=True) if made else ((), (), ())
        sides = {"source": lists_of([*made], pl.String()), "target": lists_of(targets, pl.String())}
        return pl.DataFrame(sides | {HOST: rows, "swaps": swaps}, schema_overrides=self.columns)

    def facts(self) -> dict[str, Any]:
        """The sizes of the lexicon and of its types, and how often exchanges agree with DATA."""
        sizes = {"words": len(self._symbols), "exchangeable": len(self._partners), "types": self.types}
        return sizes | {"agreeing": self.agreement.counts, "ambiguous": self.ambiguous}

    def no_more(self) -> str:
        """Say that exchanges make only known examples by now."""
        return "hardly any exchange of these words is new any more"

    def in_words(self) -> str:
        """The report in words, for people."""
        said = f"{super().in_words()}; {len(self._partners):,} words of {counted(self.types, 'type')}"
        said += f"; of {self.agreement.in_words()}" if self.agreement.kept[1] else ""
        stays = "a word is not exchanged, as others in the source have its symbol too"
        return said + (f"; in {counted(self.ambiguous, 'example')} {stays}" if self.ambiguous else "")

    def warnings(self) -> list[str]:
        """That exchanges rarely agree with the data."""
        return self.agreement.warnings("or correct a lexicon (--write-lexicon, --lexicon)")

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """The example that was changed; words that were exchanged, and their symbols, are marked alike."""
        self.require_row(sample, *self.columns)
        shown, swaps = self.shown("from", sample[HOST]), str(sample["swaps"])
        marks: dict[str, int] = {}
        tokens = {token for token, _ in shown.source}
        words = {_named({word: ""}): word for word in self._symbols if tokens.issuperset(word.split(JOINED))}
        for number, swap in enumerate(swaps.split(" ")):  # words may have other white space in them
            heads = filter(swap.startswith, words)  # several, as words and images may have equal signs
            word = words.get(max(heads, key=len, default=""), "")
            units = [token for unit in (word, *self._symbols.get(word, ())) for token in unit.split(JOINED)]
            marks |= dict.fromkeys(units, number)
        source, target = ([(token, marks.get(token, -1)) for token, _ in side] for side in (shown.source, shown.target))
        return [Shown("from", source, target), Shown.plain("exchanged", [swaps], [])]

    def _find(self, pairs: Pairs, given: list[Entry] | None) -> None:
        """Find what words mean, and which may take each other's place; or go by a given lexicon."""
        options, self.entries, self.agreement = self.options, list[Entry](), Agreement({}, ())
        self._weights: dict[str, float] = {}  # of words, in the reference
        self._permutes = options.mode == "pairs" and options.move in {None, "permute"}
        if options.mode == "pairs":
            partners = self._by_type(pairs, given)
        else:
            found = lexicon.frequent(lexicon.align(pairs, options.aligner), pairs, options.links)
            if options.mode == "reference":
                found = lexicon.one_to_many(lexicon.most_frequent(found), whole_words=True)
                self._weights = {word: 1 / max(symbols.values()) for word, symbols in found.items()}
                partners = lexicon.coded_partners(pairs, found)
            else:
                found = lexicon.one_to_many(found)
                partners = lexicon.published_partners(pairs, found)
            self._symbols = {word: tuple(sorted(symbols)) for word, symbols in found.items()}
        self._partners = {word: others for word, others in partners.items() if others}
        self.types = len({id(others.group) for others in self._partners.values()})

    def _by_type(self, pairs: Pairs, given: list[Entry] | None) -> lexicon.Partners:
        """Find a lexicon with types, or take a given one, and leave out types that do not agree with the data."""
        options = self.options
        if given is not None:
            lexicon.check(str(options.lexicon), given, pairs)
        found = lexicon.find(pairs, options.aligner, options.links) if given is None else given
        if options.write_lexicon is not None:
            lexicon.write(Path(options.write_lexicon), found)
        counts = lexicon.agreement(pairs, found)
        # 55 of 100 is 0.55 exactly, but 0.55 times 100 is more than 55.
        wrong = {name for name, (right, of) in counts.items() if of and right / of < options.agreement}
        self.agreement = Agreement(counts, wrong)
        self.entries = [one for one in found if one.type not in (ALONE, *wrong)]
        self._symbols = {one.word: one.symbols for one in found}
        self._elsewhere = Elsewhere(pairs)
        self._forms: dict[Side, frozenset[str]] = defaultdict(frozenset)  # the words that mean a lexeme
        for one in found:
            self._forms[one.symbols] |= {one.word}
        members: dict[str, list[str]] = defaultdict(list)
        for one in self.entries:
            members[one.type].append(one.word)
        return lexicon.others_of(members.values())

    def _movable(self, source: Side, target: Side) -> list[str]:
        """The words of an example that may be exchanged, without those whose symbols other words mean, too."""
        meant = {*target}.issuperset
        found = [one for one in dict.fromkeys(source) if one in self._partners and meant(self._symbols[one])]
        clear = [word for word in found if not self._unclear(source, target, word)]
        self.ambiguous += len(clear) < len(found)
        return clear

    def _unclear(self, source: Side, target: Side, word: str) -> bool:
        """Whether the target has a symbol of a word more often than the source has words of it, and of others too.

        Such a word stays as it is; the published modes exchange it as well.
        """
        if self.options.mode != "pairs":
            return False
        symbols, here = self._symbols[word], {*source}
        forms = self._forms[symbols]
        words = sum(one in forms for one in source)
        return any(target.count(one) > words and self._elsewhere.means(here, forms, one) for one in symbols)

    def _ways(self, host: _Host) -> int:
        """How many changes there are of an example, those among them that are no permutations."""
        sizes = [1 + len(self._partners[word]) for word in host.words]
        return prod(sizes) if self._permutes else sum(sizes) - len(sizes)

    def _every(self, seed: int) -> Iterator[tuple[_Host, Change, int]]:
        """All changes of all examples, in random order; those to words of high weight tend to come first."""
        ways = np.array([self._ways(host) for host in self._hosts])
        row, number = ranges(np.zeros_like(ways), ways)
        numbers = words(seed, np.arange(len(row)), SamplePurpose.SYMMETRIES, 2)
        keys = numbers[:, 0]
        if self._weights:  # a race at these rates: who is drawn first is so by weight
            images = (image for host in self._hosts for word in host.words for image in self._partners[word])
            keys = -np.log((keys + 0.5) * 2.0**-32) / np.array([self._weights[image] for image in images])
        order = np.argsort(keys, kind="stable")
        for place, change, pick in zip(*(some[order].tolist() for some in (row, number, numbers[:, 1])), strict=True):
            host = self._hosts[place]
            yield host, self._numbered(host, change), pick

    def _numbered(self, host: _Host, number: int) -> Change:
        """A change of an example by its number."""
        change: Change = {}
        for word in host.words:
            if self._permutes:
                number, digit = divmod(number, 1 + len(self._partners[word]))
                change[word] = self._image(word, digit)
            elif number < len(self._partners[word]):
                return {word: self._partners[word][number]}
            else:
                number -= len(self._partners[word])
        return change

    def _draws(self, seed: int) -> Iterator[Iterator[tuple[_Host, Change, int]]]:
        """Blocks of random changes, without end."""
        most = max(len(host.words) for host in self._hosts)
        for start in count_from(0, BLOCK):
            numbers = words(seed, np.arange(start, start + BLOCK), SamplePurpose.SYMMETRIES, 2 * most + 2)
            yield map(self._drawn, (numbers * 2.0**-32).tolist())

    def _drawn(self, numbers: Sequence[float]) -> tuple[_Host, Change, int]:
        """A random change of a random example, by numbers in [0, 1)."""
        which, pick, *others = numbers
        host = self._hosts[int(which * len(self._hosts))]
        if self._permutes:
            change = self._permutation(host, others)
        else:
            word = host.words[int(pick * len(host.words))]
            weights = [*accumulate(self._weights.get(partner, 1.0) for partner in self._partners[word])]
            change = {word: self._partners[word][bisect(weights, others[0] * weights[-1])]}
        return host, change, int(pick * 2**32)

    def _permutation(self, host: _Host, numbers: Sequence[float]) -> Change:
        """An image of each word, of lexemes that are not images yet; nothing if some word is left without."""
        lexemes: dict[Side, Side] = {}
        change: Change = {}
        for word, first, second in zip(host.words, numbers[::2], numbers[1::2], strict=False):
            old, image = self._symbols[word], self._image(word, int(first * (1 + len(self._partners[word]))))
            if not _fits(old, self._symbols[image], lexemes):  # then one of those that do, each of them as probable
                free = [one for one in (word, *self._partners[word]) if _fits(old, self._symbols[one], lexemes)]
                if not free:
                    return {}
                image = free[int(second * len(free))]
            change[word], lexemes[old] = image, self._symbols[image]
        return change

    def _image(self, word: str, number: int) -> str:
        """What takes the place of a word that is permuted, by its number: 0 is the word itself."""
        return self._partners[word][number - 1] if number else word

    def _symmetry(self, host: _Host, change: Change) -> dict[str, str]:
        """What takes the place of each word, for words and their images; nothing if no symmetry does so."""
        moved = {word: image for word, image in change.items() if word != image}
        if self._permutes:
            if not self._consistent(change):
                return {}
        elif self.options.move != "substitute":
            if any(self._unclear(host.source, host.target, image) for image in moved.values()):
                return {}
            moved |= {image: word for word, image in moved.items()}
        # A word that stays must not mean what goes away.
        gone = {self._symbols[word] for word in moved}
        stays = any(word not in moved and self._symbols.get(word) in gone for word in host.source)
        return {} if stays else moved

    def _consistent(self, change: Change) -> bool:
        """Whether all words of a lexeme become words of one other, and no two lexemes the same."""
        lexemes = {(self._symbols[word], self._symbols[image]) for word, image in change.items()}
        return len({old for old, _ in lexemes}) == len({new for _, new in lexemes}) == len(lexemes)

    def _meaning(self, moved: dict[str, str], pick: int) -> dict[str, str]:
        """What takes the place of each symbol; `pick` chooses one where an image has more or fewer than the word."""
        found: dict[str, str] = {}
        for word, image in moved.items():
            old, new = self._symbols[word], self._symbols[image]
            found |= zip(old, new if len(new) == len(old) else [new[pick % len(new)]] * len(old), strict=True)
        return found


def _fits(old: Side, new: Side, lexemes: Mapping[Side, Side]) -> bool:
    """Whether a lexeme may become another, given what others, or it in another form, have become."""
    return lexemes[old] == new if old in lexemes else new not in lexemes.values()


def _put(side: Side, images: dict[str, str]) -> Side:
    """A side with tokens replaced by their images, and phrases taken apart."""
    changed = JOINED.join([images.get(token, token) for token in side])
    return tuple(changed.split(JOINED))


def _named(moved: dict[str, str]) -> str:
    return " ".join(f"{word}={image}" for word, image in moved.items()).replace(JOINED, "_")


def _joiner(dataset: Dataset, entries: Sequence[Entry]) -> Callable[[Side], Side]:
    """What joins the tokens of phrases, the longest first: those that sources and targets share, and of a lexicon."""
    # An example that is a copy is no phrase: exchanged for another, it gives that one.
    shared = shared_phrases(pair for pair in dataset.pairs() if pair[0] != pair[1])
    shared |= {tuple(unit.split(JOINED)) for entry in entries for unit in (entry.word, *entry.symbols)}
    lengths: dict[str, list[int]] = defaultdict(list)  # by the first token; many phrases may begin alike, as by a quote
    for first, length in sorted({(phrase[0], len(phrase)) for phrase in shared}, reverse=True):
        lengths[first].append(length)

    def join(side: Side) -> Side:
        joined, place = list[str](), 0
        while place < len(side):
            parts = (side[place : place + length] for length in lengths[side[place]])
            found = next((part for part in parts if part in shared), (side[place],))
            joined.append(JOINED.join(found))
            place += len(found)
        return tuple(joined)

    return join
