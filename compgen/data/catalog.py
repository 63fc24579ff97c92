"""The known data sets, and `load`, which returns the dataset that a user calls DATA."""

import difflib
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from compgen.data import checks, cogs, downloads, scan, smcalflow, text2sql, unimorph
from compgen.data.content import suffix_of, typed
from compgen.data.examples import TRAIN, Dataset, joined
from compgen.data.formats import read_dataset
from compgen.data.named import USUALLY, Columns
from compgen.errors import DataError, UserError, tell
from compgen.files import reading


class Known(NamedTuple):
    """A data set that is made here or read from downloaded files.

    `splits` maps a name to the function that makes the split and to a few words on what is new in its test part. The
    function raises `downloads.MissingFileError` where a file has to be downloaded first.
    """

    description: str
    citation: str
    splits: Mapping[str, tuple[Callable[[], Dataset], str]]


LANGUAGES = ("arabic", "bengali", "finnish", "georgian", "navajo", "spanish", "swahili", "turkish")
_NOT_SQL = "data/non-sql-data"


def _text2sql(file: str, split: text2sql.Split, folder: str = "data") -> Dataset:
    origin = f"github.com/jkkummerfeld/text2sql-data, folder {folder}"
    return text2sql.read(downloads.find(f"text2sql/{file}", origin=origin), split)


def _funql(split: str) -> Dataset:
    origin = (
        "github.com/Zhaoyi-Li21/Compgen_l2s2, folder data/geoquery; one file a part, question TAB program, in place of "
        "two: iid_train.tsv, iid_val.tsv, iid_test.tsv, and template_ for its folder comp"
    )
    # `sacramento,` is no word of a question and could not be copied: a comma is a token of its own.
    apart = pl.col("target").list.join(" ").str.extract_all("[^ ,]+|,")
    read = []
    for part, file in ((TRAIN, "train"), ("dev", "val"), ("test", "test")):
        found = read_dataset(downloads.find(f"geoquery_subs/{split}_{file}.tsv", origin=origin), "tsv")
        read.append(Dataset(found.frame.with_columns(target=apart, split=pl.lit(part))))
    return joined(read)


def _cogs(form: cogs.Form) -> Dataset:
    origin = "github.com/najoungkim/COGS, folder data"
    if form == "variable-free":
        origin += (
            ", by way of preprocess_cogs_data.py in github.com/google-research/language, folder "
            "language/compgen/csl/tasks/cogs/tools"
        )
    # `lf.` tells the published files from variable-free ones, where somebody keeps both in one folder.
    first = ("lf.", "") if form == "lf" else ("",)
    names = {part: [f"cogs/{prefix}{part}.tsv" for prefix in first] for part in cogs.PARTS}
    return cogs.read({part: downloads.find(*some, origin=origin) for part, some in names.items()}, form)


def _smcalflow(shots: int) -> Dataset:
    domain = "smcalflow_cs/calflow.orgchart.event_create"
    origin = (
        f"https://www.cs.cmu.edu/~pengchey/reg_attn_data.zip, folder data/{domain}; see "
        "github.com/microsoft/compositional-generalization-span-level-attention, which also tells how to make "
        "train.jsonl and so on, for the same folder, from SMCalFlow"
    )
    folder = f"{domain}/source_domain_with_target_num{shots}"
    names = {
        part: (f"{folder}/{file}.jsonl", f"{folder}/{file}.alignment.jsonl") for part, file in smcalflow.PARTS.items()
    }
    return smcalflow.read({part: downloads.find(*both, origin=origin) for part, both in names.items()})


def find_words(language: str, part: str) -> Path:
    """Return the file of a language's words in SIGMORPHON 2018: train-high, train-medium, train-low, dev or test.

    Raises:
        MissingFileError: it has to be downloaded first.
        DataError: no language is named.
    """
    if not language:
        raise DataError(f"found sigmorphon, expected sigmorphon/LANGUAGE, for instance sigmorphon/{LANGUAGES[0]}")
    name = f"{language}-{part}"
    origin = "github.com/sigmorphon/conll2018, folder task1/all"
    return downloads.find(f"sigmorphon/{name}", f"sigmorphon2018/{name}", origin=origin)


def _words(language: str) -> Dataset:
    parts = {"train": "train-high"} | {part: part for part in ("train-medium", "train-low", "dev", "test")}
    # In lower case: the published preprocessing, and so the figures, are of such words.
    return joined(unimorph.read(find_words(language, file), split, lower_as=language) for split, file in parts.items())


def _swapped(make: Callable[[], Dataset]) -> Dataset:
    return make().swapped()


DATASETS: dict[str, Known] = {
    "scan": Known(
        description="navigation commands and their action sequences, 20,910 in all",
        citation="Lake and Baroni (2018), Generalization without systematicity, ICML; "
        "Loula, Baroni and Lake (2018), Rearranging the familiar, BlackboxNLP",
        splits=scan.SPLITS,
    ),
    "nacs": Known(
        description="SCAN from actions to commands; nearly all actions have several commands, any of them right",
        citation="Bastings et al. (2018), Jump to better conclusions, BlackboxNLP; "
        "Andreas (2020), Good-enough compositional data augmentation, ACL, section 4.1",
        splits={name: (partial(_swapped, make), novelty) for name, (make, novelty) in scan.SPLITS.items()},
    ),
    "geo": Known(
        description="GeoQuery, 877 questions on the geography of the USA, with SQL or with logical forms",
        citation="Zelle and Mooney (1996), Learning to parse database queries, AAAI; "
        "Finegan-Dollak et al. (2018), Improving text-to-SQL evaluation methodology, ACL",
        splits={
            "sql-query": (partial(_text2sql, "geography.json", "query"), "all queries"),
            "sql-question": (partial(_text2sql, "geography.json", "question"), "questions, not all queries"),
            "logic-query": (partial(_text2sql, "geography-logic.txt", "query", _NOT_SQL), "all queries"),
            "logic-question": (
                partial(_text2sql, "geography-logic.txt", "question", _NOT_SQL),
                "questions, not all queries",
            ),
        },
    ),
    "geo-funql": Known(
        description="GeoQuery with FunQL, names written out, as published with SUBS",
        citation="Zelle and Mooney (1996), Learning to parse database queries, AAAI; Yang, Zhang and Yang (2022), "
        "SUBS: Subtree substitution for compositional semantic parsing, NAACL",
        splits={
            "question": (partial(_funql, "iid"), "questions, not all programs"),
            "query": (partial(_funql, "template"), "all programs, names left blank"),
        },
    ),
    "scholar": Known(
        description="817 questions on scientific papers, with SQL",
        citation="Iyer et al. (2017), Learning a neural semantic parser from user feedback, ACL; "
        "Finegan-Dollak et al. (2018), Improving text-to-SQL evaluation methodology, ACL",
        splits={
            "query": (partial(_text2sql, "scholar.json", "query"), "all queries"),
            "question": (partial(_text2sql, "scholar.json", "question"), "most questions"),
        },
    ),
    "sigmorphon": Known(
        description="lemmas and tags with the inflected forms of eight languages in lower case, for most 10,000 to "
        "train on; other files of SIGMORPHON and UniMorph, whose names have no suffix, are read as words with their "
        "capitals",
        citation="Cotterell et al. (2018), The CoNLL-SIGMORPHON 2018 shared task: Universal morphological "
        "reinflection, CoNLL",
        splits={language: (partial(_words, language), "forms") for language in LANGUAGES},
    ),
    "smcalflow-cs": Known(
        description="requests for calendar events or about an organization, with programs; by the number of training "
        "pairs that need both, as all of test-cross do; test needs one",
        citation="Yin et al. (2021), Compositional generalization for neural semantic parsing via span-level "
        "supervised attention, NAACL; Andreas et al. (2020), Task-oriented dialogue as dataflow synthesis, TACL; "
        "prepared as by Qiu et al. (2022)",
        splits={str(shots): (partial(_smcalflow, shots), "in test-cross, combinations") for shots in (8, 16, 32)},
    ),
    "cogs": Known(
        description="English sentences and their meanings, with the further test split gen",
        citation="Kim and Linzen (2020), COGS, EMNLP; variable-free form: Qiu et al. (2022), Improving compositional "
        "generalization with latent structure and data augmentation, NAACL",
        splits={
            "lf": (partial(_cogs, "lf"), "in gen, combinations"),
            "variable-free": (partial(_cogs, "variable-free"), "in gen, combinations"),
        },
    ),
}


def names() -> list[str]:
    """Return everything that `load` knows by name, as NAME/SPLIT."""
    return [f"{name}/{split}" for name, known in DATASETS.items() for split in known.splits]


def load(
    spec: str,
    format: str | None = None,
    answers: bool = False,
    columns: Columns = USUALLY,
    content: bytes | None = None,
    blanks: bool = False,
    checked: bool = False,
) -> Dataset:
    """Return the dataset that `spec` stands for: a file or folder, `-` for standard input, or NAME/SPLIT.

    A file that exists wins over a name such as `scan/jump`. A file without any suffix (but .gz) is read as words of
    SIGMORPHON or UniMorph, which are published so, unless `format` is given. `answers`, `columns`, `content`
    and `blanks` as for `read_dataset`. What looks like a mistake in a table is said in a `Remark`; such messages name
    `cgen check`, unless the data are `checked` by it.
    """
    if not spec.strip():
        raise DataError("data: found an empty name, expected a file, a folder or NAME/SPLIT: is a variable not set?")
    with reading(Path(spec)):
        there, file = Path(spec).exists(), Path(spec).is_file()
    if format is None and not suffix_of(spec) and file:
        format = "unimorph"
    if spec != "-" and not there and _may_be_name(spec):
        return _known(spec, format, columns)
    check = f"`cgen check {typed(spec)}{columns.options}` shows"
    try:
        dataset = read_dataset(spec, format, answers, columns, content, blanks)
    except DataError as error:
        if checked or answers or not (there and re.search(r", (line|row) \d", str(error))):
            raise
        raise DataError(f"{error}; {check} all such mistakes and what to do") from None
    if not checked and (remark := checks.worst(dataset)):
        tell(f"{spec}: {remark}; {check} where")
    return dataset


def _known(spec: str, format: str | None, columns: Columns) -> Dataset:
    """Return a known data set."""
    name, _, split = spec.partition("/")
    if name not in DATASETS or split not in DATASETS[name].splits:
        raise DataError(_unknown(spec, name))
    if format is not None or columns.given:
        what = f"format: leave out {format!r}" if format else f"such columns: leave out --{next(iter(columns.given))}"
        raise DataError(f"{spec}: a known data set has no {what}")
    make, _ = DATASETS[name].splits[split]
    return make()


def given(data: Dataset | str | Path) -> Dataset:
    """Return a dataset, or the one that a name stands for, as `load`; UserError for all else."""
    if isinstance(data, str | Path):
        return load(str(data))
    if not isinstance(data, Dataset):
        raise UserError(
            f"found {type(data).__name__}, expected a Dataset, or the name of a file or of known data; of pairs, "
            "Dataset.from_pairs makes a dataset, of a Polars frame Dataset(frame)"
        )
    return data


def _may_be_name(spec: str) -> bool:
    """Whether a missing file is better called an unknown name: it has no suffix and at most one slash inside."""
    return not Path(spec).suffix and spec.strip("/").count("/") <= 1 and not spec.startswith((".", "/"))


def _unknown(spec: str, name: str) -> str:
    if name in DATASETS:
        return f"{spec}: no such split of {name}: expected {name}/ and one of {', '.join(DATASETS[name].splits)}"
    near = difflib.get_close_matches(spec, names(), n=3)
    hint = f"did you mean {', '.join(near)}?" if near else f"known data sets: {', '.join(names())}"
    return f"{spec}: neither a file nor a known data set; {hint}"
