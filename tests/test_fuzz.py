"""Readers of what comes from strangers, in short: damaged inputs in process, and those that were read wrongly once.

`make campaign` is the long version. The C++ readers' inputs are read again by `replay`, which is one of the tests of
`make runner` too; `fuzz` needs clang.
"""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOUND = ROOT / "cpp_runner" / "fuzz" / "found"
INPUTS = 25  # for each of Python's readers


@pytest.fixture(scope="module")
def fuzzing(tmp_path_factory):
    """The module that makes inputs, and Python's readers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        import fuzz_readers

    return fuzz_readers, fuzz_readers.readers(tmp_path_factory.mktemp("readers"))


@pytest.mark.filterwarnings("ignore")
def test_what_python_reads_is_taken_or_refused_in_a_line(fuzzing, tmp_path):
    module, readers = fuzzing
    faults = []
    for name, reader in readers.items():
        faults += [(name, what) for _, what in module.fuzz(name, reader, range(INPUTS), 1, tmp_path)]
    assert not faults


@pytest.mark.filterwarnings("ignore")
def test_what_python_read_wrongly_once(fuzzing, tmp_path):
    module, readers = fuzzing
    inputs = sorted((ROOT / "tests" / "found").glob("*/*"))
    assert inputs
    for path in inputs:
        reader = readers[path.parent.name]
        copy = tmp_path / f"input{reader.suffix}"
        copy.write_bytes(path.read_bytes())
        module.judged(reader, copy)


def test_a_reader_that_fails_is_found_out(fuzzing, tmp_path):
    module, _ = fuzzing

    def careless(path):
        if b"ROOT" not in path.read_bytes():
            raise KeyError("ROOT")

    reader = module.Reader(".cfg", careless, (module.TARGETS,), (module.damaged_text,))
    (_, what), *_ = module.fuzz("careless", reader, range(300), 1, tmp_path)
    assert what.startswith("KeyError")


def test_what_the_runner_read_wrongly_once(built):
    program = Path(built).with_name("replay")
    if not program.exists():
        pytest.skip("no replay beside the C++ runner: `make runner` builds it")
    done = subprocess.run([program, FOUND], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and int(done.stdout.split()[0]) > 10, done.stderr


@pytest.mark.usefixtures("kenlm")
@pytest.mark.parametrize("path", sorted([*FOUND.glob("arpa/*"), *FOUND.glob("binary/*")]), ids=lambda path: path.name)
def test_models_that_were_read_wrongly_once(path):
    from compgen.lm.install import program

    done = subprocess.run(
        [program("compgen-ngram"), "rescore", path], input=b"a b\n", capture_output=True, check=False, timeout=60
    )
    if path.name.startswith("whole"):
        assert done.returncode == 0
    else:
        assert done.returncode == 2 and done.stderr.startswith(b"error: ") and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("reader", ["graph", "gzip", "rules", "bundle"])
def test_a_second_of_fuzzing(reader, tmp_path):
    program = ROOT / "build" / "fuzz" / "fuzz"
    if not program.exists():
        pytest.skip("no build/fuzz: `make fuzz` builds it, with clang")
    command = [program, reader, "-max_total_time=1", "-timeout=10", "-rss_limit_mb=1024", tmp_path, FOUND / reader]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
