"""Settings: defaults, files and command lines in their order; nothing unknown and nothing senseless gets through."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gread.settings.config import Config, Training
from gread.settings.gread_settings import ADJACENCIES, KINDS, LINKS, VELOCITIES, GreadSettings
from gread.settings.trials import Trial, grouped, make_trials
from rdgraph.errors import FileError, InvalidArgument, RdgraphError, UnknownName
from tests.property_examples import examples

positive = st.floats(1e-12, 1e6)
shares = st.floats(0, 1, exclude_max=True)
heads = st.integers(1, 8)
models = heads.flatmap(
    lambda h: st.builds(
        GreadSettings,
        reaction=st.sampled_from(["BS", "F", "-alpha*L@H + beta*tanh(H)"]),
        alpha=st.sampled_from(KINDS),
        beta=st.sampled_from(KINDS),
        alpha_link=st.sampled_from(LINKS),
        beta_link=st.sampled_from(LINKS),
        adjacency=st.sampled_from(ADJACENCIES),
        normalisation=st.sampled_from(["symmetric", "row", "column", "none"]),
        self_loops=st.floats(0, 10),
        heads=st.just(h),
        attention_dim=st.integers(1, 9).map(lambda k: k * h),
        time=st.floats(0, 1e6),
        method=st.sampled_from(["exact", "euler", "rk4", "dopri5"]),
        step=st.none() | positive,
        hidden=st.integers(1, 1024),
        velocity=st.sampled_from(VELOCITIES),
        readout=st.sampled_from(["all", "H"]),
        encoder_mlp=st.booleans(),
        relu=st.booleans(),
        decoder_mlp=st.booleans(),
        input_dropout=shares,
        dropout=shares,
    )
)
trainings = st.builds(Training, epochs=st.integers(1, 10**6), learning_rate=positive, weight_decay=st.floats(0, 1e3))
configs = st.builds(Config, models, trainings)


@settings(max_examples=examples(30))
@given(configs)
def test_a_file_brings_back_every_setting_exactly(config):
    assert Config.from_toml(config.toml()) == config


@settings(max_examples=examples(30))
@given(configs, configs)
def test_a_whole_file_overrides_any_base_but_for_what_it_leaves_out(config, base):
    read = Config.from_toml(config.toml(), base=base)
    step = base.model.step if config.model.step is None else config.model.step
    assert read == dataclasses.replace(config, model=dataclasses.replace(config.model, step=step))


@settings(max_examples=examples(30))
@given(configs)
def test_text_from_a_command_line_reads_as_the_value(config):
    parts = {**dataclasses.asdict(config.model), **dataclasses.asdict(config.training)}
    texts = {name: str(value) for name, value in parts.items() if value is not None}
    assert Config(GreadSettings(step=config.model.step)).updated(texts) == config


def test_defaults_then_file_then_command_line(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("[model]\nhidden = 32\ntime = 3\n[training]\nlearning_rate = 0.5\n", encoding="utf-8")
    config = Config.load(file)
    assert (config.model.hidden, config.model.time, config.training.learning_rate) == (32, 3.0, 0.5)
    assert type(config.model.time) is float
    assert (config.model.dropout, config.training.epochs) == (0.4, 200)
    last = config.updated({"time": "2.5", "epochs": 7})
    assert (last.model.hidden, last.model.time, last.training.epochs) == (32, 2.5, 7)
    assert config.model.time == 3.0
    based = Config.load(file, base=Config().updated({"dropout": 0.1, "hidden": 99}))
    assert (based.model.dropout, based.model.hidden) == (0.1, 32)
    assert Config().updated({"step": 0.5}).updated({"step": None}).model.step is None


def test_the_text_has_a_section_each_and_leaves_out_what_is_none():
    read = tomllib.loads(Config().toml())
    assert set(read) == {"model", "training"}
    assert "step" not in read["model"]
    assert read["training"] == {
        "epochs": 200, "learning_rate": 0.01, "weight_decay": 5e-4, "optimiser": "adam", "select": "accuracy",
        "patience": 0,
    }  # fmt: skip
    assert read["model"]["name"] == "gread"


def test_unknown_names_are_errors_with_a_suggestion():
    with pytest.raises(UnknownName, match="expected a setting of gread, got 'droput'; did you mean 'dropout'"):
        Config().updated({"droput": 0.1})
    with pytest.raises(UnknownName, match=r"setting of \[training\], got 'learning_rat'; did you mean 'learning_rate'"):
        Config.from_toml("[training]\nlearning_rat = 0.1")
    with pytest.raises(UnknownName, match=r"setting of \[training\], got 'hidden'"):
        Config.from_toml("[training]\nhidden = 3")
    with pytest.raises(UnknownName, match="expected a section, got 'modell'; did you mean 'model'"):
        Config.from_toml("[modell]\nhidden = 3")


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="not valid TOML"):
        Config.from_toml("[model\n")
    with pytest.raises(InvalidArgument, match=r"expected a section \[model\]"):
        Config.from_toml("model = 3")
    with pytest.raises(FileError, match="No such file"):
        Config.load(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe[model]")
    with pytest.raises(FileError, match="expected a toml file"):
        Config.load(binary)


NAN, INF = float("nan"), float("inf")
BAD = {
    "alpha": ["vector", "", 3],
    "beta": ["Scalar", None],
    "alpha_link": ["relu"],
    "beta_link": ["none"],
    "adjacency": ["OA", "Soft"],
    "normalisation": ["rows", "free"],
    "self_loops": [-1.0, NAN, INF, "one", True],
    "heads": [0, -2, 1.5, "4.0", True, 3],
    "attention_dim": [0, 63],
    "time": [-0.1, NAN, INF, "1,5", None, [1.0]],
    "step": [0.0, -1.0, NAN, INF, "often"],
    "hidden": [0, -1, 64.0, "64.5", "", False],
    "encoder_mlp": [1, "yes", None, 0.0],
    "relu": ["1", 2],
    "decoder_mlp": ["no"],
    "input_dropout": [1.0, -0.1, NAN, "half"],
    "dropout": [1, 1.5, -1e-9, INF],
    "epochs": [0, -5, 1.0, "1e2", NAN],
    "learning_rate": [0.0, -0.1, NAN, INF, "fast"],
    "weight_decay": [-1e-4, NAN, INF],
    "reaction": [3, None],
    "method": [4, None],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values], ids=str)
def test_values_that_make_no_sense_are_refused(name, value):
    with pytest.raises((InvalidArgument, UnknownName), match=name):
        Config().updated({name: value})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (GreadSettings, {"hidden": 0}),
        (GreadSettings, {"time": NAN}),
        (GreadSettings, {"step": NAN}),
        (GreadSettings, {"dropout": NAN}),
        (GreadSettings, {"adjacency": "none"}),
        (Training, {"epochs": 0}),
        (Training, {"learning_rate": NAN}),
        (Training, {"weight_decay": -1.0}),
    ],
    ids=str,
)
def test_values_check_themselves_however_they_are_made(kind, values):
    with pytest.raises(RdgraphError, match=next(iter(values))):
        kind(**values)


# ---------------------------------------------------------------------- trials
def test_trials_are_every_split_with_every_seed():
    trials = make_trials(Config(), iter(range(3)), [5, 7])
    assert [(t.split, t.seed) for t in trials] == [(0, 5), (1, 5), (2, 5), (0, 7), (1, 7), (2, 7)]
    assert len({t.member_seed for t in trials}) == 6
    assert Trial(Config(), split=3, seed=2).member_seed == 2 * 2**32 + 3
    for values in ({"seed": -1}, {"split": -1}, {"seed": 2**31}):
        with pytest.raises(InvalidArgument, match="expected a seed and a split from 0"):
            Trial(Config(), **values)


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), unique=True, max_size=20))
def test_member_seeds_are_different(pairs):
    assert len({Trial(split=split, seed=seed).member_seed for split, seed in pairs}) == len(pairs)


def test_who_may_share_a_batch():
    base = Config().updated({"method": "euler", "step": 1.0, "time": 1.5})
    alike = [{}, {"dropout": 0.1, "input_dropout": 0.0}, {"time": 1.9}, {"learning_rate": 1.0}, {"weight_decay": 0.0}]
    alike += [{"time": 2.5}, {"step": 0.9}, {"method": "exact"}, {"method": "dopri5", "step": None}, {"beta": "scalar"}]
    different = [
        {"hidden": 8},
        {"epochs": 3},
        {"beta": "node"},
        {"relu": False},
        {"reaction": "ST"},
        {"method": "strang"},
    ]
    trials = [Trial(base.updated(values)) for values in (*alike, *different)]
    assert grouped(trials) == [list(range(10)), [10], [11], [12], [13], [14], [15]]
    steps = [{}, {"time": 2.5}, {"step": 0.9}, {"alpha": "channel"}, {"method": "rk4"}, {"method": "dopri5"}]
    trials = [Trial(base.updated({"reaction": "F"} | values)) for values in steps]
    assert grouped(trials) == [[0, 1, 2, 3], [4], [5]]
    exact = [Trial(Config().updated({"time": t})) for t in (0.0, 1.0, 50.0)]
    assert grouped(exact) == [[0, 1, 2]]
    with pytest.raises(InvalidArgument, match="expected a step > 0 for euler"):
        grouped([Trial(Config().updated({"method": "euler"}))])
