"""Configurations: those that are shipped, a user's own, and what is wrong in them."""

import pytest

from compgen.augmenters.concat import ConcatOptions
from compgen.configuration import check_one_value, load_config, shipped
from compgen.csl.options import CslOptions
from compgen.errors import ConfigError
from compgen.recombine.config import RecombineConfig
from compgen.substitution.options import SubstituteOptions
from compgen.training.config import PretrainedConfig, Seq2SeqConfig, TransformerConfig
from tests.training.tiny import generator_config


def test_every_shipped_configuration_loads():
    assert {"recombine_scan", "seq2seq_scan", "rnnlm_scan"} <= set(shipped())
    for name in shipped():
        kinds = {"seq2seq": Seq2SeqConfig, "transformer": TransformerConfig, "t5": PretrainedConfig, "csl": CslOptions}
        kinds["grammar"] = SubstituteOptions
        load_config(kinds.get(name.split("_")[0], RecombineConfig), name)


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("nowhere", [], "no configuration nowhere"),
        ("seq2seq_small", ["optimisation.bach=3"], r"optimisation\.bach: no such .* did you mean optimisation\.batch"),
        ("seq2seq_small", ["steps=10"], r"steps: no such setting; did you mean optimisation\.steps\?"),
        ("seq2seq_small", ["optimization.steps=10"], r"optimization: no such setting; did you mean optimisation\?"),
        ("seq2seq_small", ["zzz=10"], r"zzz: no such setting; expected one of optimisation\.NAME, held_out, "),
        ("seq2seq_small", ["optimisation.batch=zero"], "zero"),
        ("seq2seq_small", ["batch"], r"expected KEY=VALUE.* \(in Python one of overrides=\)"),
        ("seq2seq_small", ["=3"], "expected KEY=VALUE"),
        ("seq2seq_small", [f"optimisation.steps={'9' * 5000}"], "found '999.*expected a number of fewer digits"),
        ("seq2seq_small", ["optimisation.steps=3", 5], "overrides .*, 5]: expected a list of strings"),
        ("seq2seq_small", 5, "overrides 5: expected a list of strings"),
        ("seq2seq_small", ["held_out.x=1"], "held_out is a value"),
        (
            "csl_scan",
            [],
            "configuration csl_scan is of another command: expected a TOML file or one of seq2seq_morphology, ",
        ),
        (".", [], r"no configuration \."),
        ("transformer_small", [], "configuration transformer_small is of another command: "),
        ("seq2seq_small", ["network.memories=3"], r"network\.memories is 1 here, found 3"),
        # As a share of 256 it may be all of them, which would leave nothing.
        ("seq2seq_small", ["network.embedding_dropout=0.999"], r"\.embedding_dropout: .*less than or equal to 0\.99"),
        ("seq2seq_small", ["network.output_dropout=0.999"], r"\.output_dropout: .*less than or equal to 0\.99"),
        ("seq2seq_small", ["network.feed_dropout=0.999"], r"\.feed_dropout: .*less than or equal to 0\.99"),
    ],
)
def test_wrong_configurations_are_named(name, overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config(Seq2SeqConfig, name, overrides)


def test_a_number_of_prototypes_that_is_no_number_is_refused():
    with pytest.raises(ConfigError, match="prototypes: found nan, expected a finite number"):
        generator_config("prototypes=nan")


def test_a_configuration_file_may_have_a_base(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "seq2seq_small"\n[optimisation]\nbatch = 7\n')
    config = load_config(Seq2SeqConfig, str(path))
    assert config.optimisation.batch == 7
    assert config.network == load_config(Seq2SeqConfig, "seq2seq_small").network
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.toml").write_text('base = "../mine.toml"\nseed_of_nothing = 1\n')
    with pytest.raises(ConfigError, match="seed_of_nothing"):  # its base is found beside it
        load_config(Seq2SeqConfig, str(tmp_path / "more" / "other.toml"))
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(Seq2SeqConfig, str(path))
    for base in (path, f"../{tmp_path.name}/mine.toml", "more/../mine.toml"):
        path.write_text(f'base = "{base}"\n')
        with pytest.raises(ConfigError, match=rf"mine.toml: its base leads back to it: {path} -> {path}$"):
            load_config(Seq2SeqConfig, str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a = " + "[" * 100_000, "not TOML that can be read: brackets too deep in each other"),
        ("a = ", "not TOML: "),
        ("# " + "x" * 2**20, "more than 1,048,576 bytes"),
        ("optimisation = 3", r"optimisation: found 3, expected a table of settings, for instance --set "),
        ("[network]\nhidden = {a = 1}", r"network\.hidden: found \{'a': 1\}, expected "),
        ("[network]\nlatent = 3", "a predictor has no latent vector: it answers, it does not vary"),
    ],
)
def test_what_a_file_says_wrongly_is_said_in_a_line(tmp_path, content, message):
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message) as said:
        load_config(Seq2SeqConfig, str(path))
    assert str(path) in str(said.value) and "\n" not in str(said.value)


def test_only_configurations_of_the_same_kind_are_proposed():
    with pytest.raises(ConfigError) as raised:
        load_config(Seq2SeqConfig, "seq2seq_large")
    message = str(raised.value)
    assert "seq2seq_small" in message and "csl" not in message and "recombine" not in message


def test_a_configuration_of_a_method_that_checks_itself_is_another_commands_too():
    with pytest.raises(ConfigError, match="configuration csl_geoquery is of another command: "):
        load_config(SubstituteOptions, "csl_geoquery")
    with pytest.raises(ConfigError, match=r"no configuration odd: expected a TOML file$"):
        load_config(ConcatOptions, "odd")


@pytest.mark.parametrize(
    ("kind", "name"), [(Seq2SeqConfig, "seq2seq_small"), (ConcatOptions, None), (SubstituteOptions, None)]
)
def test_all_settings_are_listed_for_who_asks_and_what_is_listed_can_be_set(kind, name):
    with pytest.raises(ConfigError, match="with their current values") as raised:
        load_config(kind, name, ["?"])
    listed = [line.strip().partition("  ")[0] for line in str(raised.value).splitlines()[1:]]
    settings = [line for line in listed if "=" in line]
    assert settings and len(settings) + sum(line.endswith(", not set") for line in listed) == len(listed)
    assert load_config(kind, name, settings) == load_config(kind, name)


@pytest.mark.parametrize(
    ("kind", "name", "line"),
    [
        (RecombineConfig, "recombine_small", "prototypes=2 Prototypes per sample."),
        (RecombineConfig, "recombine_small", "max_tokens, not set Cut sequences to this many tokens (45 in the"),
        (TransformerConfig, None, "network.heads=4 Number of heads of each attention."),
        (CslOptions, None, "training.steps=2000 The number of updates."),
        (CslOptions, None, "drawing.depth.least=1 Above this depth, draw only rules with nonterminals."),
        (CslOptions, None, "induction.bare_targets=false Let a target be a single"),  # its base's
        (CslOptions, None, "induction.source_given_target=4 k_alpha, for logarithms"),
    ],
)
def test_each_setting_that_is_listed_has_a_description(kind, name, line):
    with pytest.raises(ConfigError, match="with their current values") as raised:
        load_config(kind, name, ["?"])
    assert all(one.strip().partition("  ")[2].strip() for one in str(raised.value).splitlines()[1:])
    assert line in " ".join(str(raised.value).split())


def test_settings_are_listed_as_others_change_them():
    with pytest.raises(ConfigError, match="with their current values") as raised:
        load_config(Seq2SeqConfig, "seq2seq_small", ["optimisation.batch=32", "?"])
    assert "\n  optimisation.batch=32  " in str(raised.value)


def test_an_option_and_a_change_of_the_same_setting_must_agree():
    check_one_value("--seeds 3", "seeds", 3, ["seeds=3", "minutes=4"])
    with pytest.raises(ConfigError, match="--seeds 3 and --set seeds=2 give seeds two values: leave out one of them"):
        check_one_value("--seeds 3", "seeds", 3, ["seeds=2"])


def test_names_that_no_file_can_have_are_refused():
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(ConcatOptions, "x" * 10_000)
