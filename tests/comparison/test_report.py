"""The report: whole, safe and readable whatever the comparison has found."""

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.cli.report import summary
from compgen.comparison import words
from compgen.comparison.report import REPORT, RESULT, SHOWN, read, render, scale, write_report
from compgen.comparison.result import Changed, Difference, Made, Origin, Shown
from compgen.comparison.result import Tested as System
from compgen.errors import DataError, UserError
from tests.comparison import made_up

VOID = {"meta", "br"}
HEADINGS = ("h1", "h2", "h3", "h4")


class Page(HTMLParser):
    """Checks that tags are balanced, and gathers what is in a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts, self.headings, self.images = [], Counter(), [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag in HEADINGS:
            self.headings.append(int(tag[1]))
        if tag == "svg":
            self.images.append(dict(attributes))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)


@pytest.fixture(scope="module")
def result():
    return made_up.result()


@pytest.fixture(scope="module")
def page(result):
    return Page(render(result))


def test_the_page_needs_nothing_but_itself(result, page):
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not [one for one in page.attributes if one[1] in ("src", "srcset", "xlink:href", "style", "onclick")]
    targets = {value for tag, name, value in page.attributes if name == "id"}
    links = [value for tag, name, value in page.attributes if name == "href"]
    assert links and all(value[0] == "#" and value[1:] in targets for value in links)
    assert "url(" not in render(result) and "@import" not in render(result) and "://" not in render(result)


def test_the_page_can_be_read_by_a_machine_that_speaks(page):
    assert ("html", "lang", "en") in page.attributes
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(later - sooner <= 1 for sooner, later in zip(page.headings, page.headings[1:], strict=False))
    spoken = [one for one in page.images if one.get("role") == "img"]
    assert len(spoken) > 10 and page.tags["title"] == 1 + len(spoken)
    axes = [one for one in page.images if "role" not in one]
    assert len(axes) == 4  # of two plots, whose numbers are in the rows, and two keys
    assert page.tags["th"] == sum(1 for tag, name, _ in page.attributes if (tag, name) == ("th", "scope"))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_answer_comes_first_and_all_numbers_are_there(result, page):
    order = [
        result.answer, "438 training and 332 test examples", "59.5 %", "60.9 %", "72.6 %", "+13.1 points",
        "Gain over the bare data", "Gain over the control", "All systems on the test part", result.choice.why,
        result.predictor.why, "1 to 6 tokens", "new template, known parts", "What each method made",
        "All brackets are balanced.", "Methods not tried", "Mended", "Broken", result.remarks[0], "20 min 4 s",
        result.versions["torch"], result.commands[0], result.files["predictor.pt"],
    ]  # fmt: skip
    place = 0
    for one in order:
        place = page.text.index(one, place) + len(one)
    rows = [row for row in re.findall(r"<tr.*?</tr>", render(result), re.DOTALL) if "each seed" not in row]
    for one in result.tested:
        row = next(row for row in rows if f'<span class="name">{one.system}' in row)
        numbers = [f"{one.examples:,}", f"{100 * one.accuracy:.1f} %", f"{100 * one.low:.1f} to {100 * one.high:.1f} %"]
        numbers += [f"{100 * share:.1f}" for share in one.by_seed]
        for difference in (one.over_bare, one.over_control):
            if difference:
                numbers.append(f"{100 * difference.mean:+.1f}".replace("-", "−"))
                numbers.append("&lt; 0.001" if difference.p < 0.001 else f"{difference.p:.3f}")
        assert [number for number in numbers if number not in row] == []
    for one in result.trials:
        assert f"{100 * one.score:.1f} %" in page.text and one.dropped in page.text
    for point in result.predictor.curve:
        assert f"{point.updates:,}" in page.text
    assert "seen in training" not in page.text  # a group without examples


def test_the_first_figures_have_the_p_that_the_answer_has(page):
    assert "Gain of the chosen over control" in page.text
    figures = page.text[page.text.index("Gain of the chosen over control") :]
    assert figures.index("p = 0.002") < figures.index("The control has as many")  # corrected; p < 0.001 without that


def test_what_predictors_answer_together_is_told_with_the_command(result, capsys):
    told = "Together, the 3 predictors of geca + csl x8 answer 74.1 %: "
    command = "cgen predict predictor.pt SOURCES --with predictor-1.pt --with predictor-2.pt"
    assert "Together" not in render(result) and words.together(result) == ""
    rows = [one.model_copy(update={"together": 0.741}) if one.role == "chosen" else one for one in result.tested]
    result = result.model_copy(update={"tested": rows})
    assert told + command in Page(render(result)).text
    summary(result, Path("report.html"))
    assert told in " ".join(capsys.readouterr().out.split())


def test_a_name_says_what_was_asked_for_and_not_what_was_made(page):
    assert (
        "synthetic examples as training has, but at most 20,000, were asked for; a method may make fewer" in page.text
    )


def test_the_plot_puts_gains_where_they_are(result):
    text = render(result)
    axis = scale([0, *(end for one in result.tested for part in (one.over_bare, one.over_control) if part
                       for end in (part.low, part.high))])  # fmt: skip
    chosen = next(one for one in result.tested if one.role == "chosen")
    row = re.search(rf'<div class="row chosen">\s*<span class="name">{re.escape(chosen.system)}.*?</svg>', text, re.S)[
        0
    ]
    assert f'cx="{axis.at(chosen.over_bare.mean)}"' in row and f'x1="{axis.at(chosen.over_bare.low)}"' in row
    assert f'class="zero" x1="{axis.at(0)}"' in row and ">chosen</span>" in row
    assert scale([0, 1]).at(0) == "5.00%" and scale([0, 1]).at(0.5) == "50.00%"


def test_differences_are_marked(result):
    text = render(result)
    assert "what is the <mark>longest river</mark> in m0" in text
    assert "what is the <del>largest lake</del> in m0" in text
    assert "name the <mark>longest river</mark> that m0 borders" in text
    assert (
        "intersection ( <mark>place</mark> , loc_2" in text and "intersection ( <mark>mountain</mark> , loc_2" in text
    )


def test_what_is_not_there_leaves_no_trace():
    little = made_up.result(
        tested=[made_up.tested("bare").model_copy(update={"by_seed": [0.6]})],
        trials=[], methods=[], made=[], mended=[], broken=[], remarks=[], by_length=[], by_template=[], steps=[],
        files={}, commands=[], versions={},
        predictor=made_up.predictor().model_copy(update={"curve": []}),
        choice={"system": "bare", "methods": [], "examples": 0, "why": "Nothing helps."},
    )  # fmt: skip
    page = Page(render(little))
    for text in ("No system was tested beside the bare data.", "No method was tried.", "Nothing special was found."):
        assert text in page.text
    assert "None: no system was chosen over the bare data." in page.text and "Gain of the chosen" not in page.text
    lost = Page(render(made_up.result(tested=[], mended=[])))
    assert "None: no test example is wrong with the bare data, right with the chosen." in lost.text
    alone = [made_up.tested(name) for name in ("bare", "geca + csl x8")]
    assert "Gain over the bare data" in Page(render(made_up.result(tested=alone))).text


def test_a_control_may_be_chosen():
    choice = {"system": "resample x8", "methods": ["resample"], "examples": 3504, "why": "It is best."}
    tested = [made_up.tested(name) for name in ("bare", "resample x8", "csl x8")]
    page = Page(render(made_up.result(choice=choice, tested=tested)))
    assert "Control: resample x8" in page.text and "Chosen: " not in page.text
    assert "Gain of the chosen over bare" in page.text and "Gain of the chosen over control" not in page.text


ODD = ["<script>alert(1)</script>", "</style>", "\"'&", "שלום\u202eعالم", "e\u0301\u0302", "\u0301", "𝔘", "{{ 1 }}"]


def test_texts_stay_texts(page):
    odd = " ".join(ODD)
    shown = Shown(source=odd, target=f"{odd} b", made_from=[Origin(label=odd, source=f"a {odd}", target=odd)])
    made = Made(method=odd, examples=1, seconds=0, figures={odd: odd}, words=[odd], warnings=[odd], shown=[shown])
    changed = Changed(source=odd, expected=odd, bare="", chosen=odd)
    text = render(made_up.result(answer=odd, data=odd, made=[made], mended=[changed], commands=[odd], files={odd: odd}))
    strange = Page(text)
    assert set(strange.tags) <= set(page.tags)
    assert strange.text.count("<script>alert(1)</script>") > 8 and "{{ 1 }}" in strange.text
    assert 'class="text" dir="auto"' in text


def test_a_large_comparison_stays_small():
    def long(number):
        return " ".join(f"token{(number * 7 + place) % 1000}" for place in range(3000))

    def shown(number):
        origins = [Origin(label=f"prototype {k}", source=long(number + k), target=long(number - k)) for k in (1, 2)]
        return Shown(source=long(number), target="x" * 30_000, made_from=origins)

    made = [
        Made(method=f"method {k}", examples=9, seconds=9, figures={}, words=[], warnings=[], settings=[],
             shown=[shown(number) for number in range(SHOWN + 5)])
        for k in range(6)
    ]  # fmt: skip
    changed = [Changed(source=long(k), expected=long(k), bare=long(k + 1), chosen=long(k)) for k in range(50)]
    text = render(made_up.result(made=made, mended=changed))
    page = Page(text)
    assert len(text.encode()) < 1_000_000
    assert "characters more]" in text and "5 more are in compare.json ." in page.text
    assert "30 more are in compare.json ." in page.text and page.tags["mark"] > 200


word = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
share = st.floats(0, 1)


@st.composite
def systems(draw):
    """Systems as odd as a result may have."""
    names = draw(st.lists(word, min_size=1, max_size=4, unique=True))
    gain = st.builds(Difference, mean=st.floats(-1, 1), low=st.floats(-1, 1), high=st.floats(-1, 1), p=share,
                     corrected=st.none() | share)  # fmt: skip
    tested = st.builds(System, accuracy=share, low=share, high=share, by_seed=st.lists(share, max_size=3),
                       over_bare=st.none() | gain, over_control=st.none() | gain)  # fmt: skip
    return [draw(tested).model_copy(update={"system": name}) for name in names]


@settings(max_examples=30, deadline=None)
@given(systems(), word, st.lists(word, max_size=3))
def test_whatever_is_found_gives_a_page(page, tested, name, texts):
    choice = {"system": tested[0].system, "methods": [], "examples": 1, "why": name}
    shown = [Shown(source=name, target=" ".join(texts), made_from=[Origin(label=name, source=one, target=name)])
             for one in texts]  # fmt: skip
    made = made_up.made()[0].model_copy(update={"shown": shown, "words": texts, "figures": {name: texts}})
    found = made_up.result(tested=tested, choice=choice, answer=name, made=[made], remarks=texts)
    assert set(Page(render(found)).tags) <= set(page.tags)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_an_axis_holds_all_values(values):
    axis = scale(values)
    assert 2 <= len(axis.ticks) <= 8
    assert all(-1e-6 <= axis.share(value) <= 1 + 1e-6 for value in values)


def test_the_report_is_written_beside_its_result(result, tmp_path):
    (tmp_path / RESULT).write_text(result.model_dump_json(), encoding="utf-8")
    assert read(tmp_path) == result
    path = write_report(tmp_path)
    assert path == tmp_path / REPORT and path.read_text(encoding="utf-8") == render(result)
    assert sorted(one.name for one in tmp_path.iterdir()) == [RESULT, REPORT]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "no such file, expected the folder that `cgen compare` writes"),
        ("{", "found no JSON"),
        ("\xff", "found no JSON"),
        ("[" * 100_000, "found no JSON"),
        ('{"seconds": NaN}', "found no JSON: the number NaN"),
        ('{"seconds": 1e999}', "found no JSON: the number 1e999"),
        ('{"seconds": -1e308}', "found no JSON: the number -1e308"),  # a plot to 1e308 would be infinitely wide
        ('{"seconds": 1' + "0" * 400 + "}", "found no JSON: the number 1000"),
        ('{"answer": "\\ud800"}', "the file: Invalid JSON"),
        ("[]", "the file: Input should be"),
        ('{"version": 2}', "version 2, expected 1"),
        ('{"answer": 1}', "answer: Input should be a valid string"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, text, says):
    if text is not None:
        (tmp_path / RESULT).write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=re.escape(says)) as error:
        write_report(tmp_path)
    assert str(tmp_path / RESULT) in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / REPORT).exists()


def test_a_page_that_cannot_be_written_is_a_users_error(result, tmp_path):
    (tmp_path / RESULT).write_text(result.model_dump_json(), encoding="utf-8")
    (tmp_path / REPORT).mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        write_report(tmp_path)
