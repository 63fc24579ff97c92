"""What a comparison can do in its time."""

import re
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.comparison.plan import (
    ALL,
    FIRST_UPDATES,
    FOR_AUGMENTING,
    MARGIN,
    SPARE,
    TIMES,
    Plan,
    as_plan,
    check_time,
    left_out,
    make_plan,
    most_updates,
    thinner,
)
from compgen.errors import UserError

METHODS = st.integers(1, 6)


def test_the_trials_of_a_plan():
    # (4 methods + control) x 2 amounts; 2 rounds of bare, control and 3; a union in 3 rounds; 3 x 3 seeds; 3 others x 3
    assert Plan(1000, TIMES, 3, 3, 3).trials(4) == 10 + 2 * 5 + 3 + 9 + 9
    assert Plan(1000, TIMES, 3, 3, 3, ALL).trials(4) == 10 + 2 * (8 + 2) + 3 + 9 + 9
    assert Plan(1000, TIMES[-1:], 1, 2, 0).trials(1) == 2 + 0 + 0 + 6


@given(METHODS, st.floats(0.01, 1), st.sampled_from([500, 1000, 4000]), st.integers(1, 5), st.floats(1, 1e6))
def test_a_plan_fits_or_is_the_poorest(methods, per_update, updates, seeds, seconds):
    poorest = Plan(FIRST_UPDATES, TIMES[-1:], 1, min(2, seeds), 0)
    plan = make_plan(seconds, per_update, updates, methods, seeds)
    if seconds < poorest.trials(methods) * FIRST_UPDATES * per_update:
        assert plan == poorest
        return
    assert plan.trials(methods) * plan.updates * per_update <= seconds
    assert FIRST_UPDATES <= plan.updates <= updates and plan.seeds <= seeds


@given(METHODS, st.floats(0.01, 1), st.integers(1, 5), st.integers(1, 8), st.floats(0, 100))
def test_what_is_refused_for_want_of_time_is_done_in_the_minutes_that_are_named(
    methods, per_update, seeds, count, spent
):
    with pytest.raises(
        UserError, match=f"500 updates, which take {per_update:.2f} s each; with .*: give --minutes"
    ) as refused:
        check_time(spent, spent, per_update, methods, seeds, count)
    minutes = int(re.search(r"--minutes (\d+) or", str(refused.value))[1])
    check_time(60 * minutes, spent, per_update, methods, seeds, count)
    first = FIRST_UPDATES * per_update
    left = count * min((1 - FOR_AUGMENTING) * SPARE * 60 * minutes - first, SPARE * 60 * minutes - spent - first)
    poorest = Plan(FIRST_UPDATES, TIMES[-1:], 1, min(2, seeds), 0)
    assert poorest.trials(methods) * FIRST_UPDATES * per_update <= left * 1.0001  # as the comparison plans then
    if minutes > 1:
        with pytest.raises(UserError):
            check_time(60 * (minutes - 1) / MARGIN, spent, per_update, methods, seeds, count)


@pytest.mark.parametrize(
    ("methods", "seeds", "advised"),
    [(1, 1, ""), (1, 2, ", or --seeds 1"), (3, 3, ", or fewer --methods, or --seeds 1")],
)
def test_no_fewer_methods_or_seeds_than_one_are_advised(methods, seeds, advised):
    with pytest.raises(UserError, match=rf"or more, or more --jobs if there are cores for them{advised}$"):
        check_time(60, 10, 1.0, methods, seeds, 1)


@given(METHODS, st.integers(1, 5))
def test_more_time_never_gives_a_poorer_plan(methods, seeds):
    plans = [make_plan(seconds, 0.1, 2000, methods, seeds) for seconds in range(2000, 60_000, 2000)]
    done = [plan.trials(methods) * plan.updates for plan in plans]
    assert done == sorted(done)
    assert plans[-1] == Plan(2000, TIMES, 3, seeds, seeds, ALL)


@given(METHODS, st.integers(1, 5))
def test_no_more_updates_than_there_is_time_for(methods, seeds):
    most = most_updates(1000, 0.001, methods, seeds, settled=False)
    assert most == int(1_000_000 / Plan(1, TIMES[-1:], 1, min(2, seeds), 0).trials(methods))
    enough = most_updates(1000, 0.001, methods, seeds, settled=True)
    plan = make_plan(1000, 0.001, enough, methods, seeds)  # what is known by heart leaves time for more than updates
    assert plan.updates == enough < most and plan.times == TIMES and plan.seeds == seeds
    assert plan.others or methods == 6


@given(METHODS, st.floats(0.001, 1), st.integers(500, 9000), st.integers(1, 5))
def test_a_plan_is_thinned_step_by_step_and_its_first_round_stays_as_it_is(methods, per_update, updates, seeds):
    plan = make_plan(3600, per_update, updates, methods, seeds)
    thinned = list(thinner(plan))
    assert thinned[0] == plan
    assert {(one.updates, one.times) for one in thinned} == {(plan.updates, plan.times)}
    assert (thinned[-1].rounds, thinned[-1].others, thinned[-1].seeds) == (1, 0, min(2, plan.seeds))


def test_what_is_left_out_is_told_in_words():
    full = Plan(1000, TIMES, 3, 3, 3, ALL)
    assert left_out(full, full) == ""
    assert left_out(full, replace(full, survivors=3)) == "systems that go on: 3, not all"
    assert left_out(full, replace(full, rounds=1, others=0)) == (
        "rounds of validation: 1, not 3; seeds of other methods: 0, not 3"
    )
    assert as_plan(asdict(full) | {"times": list(TIMES)}) == full
