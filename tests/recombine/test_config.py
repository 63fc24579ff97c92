"""What configurations of generators accept."""

import pytest
from pydantic import ValidationError

from compgen.configuration import load_config
from compgen.errors import UserError
from compgen.recombine.config import RecombineConfig, SamplingConfig, SwapConfig


def test_renaming_without_second_prototypes_is_refused():
    with pytest.raises(UserError, match="two prototypes"):
        load_config(RecombineConfig, "recombine_small_around_right", ["prototypes=1"])


@pytest.mark.parametrize("kind", [SamplingConfig, SwapConfig])
def test_configurations_do_not_change(kind):
    made = kind()
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, next(iter(kind.model_fields)), None)
