"""README and docs show commands that can be called, links that lead somewhere and Python that runs."""

import ast
import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from compgen.cli.main import app

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GUIDES = [
    README,
    ROOT / "docs" / "index.md",
    *sorted(ROOT.glob("docs/tutorials/*.md")),
    *sorted(ROOT.glob("docs/how-to/*.md")),
]
BESIDE = [ROOT / "cpp_runner" / "README.md", *sorted(ROOT.glob("exported/*/README.md"))]  # not on the site
PAGES = [*dict.fromkeys([*GUIDES, *sorted(ROOT.glob("docs/*.md")), *BESIDE])]
COMMANDS = typer.main.get_command(app)
UNDEFINED = {"token-swap"}  # the method that docs/augmenters.md adds


def named(path):
    return str(path.relative_to(ROOT))


def reference():
    """The script that writes the reference pages."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls(text):
    """The calls of `cgen` in indented code, each as its words."""
    code = re.sub(r"\\\n\s*", " ", text).replace("--seed S", "--seed 0")  # any seed
    lines = re.findall(r"^ {4,}(?:[A-Z_]+=\S+ )*cgen (.+)$", code, re.MULTILINE)
    return [words for line in lines if not UNDEFINED & set(words := shlex.split(line, comments=True))]


def mentions(text):
    """The calls of `cgen` in running text, which may be parts of a call."""
    prose = re.sub(r"(?m)^ {4}.*$", "", re.sub(r"(?ms)^```.*?^```$", "", text))
    return [one.split() for one in re.findall(r"`cgen ([^`\n]+)`", prose)]


def found(words):
    """The command that words call, and the words that are left."""
    command, rest = COMMANDS, list(words)
    while hasattr(command, "commands") and rest and not rest[0].isupper():
        assert rest[0] in command.commands, f"cgen {' '.join(words)}: no command {rest[0]}"
        command = command.commands[rest.pop(0)]
    return command, rest


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_can_be_called(page):
    for words in calls(page.read_text("utf-8")):
        command, rest = found(words)
        command.make_context(" ".join(words), rest)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_are_not_the_builtin_of_bash(page):
    """Bash's `compgen sample` does nothing, and says nothing."""
    assert re.findall(r"(?m)^ {4,}compgen .*|`compgen [a-z][^`]*`", page.read_text("utf-8")) == []


def test_guides_show_commands():
    assert sum(len(calls(page.read_text("utf-8"))) for page in GUIDES) > 60
    assert len(mentions(README.read_text("utf-8"))) > 4


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_commands_and_options_in_running_text_exist(page):
    for words in mentions(page.read_text("utf-8")):
        command, rest = found(words)
        if hasattr(command, "commands"):
            continue  # of all of them, such as METHOD
        known = {"-h", "--help"} | {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
        assert {word for word in rest if word.startswith("-")} <= known, words


@pytest.mark.parametrize(
    "words", ["compare", "data split radnom x.tsv -o y.tsv", "augment geca x.tsv -o y.tsv --spam 3"]
)
def test_a_command_that_does_not_exist_is_noticed(words):
    (call,) = calls(f"    cgen {words}")
    with pytest.raises(Exception, match=r"No such option|no command|Missing"):  # noqa: PT012
        command, rest = found(call)
        command.make_context(words, rest)


def anchors(path):
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    made = {ROOT / "docs" / "reference" / name for name in reference().PAGES}
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target in made or target.exists(), link
        if anchor and page in {README, *BESIDE}:  # those within docs are checked with the site
            assert anchor in anchors(target), link


def test_the_readme_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 130


def blocks():
    """The Python of all guides."""
    return [
        pytest.param(block, id=f"{named(page)}-{number}")
        for page in GUIDES
        for number, block in enumerate(re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text("utf-8")))
    ]


def missing(block):
    """Files that a block names and that are not there."""
    constants = [node.value for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Constant)]
    texts = [text for text in constants if isinstance(text, str)]
    return [text for text in texts if re.search(r"\.(tsv|pt|txt|bin|jsonl)$", text) and not (ROOT / text).exists()]


@pytest.mark.parametrize("block", blocks())
def test_python_runs(block, monkeypatch):
    """Blocks whose files exist run; of others the imports and names do."""
    if "to_pandas" in block:
        pytest.importorskip("pandas")
    if ".Generator" in block:
        pytest.importorskip("onnxruntime")
    monkeypatch.chdir(ROOT)
    tree = ast.parse(block)
    if missing(block):
        tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        compgen = importlib.import_module("compgen")
        assert all(
            hasattr(compgen, name)
            for name in re.findall(r"\bcompgen\.([A-Za-z_]+)", re.sub(r"(?m)^\s*(?:from|import) .*", "", block))
        )
    exec(compile(tree, "block", "exec"), {})


def test_the_site_builds_without_a_broken_link(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("reference"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    reference().write(tmp_path / "docs" / "reference")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path / "build" / "site") for path in (tmp_path / "build" / "site").rglob("*.html")}
    assert {Path("index.html"), Path("reference/commands.html"), Path("tutorials/inflection.html")} <= pages


def test_the_reference_has_every_command_and_option(tmp_path):
    reference().write(tmp_path)
    text = (tmp_path / "commands.md").read_text("utf-8")
    assert "## cgen data split tmcd\n" in text and "--divergence" in text and "-h, --help" in text
    options = (tmp_path / "augmenters.md").read_text("utf-8")
    assert "| `sampling.temperature` | tuple[float, float] | `(0.4, 0.0)` |" in options and " at 0x" not in options
    assert "| `drawing.depth.most` | int, ≥ 0, ≤ 1000 | `20` | From this depth on, draw only rules without" in options
    assert "| `classes` | 'predicate', 'token', 'slot', 'types', 'one' or None | `none` |" in options
    assert "| `variants` | int, ≥ 1" in options and "## stemcorrupt\n" in options
    assert "| `network.hidden` | int" in (tmp_path / "configurations.md").read_text("utf-8")
    assert "`scan/jump`" in (tmp_path / "data-sets.md").read_text("utf-8")


def test_modules_that_the_runner_names_exist():
    folders = [ROOT / "cpp_runner" / name for name in ("src", "include", "tests", "fuzz")]
    texts = [path.read_text("utf-8", errors="replace") for folder in folders for path in folder.glob("*.*")]
    named = {name for text in texts for name in re.findall(r"compgen/[\w/]+\.py", text)}
    assert len(named) > 10 and [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_scripts_run_modules_that_exist():
    pattern = re.compile(r'"-m", "([\w.]+)"')
    called = {name for path in ROOT.glob("scripts/**/*.py") for name in pattern.findall(path.read_text("utf-8"))}
    assert "compgen" in called
    called -= {"cyclonedx_py"}  # of the extra release
    assert [name for name in sorted(called) if importlib.util.find_spec(name) is None] == []
