"""The C interface gives what the program gives, and an error is a code with a message: from C and from ctypes."""

import ctypes
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from compgen.sampling import native
from tests.export.tiny import exported
from tests.sampling.grammars import grammar_file

HEADER = Path(__file__).parents[2] / "cpp_runner" / "include"


@pytest.fixture(scope="module")
def library(built):
    found = built.with_name("libcompgen.so")
    if not found.is_file():
        pytest.skip(f"no {found}")
    return found


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    from compgen.export.bundle_writer import export

    folder = tmp_path_factory.mktemp("grammar")
    grammar_file(13, True).save(folder / "model.grammar")
    export(folder / "model.grammar", folder / "bundle", batches={7: 20}, quiet=True)
    return {"generator": exported(), "predictor": exported("predictor"), "grammar": folder / "bundle"}


def lines_of_program(bundle, *words, stdin=""):
    command = [str(word) for word in (native.runner(), bundle, *words)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=native.environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


PROGRAM = r"""
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>

    #include "compgen.h"

    static int show(void* left, const char* line, size_t length) {
      printf("%.*s\n", (int)length, line);
      return --*(int*)left == 0;
    }

    /* program BUNDLE LINES [SOURCES]: at most so many samples of seed 7 from address 5 on, or answers. */
    int main(int count, char** words) {
      char text[300];
      const compgen_message message = {text, sizeof text};
      compgen_model* model;
      int left = atoi(words[2]), code = compgen_open(words[1], &model, &message);
      const double temperature[2] = {1.0, 1.0};
      const compgen_draws draws = {.seed = 7, .start = 5, .count = 400, .temperature = temperature, .workers = 2};
      if (code == COMPGEN_OK && count == 3) {
        code = compgen_draw(model, &draws, show, &left, &message);
      } else if (code == COMPGEN_OK) {
        const compgen_questions questions = {.sources = words[3], .best = 3};
        code = compgen_predict(model, &questions, show, &left, &message);
      }
      if (code != COMPGEN_OK) fprintf(stderr, "%s\n", text);
      compgen_close(model);
      return code;
    }
"""


@pytest.fixture(scope="module")
def program(library, tmp_path_factory):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(textwrap.dedent(PROGRAM))
    words = [compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{HEADER}", folder / "program.c"]
    words += ["-o", folder / "program", library, f"-Wl,-rpath,{library.parent}"]
    subprocess.run(words, check=True)

    def run(*arguments, **more):
        command = [str(word) for word in (folder / "program", *arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=native.environment() | more)

    return run


DRAWS = ("--seed", 7, "--start", 5, "--draws", 400, "--temperature", "1,1")


@pytest.mark.parametrize("kind", ["generator", "grammar"])
def test_samples_from_c_are_those_of_the_program(program, bundles, kind):
    expected = lines_of_program(bundles[kind], *DRAWS)
    done = program(bundles[kind], -1)
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", expected) and len(expected) > 10
    assert program(bundles[kind], 3).stdout.splitlines() == expected[:3]  # the caller wants no more


def test_answers_from_c_are_those_of_the_program(program, bundles):
    sources = "a b c\nb\ng g a b\n"
    expected = lines_of_program(bundles["predictor"], "--input", "-", "--best", 3, stdin=sources)
    done = program(bundles["predictor"], -1, sources)
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", expected) and len(expected) >= 3
    assert program(bundles["predictor"], 2, sources).stdout.splitlines() == expected[:2]


@pytest.mark.parametrize(
    ("kind", "words", "message"),
    [
        ("nowhere", (), "nowhere: no such bundle"),
        ("predictor", (), "a predictor, expected a generator"),
        ("generator", ("a b",), "a generator, expected a predictor"),
        ("predictor", ("a b\nzebra",), "sources, line 2: token 'zebra' is not in the vocabulary"),
    ],
)
def test_an_error_is_a_code_and_one_line(program, bundles, kind, words, message):
    done = program(bundles.get(kind, kind), -1, *words)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


class Message(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("size", ctypes.c_size_t))


class Draws(ctypes.Structure):
    _fields_ = (
        ("seed", ctypes.c_uint64),
        ("start", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("temperature", ctypes.POINTER(ctypes.c_double)),
        ("batch", ctypes.c_int64),
        ("workers", ctypes.c_int),
    )


class Questions(ctypes.Structure):
    _fields_ = (
        ("sources", ctypes.c_char_p),
        ("best", ctypes.c_int64),
        ("beam", ctypes.c_int64),
        ("batch", ctypes.c_int64),
        ("workers", ctypes.c_int),
    )


TAKE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


class Library:
    """The library, opened in this process."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(str(path))
        self.functions.compgen_close.restype = None
        self.room = 300

    def call(self, name, *words):
        """The code of a call, and its message."""
        text = ctypes.create_string_buffer(b"?" * (self.room - 1) if self.room else b"")
        message = Message(ctypes.cast(text, ctypes.c_char_p), self.room)
        code = getattr(self.functions, name)(*words, ctypes.byref(message))
        return code, text.value.decode()

    def open(self, folder):
        model = ctypes.c_void_p(1)
        code, said = self.call("compgen_open", None if folder is None else str(folder).encode(), ctypes.byref(model))
        assert (code == 0) == bool(model)
        return code, said, model

    def lines(self, name, model, asked):
        found = []
        take = TAKE(lambda _, line, length: found.append(ctypes.string_at(line, length).decode()) or 0)
        code, said = self.call(name, model, None if asked is None else ctypes.byref(asked), take, None)
        return code, said, found


@pytest.fixture(scope="module")
def ours(library):
    os.environ.setdefault("COMPGEN_ONNXRUNTIME", native.environment()["COMPGEN_ONNXRUNTIME"])
    return Library(library)


def test_samples_and_answers_from_ctypes_are_those_of_the_program(ours, bundles):
    for kind in ("generator", "grammar"):
        code, said, model = ours.open(bundles[kind])
        assert (code, said) == (0, "")
        temperature = (ctypes.c_double * 2)(1.0, 1.0)
        for batch, workers in ((0, 0), (3, 2)):  # a model may be asked again
            asked = Draws(7, 5, 400, temperature, batch, workers)
            assert ours.lines("compgen_draw", model, asked) == (0, "", lines_of_program(bundles[kind], *DRAWS))
        ours.functions.compgen_close(model)
    model = ours.open(bundles["predictor"])[2]
    for beam in (0, 1, 4):
        words = () if beam == 0 else ("--beam", beam)
        expected = lines_of_program(bundles["predictor"], "--input", "-", *words, stdin="a b\ng a c\n")
        assert ours.lines("compgen_predict", model, Questions(b"a b\ng a c", 0, beam)) == (0, "", expected)
    ours.functions.compgen_close(model)
    ours.functions.compgen_close(None)


def test_bad_arguments_are_told_and_change_nothing(ours, bundles):
    generator, predictor = (ours.open(bundles[kind])[2] for kind in ("generator", "predictor"))
    cold = (ctypes.c_double * 2)(1e-9, 1.0)
    for asked, message in (
        (None, "draws is NULL"),
        (Draws(0, -1, 5), "start -1: expected a number from 0 to 2305843009213693952"),
        (Draws(0, 0, -5), "count -5"),
        (Draws(0, 0, 5, cold), "temperature"),
        (Draws(0, 0, 5, None, 1 << 20), "batch 1048576: expected a number from 0 to 65536"),
        (Draws(0, 0, 5, None, 0, 5000), "workers 5000: expected a number from 0 to 1024"),
    ):
        code, said, found = ours.lines("compgen_draw", generator, asked)
        assert code == 2 and message in said and not found
    for asked, message in (
        (Questions(None), "sources is NULL"),
        (Questions(b"a \xff b"), "sources, line 1: found the byte 0xff, expected text in UTF-8"),
        (Questions(b"a", 5, 2), "best 5 needs a beam as wide: found beam 2, expected 0 or a number from 5 on"),
        (Questions(b"a", 5000), "best 5000: expected a number from 0 to 1024"),
        (Questions(b"a", -1), "best -1: expected a number from 0 to 1024"),
        (Questions(b"a", 0, 1025), "beam 1025: expected a number from 0 to 1024"),
    ):
        code, said, found = ours.lines("compgen_predict", predictor, asked)
        assert code == 2 and said.startswith(message) and not found
    assert ours.lines("compgen_draw", None, Draws(0, 0, 5))[:2] == (2, "model is NULL")
    assert ours.open(None)[:2] == (2, "folder is NULL")
    assert ours.lines("compgen_draw", generator, Draws(0, 0, 5))[0] == 0
    for model in (generator, predictor):
        ours.functions.compgen_close(model)


def test_a_message_is_cut_to_its_room(ours, tmp_path):
    folder = tmp_path / "é" / "nowhere"
    whole = ours.open(folder)[1]
    assert whole == f"{folder}: no such bundle"
    at = len(whole.encode().partition("é".encode())[0])
    for room, kept in ((10, 9), (at + 2, at), (at + 3, at + 2), (1, 0)):  # never half of a character
        ours.room = room
        assert ours.open(folder)[1].encode() == whole.encode()[:kept]
    ours.room = 0
    assert ours.open(folder)[0] == 2
    ours.room = 300
    assert ours.functions.compgen_open(b"nowhere", ctypes.byref(ctypes.c_void_p()), None) == 2


def test_a_tab_is_a_space_and_a_line_of_nothing_has_its_place(ours, bundles):
    model = ours.open(bundles["predictor"])[2]
    code, said, found = ours.lines("compgen_predict", model, Questions(b"a\tb c\n \n\nb"))
    assert (code, said) == (0, "") and found[1:3] == ['{"source":[],"target":[]}'] * 2
    expected = lines_of_program(bundles["predictor"], "--input", "-", stdin="a b c\nb\n")
    assert [found[0], *found[3:]] == expected
    ours.functions.compgen_close(model)


def test_a_message_is_one_line_of_utf_8_whatever_a_folder_is_called(ours):
    code, said = ours.call("compgen_open", b"/no\nwhere\x1b/\xff\xc3\xa9", ctypes.byref(ctypes.c_void_p()))
    assert code == 2 and said == "/no where /\ufffd\u00e9: no such bundle"


def test_by_default_there_are_as_many_threads_as_usable_processors(ours, bundles):
    usable, threads = os.sched_getaffinity(0), Path("/proc/self/task")
    if len(usable) < 2 or not threads.exists():
        pytest.skip("one processor, or no list of threads")
    model = ours.open(bundles["generator"])[2]
    for some in (sorted(usable)[:1], sorted(usable)[:2]):
        before, during = len([*threads.iterdir()]), []
        take = TAKE(lambda *_: during.append(len([*threads.iterdir()])) or 1)  # noqa: B023
        os.sched_setaffinity(0, some)
        try:
            assert ours.call("compgen_draw", model, ctypes.byref(Draws(0, 0, 10**9)), take, None)[0] == 0
        finally:
            os.sched_setaffinity(0, usable)
        assert during == [before + len(some)]
    ours.functions.compgen_close(model)


OPENING = """
import ctypes, os, sys
from concurrent.futures import ThreadPoolExecutor
from tests.sampling.test_native_c import Library

library, (path, right, bundle) = Library(sys.argv[1]), sys.argv[1:]
os.environ["COMPGEN_ONNXRUNTIME"] = "/nowhere/lib.so"
assert library.open(bundle)[0] == 2
os.environ["COMPGEN_ONNXRUNTIME"] = right
with ThreadPoolExecutor(4) as pool:
    assert [found[:2] for found in pool.map(library.open, [bundle] * 8)] == [(0, "")] * 8
os.environ["COMPGEN_ONNXRUNTIME"] = "/nowhere/lib.so"
assert library.open(bundle)[:2] == (0, "")
"""


def test_onnx_runtime_is_opened_once_for_all_models_and_again_after_an_error(library, bundles):
    words = [sys.executable, "-c", OPENING, library, native.environment()["COMPGEN_ONNXRUNTIME"], bundles["generator"]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_an_error_of_onnx_runtime_is_told_too(program, bundles):
    done = program(bundles["generator"], -1, COMPGEN_ONNXRUNTIME="/nowhere/lib.so")
    assert done.returncode == 2 and "/nowhere/lib.so" in done.stderr and not done.stdout
