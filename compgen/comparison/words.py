"""Figures of a comparison as people read them, on the page and on the terminal."""

from compgen.comparison.result import Difference, Result, Tested


def percent(share: float) -> str:
    """A share from 0 to 1, as in `71.4 %`; only all is `100.0 %`, and only nothing `0.0 %`."""
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign, as in `+5.2`."""
    return f"{100 * difference:+.1f}".replace("-", "\N{MINUS SIGN}")


def between(difference: Difference) -> str:
    """The ends of a difference's interval, as in `+2.0 to +8.3`."""
    return f"{points(difference.low)} to {points(difference.high)}"


def span(tested: Tested) -> str:
    """The ends of an accuracy's interval, as in `68.2 to 76.9 %`."""
    return f"{100 * tested.low:.1f} to {100 * tested.high:.1f} %"


def chance(p: float) -> str:
    """A p-value, as in `0.012` or `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """A time in the two largest units, as in `0.4 s`, `12 min 5 s` or `1 h 2 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    units = [(hours, "h"), (minutes, "min"), (0 if hours else rest, "s")]
    return " ".join(f"{number:,} {unit}" for number, unit in units if number)


def together(result: Result) -> str:
    """What the chosen system's predictors answer together, and how to let them; empty where there are not several."""
    one = chosen(result)
    if one is None or one.together is None:
        return ""
    others = " ".join(f"--with predictor-{seed}.pt" for seed in range(1, len(one.by_seed)))
    return (
        f"Together, the {len(one.by_seed)} predictors of {one.system} answer {percent(one.together)}: "
        f"cgen predict predictor.pt SOURCES {others}"
    )


def notes(result: Result) -> list[str]:
    """What to know before one believes the answer, a line each."""
    used = result.predictor
    return [f"The predictor, {used.name}, was trained for {used.updates:,} updates: {used.why}.", *result.remarks]


def chosen(result: Result) -> Tested | None:
    """The chosen system on the test part; it may be the bare data or the control."""
    return next((one for one in result.tested if one.system == result.choice.system), None)
