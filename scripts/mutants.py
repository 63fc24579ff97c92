"""Mutation testing: changes one line of the source at random, many times, and sees whether the package's tests notice.

    python scripts/mutants.py --count 400 --seed 1 --report runs/mutants.jsonl
    python scripts/mutants.py --retry runs/mutants.jsonl --report runs/again.jsonl

The second command tries only those that survived, after tests were added.

The tests of each package run once under coverage, so that a mutant is tried with those tests alone that run its line,
quick ones first, until one fails; and if none does, with all tests of their files, as what one has made others may look
at. Mutants live in a copy of the tree; the working tree is never touched.
"""

import argparse
import ast
import collections
import concurrent.futures
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {  # what is changed, and the tests that should notice
    "augmenters": ("compgen/augmenters", "tests/augmenters"),
    "runtime": ("compgen/runtime", "tests/runtime"),
    "sampling": ("compgen/sampling", "tests/sampling"),
    "geca": ("compgen/geca", "tests/geca"),
    "csl": ("compgen/csl", "tests/csl"),
    "recombine": ("compgen/recombine", "tests/recombine"),
    "morphology": ("compgen/morphology", "tests/morphology"),
    "substitution": ("compgen/substitution", "tests/substitution"),
    "lexsym": ("compgen/lexsym", "tests/lexsym"),
    "comparison": ("compgen/comparison", "tests/comparison"),
    "trained": ("compgen/trained", "tests/trained"),
    "lm": ("compgen/lm/mixture.py", "tests/lm"),
    "training": ("compgen/training", "tests/training"),
    "copying": ("compgen/models/copying.py", "tests/models"),
    "fed_loop": ("compgen/models/fed_loop.py", "tests/models"),
    "packed": ("compgen/models/packed.py", "tests/models"),
    "cell": ("compgen/models/cell.py", "tests/models"),
    "choosing": ("compgen/models/choosing.py", "tests/models"),
    "decoding": ("compgen/models/decoding.py", "tests/models"),
    "int8": ("compgen/export/int8.py", "tests/export"),
    "integers": ("compgen/export/integers.py", "tests/export"),
}
SLACK = 40  # seconds for a mutant beside four times what its tests take: one that goes on is taken for found
COMPARED = {"Lt": "<=", "LtE": "<", "Gt": ">=", "GtE": ">", "Eq": "!=", "NotEq": "==", "In": "not in", "NotIn": "in"}
COMPARED |= {"Is": "is not", "IsNot": "is"}
COMPUTED = {"Add": "-", "Sub": "+", "Mult": "+", "FloorDiv": "*", "Div": "*", "Mod": "*", "Pow": "*"}
COMPUTED |= {"BitAnd": "|", "BitOr": "&", "LShift": ">>", "RShift": "<<", "BitXor": "&"}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "argmax": "argmin"}
SWAPPED |= {"minimum": "maximum", "maximum": "minimum", "ones": "zeros", "zeros": "ones", "cumsum": "cumprod"}
ASSURED = {"strict", "dtype", "encoding"}  # arguments left alone: they assert, or mostly ask for the platform's default


@dataclass(frozen=True)
class Mutant:
    """One change: columns `begin` to `end` of a line are `old`, and become `new`."""

    package: str
    file: str
    line: int
    begin: int
    end: int
    old: str
    new: str


# Changes.


def mutants_of(package: str, path: Path) -> Iterator[Mutant]:
    """All changes of a file that this program knows."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    for node in _code(ast.parse(text)):
        segment = ast.get_source_segment(text, node)
        line = getattr(node, "lineno", 0)
        if segment is None or "\n" in segment or line != getattr(node, "end_lineno", 0):
            continue
        row = lines[line - 1].encode()
        begin, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        for new in _changes(node, text):
            changed = (row[:begin] + new.encode() + row[end:]).decode()
            if _is_python([*lines[: line - 1], changed, *lines[line:]]):
                yield Mutant(package, str(path.relative_to(ROOT)), line, begin, end, segment, new)


def _is_python(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines) + "\n")
    except SyntaxError:
        return False
    return True


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something: no annotations, texts, errors' messages, imports or decorators."""
    if _says_nothing(node):
        return
    skipped: list[ast.AST | None] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        skipped = [*node.decorator_list, node.returns]
    elif isinstance(node, ast.ClassDef):
        skipped = [*node.decorator_list, *node.bases, *node.keywords]
    elif isinstance(node, ast.AnnAssign):
        skipped = [node.annotation]
    elif isinstance(node, ast.Call):
        skipped = [keyword for keyword in node.keywords if keyword.arg in ASSURED]
    yield node
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from _code(child)


def _says_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.arg | ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name == "__repr__"
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign) and _names_type(node)


def _names_type(node: ast.Assign) -> bool:
    """Whether it is an alias of a type, such as `Tokens = tuple[int, ...]`."""
    value = node.value
    base = value.value if isinstance(value, ast.Subscript) else None
    return isinstance(base, ast.Name) and base.id in {"tuple", "list", "dict", "Callable", "Annotated", "Literal"}


def _changes(node: ast.AST, text: str) -> Iterator[str]:
    """What a node may become."""

    def source(part: ast.AST) -> str:
        return ast.get_source_segment(text, part) or ""

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator = COMPARED.get(type(node.ops[0]).__name__)
        if operator:
            yield f"{source(node.left)} {operator} {source(node.comparators[0])}"
    elif isinstance(node, ast.BinOp):
        operator = COMPUTED.get(type(node.op).__name__)
        if operator and not any(_is_text(side) for side in (node.left, node.right)):
            yield f"{source(node.left)} {operator} {source(node.right)}"
    elif isinstance(node, ast.BoolOp):
        other = " or " if isinstance(node.op, ast.And) else " and "
        yield "(" + other.join(source(value) for value in node.values) + ")"
        yield source(node.values[0])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield source(node.operand)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield str(not node.value)
        elif isinstance(node.value, int):
            yield str(node.value + 1)
            if node.value:
                yield str(node.value - 1)
        elif isinstance(node.value, float):
            yield repr(2 * node.value if node.value else 1.0)
    elif isinstance(node, ast.IfExp):
        yield f"{source(node.body)} if not ({source(node.test)}) else {source(node.orelse)}"
    elif isinstance(node, ast.Call):
        yield from _other_calls(node, source)
    elif isinstance(node, ast.AugAssign | ast.Continue | ast.Break) or _calls(node):
        yield "pass"
    elif isinstance(node, ast.Slice):
        for bound, changed in ((node.lower, "({}) + 1"), (node.upper, "({}) + 1"), (node.upper, "({}) - 1")):
            if bound is not None and not isinstance(bound, ast.Constant):
                text_of = source(bound)
                yield source(node).replace(text_of, changed.format(text_of), 1)


def _other_calls(node: ast.Call, source: Callable[[ast.AST], str]) -> Iterator[str]:
    whole = source(node)
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name in SWAPPED:
        callee = source(node.func)
        yield whole.replace(callee, callee[: len(callee) - len(name)] + SWAPPED[name], 1)
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in ASSURED:
            kept = [source(part) for part in (*node.args, *(k for k in node.keywords if k is not keyword))]
            yield f"{source(node.func)}({', '.join(kept)})"


def _calls(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def drawn(count: int, seed: int, packages: list[str]) -> list[Mutant]:
    """So many changes of different lines, all lines that can be changed alike."""
    by_line: dict[tuple[str, int], list[Mutant]] = collections.defaultdict(list)
    for package in packages:
        where = ROOT / PACKAGES[package][0]
        for path in sorted(where.rglob("*.py")) if where.is_dir() else [where]:
            for mutant in mutants_of(package, path):
                by_line[mutant.file, mutant.line].append(mutant)
    rng = random.Random(seed)
    return [rng.choice(by_line[line]) for line in rng.sample(sorted(by_line), min(count, len(by_line)))]


# Tests.


class Tree:
    """A copy of the project to change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("compgen", "tests", "scripts"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("exported", "build", "cpp_runner", "docs", "pyproject.toml", "README.md"):
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    def run(self, *words: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy; raises TimeoutExpired."""
        data = os.environ.get("COMPGEN_DATA", str(ROOT.parent / "shared" / "data"))
        environment = os.environ | {"PYTHONPATH": str(self.folder), "COMPGEN_DATA": data, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, *words]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    def put(self, file: str, text: str) -> None:
        """Write a source file, so that no compiled one is taken for it."""
        path = self.folder / file
        path.write_text(text, "utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()


Covered = dict[str, dict[int, list[str]]]  # of each file the lines, with the tests that run them


def covered(tree: Tree, packages: list[str]) -> tuple[dict[str, Covered], dict[str, float]]:
    """Which tests of a package run which lines, and how long each test takes."""
    lines: dict[str, Covered] = {}
    seconds: dict[str, float] = {}
    for tests in sorted({PACKAGES[package][1] for package in packages}):
        data, times = tree.folder / ".coverage", tree.folder / "times.xml"
        data.unlink(missing_ok=True)
        (tree.folder / "coveragerc").write_text("[run]\ndynamic_context = test_function\nsource = compgen\n")
        done = tree.run(
            *("-m", "coverage", "run", "--rcfile", "coveragerc", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(f"--junitxml={times}", "-o", "junit_family=xunit1", tests),
        )
        if done.returncode:
            sys.exit(f"{tests} fails without any mutant:\n{done.stdout[-3000:]}")
        lines[tests] = _read_coverage(tree.folder, data)
        for case in ElementTree.parse(times).iter("testcase"):
            name = f"{case.get('classname')}.{str(case.get('name')).split('[')[0]}"
            seconds[name] = seconds.get(name, 0.0) + float(case.get("time") or 0)
        print(f"{tests}: {len(lines[tests])} files covered", flush=True)
    return lines, seconds


def _read_coverage(folder: Path, data: Path) -> Covered:
    from coverage import CoverageData

    read = CoverageData(str(data))
    read.read()
    found: Covered = {}
    for file in read.measured_files():
        contexts = read.contexts_by_lineno(file)
        name = str(Path(file).relative_to(folder))
        every = sorted({test for tests in contexts.values() for test in tests if test})
        # What no test runs itself, a fixture or an import does, for whichever test it is.
        found[name] = {line: every if "" in tests else tests for line, tests in contexts.items()}
    return found


def tests_of(lines: dict[int, list[str]], line: int) -> list[str]:
    """The tests that run a line; of a line that has no code of its own, those of its file."""
    return lines.get(line) or sorted({test for tests in lines.values() for test in tests})


def module_of(test: str) -> str:
    """tests.geca.test_concat of tests.geca.test_concat.test_x."""
    return test.rpartition(".")[0]


def node_of(test: str) -> str:
    """tests.geca.test_concat.test_x as pytest names it."""
    return f"{module_of(test).replace('.', '/')}.py::{test.rpartition('.')[2]}"


def verdict(tree: Tree, mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> str:
    """`killed`, `killed by time`, `survived`, or `not run` if no test runs its line."""
    if not tests:
        return "not run"
    source = (ROOT / mutant.file).read_text("utf-8")
    lines = source.splitlines(keepends=True)
    row = lines[mutant.line - 1].encode()
    lines[mutant.line - 1] = (row[: mutant.begin] + mutant.new.encode() + row[mutant.end :]).decode()
    tree.put(mutant.file, "".join(lines))
    try:
        files = {module_of(test) for test in tests}
        others = [test for test in seconds if module_of(test) in files]
        failed = any(fails(tree, some, seconds) for some in (tests, others))
        return "killed" if failed else "survived"
    except subprocess.TimeoutExpired:
        return "killed by time"
    finally:
        tree.put(mutant.file, source)


def fails(tree: Tree, tests: list[str], seconds: dict[str, float]) -> bool:
    """Whether one of some tests fails, quick ones first; raises TimeoutExpired."""
    ordered = sorted(tests, key=lambda test: seconds.get(test, 0.0))
    limit = SLACK + 4 * sum(seconds.get(test, 0.0) for test in tests)
    quiet = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header")
    return tree.run(*quiet, *map(node_of, ordered), timeout=limit).returncode not in (0, 5)


def main() -> None:
    """Draw mutants, try them, and write what became of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=list(PACKAGES))
    parser.add_argument("--report", type=Path, default=Path("runs/mutants.jsonl"))
    parser.add_argument("--retry", type=Path, help="a report, of which to try again what survived")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.retry and options.retry.resolve() == options.report.resolve():
        parser.error(f"{options.retry} would be overwritten: give another --report")
    if options.retry:
        rows = [json.loads(line) for line in options.retry.read_text().splitlines()]
        wanted = [row for row in rows if not row.pop("verdict").startswith("killed")]
        mutants = [Mutant(**row) for row in wanted]
    else:
        mutants = drawn(options.count, options.seed, options.packages)
    packages = sorted({mutant.package for mutant in mutants})
    options.report.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        trees: queue.Queue[Tree] = queue.Queue()
        for number in range(options.workers):
            trees.put(Tree(Path(name) / str(number)))
        first = trees.get()
        lines, seconds = covered(first, packages)
        trees.put(first)

        def judge(mutant: Mutant) -> tuple[Mutant, str]:
            tests = tests_of(lines[PACKAGES[mutant.package][1]].get(mutant.file, {}), mutant.line)
            tree = trees.get()
            try:
                return mutant, verdict(tree, mutant, tests, seconds)
            finally:
                trees.put(tree)

        outcomes: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        with (
            concurrent.futures.ThreadPoolExecutor(options.workers) as pool,
            options.report.open("w", encoding="utf-8") as out,
        ):
            for mutant, found in pool.map(judge, mutants):
                outcomes[mutant.package][found] += 1
                print(json.dumps(asdict(mutant) | {"verdict": found}, ensure_ascii=False), file=out, flush=True)
                if not found.startswith("killed"):
                    print(f"{found}: {mutant.file}:{mutant.line}: {mutant.old} -> {mutant.new}", flush=True)
    killed = sum(counts["killed"] + counts["killed by time"] for counts in outcomes.values())
    for package, counts in outcomes.items():
        print(f"{package}: {dict(counts)}")
    print(f"{killed} of {len(mutants)} killed ({killed / max(len(mutants), 1):.1%}), {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
