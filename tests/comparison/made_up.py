"""A made-up comparison that looks like one on GeoQuery, with all parts that a result may have."""

from compgen.comparison.result import (
    Changed,
    Choice,
    Difference,
    Group,
    Made,
    Method,
    Origin,
    Parts,
    Point,
    PredictorUsed,
    Result,
    Shown,
    Step,
    Tested,
    Trial,
)  # fmt: skip

TESTED = {  # system: role, synthetic examples, accuracies of three seeds
    "bare": ("bare", 0, (0.586, 0.604, 0.595)),
    "resample x8": ("control", 3504, (0.601, 0.619, 0.607)),
    "geca + csl x8": ("chosen", 3504, (0.729, 0.714, 0.735)),
    "geca x1": ("other", 438, (0.634, 0.622, 0.613)),
    "geca x8": ("other", 3504, (0.658, 0.643, 0.655)),
    "csl x1": ("other", 438, (0.667, 0.652, 0.673)),
    "csl x8": ("other", 3504, (0.717, 0.702, 0.711)),
    "recombine x1": ("other", 438, (0.553, 0.565, 0.541)),
}
MAIN = ("bare", "resample x8", "geca + csl x8")


def difference(own, other, width=0.034, **more):
    mean = sum(own) / len(own) - sum(other) / len(other)
    return Difference(mean=mean, low=mean - width, high=mean + width, p=0.0004 if abs(mean) > 0.05 else 0.0871, **more)


def tested(system):
    role, examples, seeds = TESTED[system]
    control = TESTED["resample x8"][2]
    mean = sum(seeds) / len(seeds)
    return Tested(
        system=system,
        role=role,
        examples=examples,
        accuracy=mean,
        low=mean - 0.044,
        high=mean + 0.043,
        by_seed=list(seeds),
        over_bare=None if role == "bare" else difference(seeds, TESTED["bare"][2]),
        over_control=None if role in ("bare", "control") else difference(seeds, control, corrected=0.0024),
    )


def trial(system, methods, examples, runs, random, compositional, dropped=""):
    accuracy = {"random": random, "compositional": compositional}
    score = (random + compositional) / 2
    return Trial(
        system=system, methods=methods, examples=examples, runs=runs, accuracy=accuracy, score=score, dropped=dropped
    )


def groups(*rows):
    return [
        Group(label=label, examples=examples, accuracy=dict(zip(MAIN, shares, strict=True))
              | {"csl x8": shares[2] - 0.02})
        for label, examples, *shares in rows
    ]  # fmt: skip


LAKE = ("what is the largest lake in m0", "answer ( largest ( intersection ( lake , loc_2 ( m0 ) ) ) )")
RIVERS = (
    "name the rivers in m0 that run through the state with the most major cities",
    "answer ( intersection ( river , loc_2 ( m0 ) , traverse_2 ( most ( state , loc_1 , intersection ( major , city ) "
    ") ) ) )",
)


def geca_examples():
    return [
        Shown(
            source="what is the longest river in m0",
            target="answer ( longest ( intersection ( river , loc_2 ( m0 ) ) ) )",
            made_from=[
                Origin(label="template", source=LAKE[0], target=LAKE[1]),
                Origin(
                    label="fragment",
                    source="name the longest river that m0 borders",
                    target="answer ( longest ( intersection ( river , next_to_2 ( m0 ) ) ) )",
                ),
            ],
        ),
        Shown(
            source=RIVERS[0],
            target=RIVERS[1],
            made_from=[
                Origin(label="template", source="name the rivers in m0",
                       target="answer ( intersection ( river , loc_2 ( m0 ) ) )"),
                Origin(label="fragment", source="what rivers run through the state with the most major cities",
                       target="answer ( intersection ( river , traverse_2 ( most ( state , loc_1 , intersection ( "
                       "major , city ) ) ) ) )"),
            ],
        ),
    ]  # fmt: skip


def made():
    return [
        Made(
            method="geca",
            examples=3504,
            seconds=2.31,
            figures={"distinct": 3504, "new templates": 0.312, "well-formed": 1.0, "kinds": {"window": 4}},
            words=[
                "All 3,504 examples are new and differ from each other.",
                "31.2 % have a target template that training lacks.",
                "All brackets are balanced.",
            ],
            warnings=["12 % of the targets join two predicates that never stand together in training: look at some."],
            shown=geca_examples(),
            settings=["Fragments of up to 4 tokens: longer ones gave no more examples."],
        ),
        Made(
            method="csl",
            examples=3504,
            seconds=71.2,
            figures={"rules": 412, "depth": 9, "distinct": 3390},
            words=["The grammar has 412 rules and derives 97.7 % of the training examples."],
            warnings=[],
            shown=[
                Shown(source="how many " + " ".join(["states border"] * 3), target="answer ( count ( state ) )",
                      made_from=[])
            ],
        ),
        Made(
            method="recombine",
            examples=438,
            seconds=612.8,
            figures={},
            words=[],
            warnings=["23 % of the targets have unbalanced brackets.", "The held-out loss was still falling."],
            shown=[
                Shown(
                    source="what is the largest river in m0",
                    target="answer ( largest ( intersection ( river , loc_2 ( m0 ) ) )",
                    made_from=[
                        Origin(label="prototype 1", source=LAKE[0], target=LAKE[1]),
                        Origin(label="prototype 2", source="what rivers are in m0",
                               target="answer ( intersection ( river , loc_2 ( m0 ) ) )"),
                    ],
                )
            ],
        ),
    ]  # fmt: skip


def changed(source, expected, other, mended):
    bare, chosen = (other, expected) if mended else (expected, other)
    return Changed(source=source, expected=expected, bare=bare, chosen=chosen)


def answers():
    return {
        "mended": [
            changed("what is the highest mountain in m0",
                    "answer ( highest ( intersection ( mountain , loc_2 ( m0 ) ) ) )",
                    "answer ( highest ( intersection ( place , loc_2 ( m0 ) ) ) )", True),
            changed("which states border the state with the smallest area",
                    "answer ( intersection ( state , next_to_2 ( smallest_one ( area_1 ( state ) ) ) ) )",
                    "answer ( smallest_one ( area_1 ( state ) ) )", True),
            changed("how long is the rio grande river", "answer ( len ( m0 ) )", "", True),
        ],
        "broken": [
            changed("people in m0", "answer ( population_1 ( m0 ) )",
                    "answer ( population_1 ( intersection ( state , m0 ) ) )", False)
        ],
    }  # fmt: skip


def predictor():
    curve = ((100, 0.12, 0.02), (200, 0.41, 0.11), (400, 0.66, 0.31), (600, 0.741, 0.398), (800, 0.752, 0.421),
             (1200, 0.758, 0.409), (1600, 0.755, 0.414))  # fmt: skip
    return PredictorUsed(
        name="seq2seq",
        configuration="seq2seq_small",
        updates=800,
        why="From 800 to 1,600 updates neither validation part rises by more than its own noise (1.1 points).",
        curve=[Point(updates=at, accuracy={"random": one, "compositional": two}) for at, one, two in curve],
    )


def result(**other):
    """The made-up comparison; `other` replaces parts of it."""
    parts = {
        "answer": "On geoquery/template1, GECA and CSL together raise accuracy on new templates from 59.5 % to 72.6 %.",
        "data": "geoquery/template1",
        "command": "cgen compare geoquery/template1 --minutes 30 -o comparison",
        "metric": "exact match",
        "minutes": 30,
        "seconds": 1633.4,
        "versions": {"compgen": "0.1.0", "Python": "3.12.4", "torch": "2.13.0", "numpy": "2.4.6"},
        "remarks": [
            "11 training examples stand twice.",
            "StemCorrupt is for inflection; these data have no tags.",
            "Time did not allow csl x32.",
        ],
        "parts": Parts(train=438, test=332, test_by="split test of the data", validation={"random": 44,
                       "compositional": 44}, validation_by="at random, and by templates that the rest lacks",
                       carvings=2),
        "predictor": predictor(),
        "methods": [
            Method(name="geca", summary="Exchange fragments that share a context (GECA).", tried=True),
            Method(name="csl", summary="Sample from an induced grammar (CSL).", tried=True),
            Method(name="recombine", summary="Sample from a learned recombination model (R&R).", tried=True),
            Method(name="stemcorrupt", summary="Corrupt stems.", tried=False, why="The data have no stems and tags."),
            Method(name="concat", summary="Join examples.", tried=False, why="Joined questions are no questions."),
        ],
        "trials": [
            trial("bare", [], 0, 4, 0.752, 0.421),
            trial("resample x1", ["resample"], 438, 2, 0.755, 0.418, "a control below x8's"),
            trial("resample x8", ["resample"], 3504, 4, 0.761, 0.434),
            trial("geca x1", ["geca"], 438, 2, 0.758, 0.462, "below geca x8"),
            trial("geca x8", ["geca"], 3504, 4, 0.769, 0.49),
            trial("csl x1", ["csl"], 438, 2, 0.764, 0.512, "below csl x8"),
            trial("csl x8", ["csl"], 3504, 4, 0.772, 0.551),
            trial("recombine x1", ["recombine"], 438, 2, 0.701, 0.372, "clearly below bare after two runs"),
            trial("geca + csl x8", ["geca", "csl"], 3504, 4, 0.781, 0.568),
        ],
        "choice": Choice(system="geca + csl x8", methods=["geca", "csl"], examples=3504,
                         why="It has the best mean of both validation parts, 1.3 points above csl x8."),
        "tested": [tested(system) for system in TESTED],
        "by_length": groups(("1 to 6 tokens", 88, 0.71, 0.72, 0.79), ("7 to 9 tokens", 131, 0.62, 0.63, 0.75),
                            ("10 tokens or more", 113, 0.476, 0.48, 0.65)),
        "by_template": groups(("template seen in training", 0, 0, 0, 0.02), ("new template, known parts", 246, 0.66,
                              0.67, 0.81), ("new template with a new part", 86, 0.408, 0.41, 0.488)),
        "made": made(),
        **answers(),
        "steps": [Step(step="learning curve of the bare data", seconds=148.2), Step(step="geca", seconds=2.3),
                  Step(step="csl", seconds=71.2), Step(step="validation, 28 predictors", seconds=1204),
                  Step(step="test, 24 predictors", seconds=207.7)],
        "files": {"compare.json": "all figures of this page", "augmented.jsonl": "the 3,504 examples chosen",
                  "predictor.pt": "the chosen predictor, of seed 0"},
        "commands": ["cgen augment geca geoquery/template1 -n 1752 -o geca.jsonl",
                     "cgen augment csl geoquery/template1 -n 1752 -o csl.jsonl",
                     "cgen train seq2seq geoquery/template1 --config seq2seq_small --augmented geca.jsonl "
                     "--augmented csl.jsonl -o predictor.pt",
                     "cgen evaluate predictor.pt geoquery/template1"],
    }  # fmt: skip
    return Result(**(parts | other))
