"""Which classes are left out, and what is said of the rest."""

from compgen.augmenters.agreement import Agreement


def outcomes(kind, right, of):
    return [(kind, place < right) for place in range(of)]


def test_a_class_is_left_out_where_too_few_agree_beyond_chance():
    # 0.7 of 100 is 70, less two standard errors, 2 sqrt(0.21 * 100) = 9.2
    found = Agreement.of(outcomes(1, 61, 100) + outcomes(2, 60, 100) + outcomes(3, 0, 4) + outcomes(4, 5, 5), 0.7)
    assert found.counts == {1: (61, 100), 2: (60, 100), 3: (0, 4), 4: (5, 5)}
    assert found.left_out == [2, 3]  # of 4, 2.8 - 1.8 = 1 would have done
    assert found.kept == (66, 105) and found.share == 66 / 105 and found.doubtful


def test_few_exchanges_tell_nothing_and_none_leave_nothing_out():
    assert not Agreement.of(outcomes(1, 0, 19), 0.0).doubtful
    nothing = Agreement.of([], 0.7)
    assert (nothing.counts, nothing.left_out, nothing.kept, nothing.share) == ({}, [], (0, 0), 1.0)


def test_in_words():
    said = "1,000 exchanges that make the source of another example, 90.0% make its target"
    assert Agreement({"kept": (900, 1000), "not": (0, 9)}, ["not"]).in_words() == said


def test_a_warning_says_how_many_and_what_to_do():
    some = Agreement({"kept": (50, 100)}, [])
    assert some.warnings("or do less") == [
        f"of {some.in_words()}: many of the samples will be wrong; look at them, and try a stricter --agreement, or do "
        "less"
    ]
    assert Agreement({"kept": (90, 100)}, []).warnings("or do less") == []
