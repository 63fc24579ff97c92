"""What a comparison can do in its time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.comparison.plan import ALL, FIRST_UPDATES, TIMES, Plan, make_plan, most_updates
from compgen.errors import UserError

METHODS = st.integers(1, 6)


def test_the_trials_of_a_plan():
    # (4 methods + control) x 2 amounts; 2 rounds of bare, control and 3; a union in 3 rounds; 3 x 3 seeds; 3 others x 3
    assert Plan(1000, TIMES, 3, 3, 3).trials(4) == 10 + 2 * 5 + 3 + 9 + 9
    assert Plan(1000, TIMES, 3, 3, 3, ALL).trials(4) == 10 + 2 * (8 + 2) + 3 + 9 + 9
    assert Plan(1000, TIMES[-1:], 1, 2, 0).trials(1) == 2 + 0 + 0 + 6


@given(METHODS, st.floats(0.01, 1), st.sampled_from([500, 1000, 4000]), st.integers(1, 5), st.floats(1, 1e6))
def test_a_plan_fits_or_is_refused(methods, per_update, updates, seeds, seconds):
    least = Plan(FIRST_UPDATES, TIMES[-1:], 1, min(2, seeds), 0).trials(methods) * FIRST_UPDATES * per_update
    if seconds < least:
        with pytest.raises(UserError, match=r"too little time: \d+ minutes of one process are needed"):
            make_plan(seconds, per_update, updates, methods, seeds)
        return
    plan = make_plan(seconds, per_update, updates, methods, seeds)
    assert plan.trials(methods) * plan.updates * per_update <= seconds
    assert FIRST_UPDATES <= plan.updates <= updates and plan.seeds <= seeds


@given(METHODS, st.integers(1, 5))
def test_more_time_never_gives_a_poorer_plan(methods, seeds):
    plans = [make_plan(seconds, 0.1, 2000, methods, seeds) for seconds in range(2000, 60_000, 2000)]
    done = [plan.trials(methods) * plan.updates for plan in plans]
    assert done == sorted(done)
    assert plans[-1] == Plan(2000, TIMES, 3, seeds, seeds, ALL)


@given(METHODS, st.integers(1, 5))
def test_no_more_updates_than_there_is_time_for(methods, seeds):
    most = most_updates(1000, 0.001, methods, seeds, learned=False)
    assert most == int(1_000_000 / Plan(1, TIMES[-1:], 1, min(2, seeds), 0).trials(methods))
    enough = most_updates(1000, 0.001, methods, seeds, learned=True)
    plan = make_plan(1000, 0.001, enough, methods, seeds)  # what is known by heart leaves time for more than updates
    assert plan.updates == enough < most and plan.times == TIMES and plan.seeds == seeds
    assert plan.others or methods == 6
