"""What a comparison has found: the content of `compare.json`, from which `report.html` is made.

Accuracies are shares from 0 to 1: exact match unless `metric` says otherwise. A *system* is a set of training data for
one and the same predictor: `bare` (the training examples alone), `resample x2` (the control: twice as many examples
drawn again), `geca x2` (GECA, asked for twice as many new examples as training has), `geca + csl x2` (half from each).
A method may make fewer than it is asked for: `examples` are those that were made.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

BARE, CONTROL = "bare", "resample"
Role = Literal["bare", "control", "chosen", "other"]


class Part(BaseModel):
    """The base of all parts of a result: read strictly, so that a file of another version is noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Parts(Part):
    """How the data were divided: numbers of examples, and in words how the test and validation parts came about."""

    train: int
    test: int
    test_by: str
    validation: dict[str, int]  # examples of each validation part, of one carving
    validation_by: str
    carvings: int


class Point(Part):
    """A point of the bare data's learning curve: accuracy on each validation part after so many updates."""

    updates: int
    accuracy: dict[str, float]


class PredictorUsed(Part):
    """The predictor that all systems train: its configuration, its number of updates and why so many."""

    name: str
    configuration: str
    updates: int
    why: str
    curve: list[Point]


class Method(Part):
    """An augmenter: whether it was tried, and if not, why."""

    name: str
    summary: str
    tried: bool
    why: str = ""


class Trial(Part):
    """A system on the validation parts, means over `runs` predictors; `dropped` says why it was tried no further."""

    system: str
    methods: list[str]
    examples: int  # synthetic ones
    runs: int
    accuracy: dict[str, float]
    score: float  # what the choice is made by
    dropped: str = ""


class Choice(Part):
    """The system chosen, by validation alone, before the test part was opened."""

    system: str
    methods: list[str]
    examples: int
    why: str


class Difference(Part):
    """A difference of accuracy: mean, 95 % interval by bootstrap over test examples and seeds, two-sided p.

    `corrected` is p by Holm's correction for the number of systems compared with the control.
    """

    mean: float
    low: float
    high: float
    p: float
    corrected: float | None = None

    @property
    def final_p(self) -> float:
        """The p that the answer goes by: the corrected one, if there is one."""
        return self.p if self.corrected is None else self.corrected


class Tested(Part):
    """A system on the test part, trained on all training examples with several seeds."""

    system: str
    role: Role
    examples: int  # synthetic ones
    accuracy: float
    low: float
    high: float
    by_seed: list[float]
    together: float | None = None  # the accuracy of all seeds' predictors together, of the choice
    over_bare: Difference | None = None
    over_control: Difference | None = None


class Group(Part):
    """Test examples of one kind (a range of lengths, templates seen or new), with each system's accuracy on them."""

    label: str
    examples: int
    accuracy: dict[str, float]


class Origin(Part):
    """A training example that a synthetic one was made from."""

    label: str
    source: str
    target: str


class Shown(Part):
    """A synthetic example beside what it was made from (empty where the method does not say)."""

    source: str
    target: str
    made_from: list[Origin]


class Made(Part):
    """What a method made from all training examples: its quality in figures and in words, and some examples."""

    method: str
    examples: int
    seconds: float
    figures: dict[str, Any]
    words: list[str]
    warnings: list[str]
    shown: list[Shown]
    settings: list[str] = []  # what was chosen from the data, in words


class Changed(Part):
    """A test example that bare data get wrong and the chosen system right (mended), or the reverse (broken)."""

    source: str
    expected: str
    bare: str
    chosen: str


class Step(Part):
    """A step that was run and how long it took, in seconds of one process."""

    step: str
    seconds: float


class Result(Part):
    """All that a comparison has found."""

    version: Literal[1] = 1
    answer: str  # in a sentence or two
    data: str
    command: str
    metric: str
    minutes: float  # allowed
    seconds: float  # taken
    versions: dict[str, str]  # of compgen, Python, torch and so on
    remarks: list[str]  # what to know: faults of the data, methods that do not apply, what time did not allow
    parts: Parts
    predictor: PredictorUsed
    methods: list[Method]
    trials: list[Trial]
    choice: Choice
    tested: list[Tested]
    by_length: list[Group]
    by_template: list[Group]
    made: list[Made]
    mended: list[Changed]
    broken: list[Changed]
    steps: list[Step]
    files: dict[str, str]  # what was written into the folder: name and what it is
    commands: list[str]  # that make the chosen result again by hand
