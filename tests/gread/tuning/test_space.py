"""Spaces: read from toml, checked against a network, drawn with their conditions."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path

import pytest
import tomli_w

from gread.settings.config import Config
from gread.settings.model_records import models
from gread.tuning.ask_tell import Ledger
from gread.tuning.space import SHIPPED, Choice, Range, Searched, find_space, read_space
from rdgraph.errors import FileError, InvalidArgument, LanguageError, UnknownName


def test_the_paper_space_is_that_of_its_table() -> None:
    """The rows of Table search_real, in our words."""
    space = find_space("paper").of(Config())
    found = {s.name: s.distribution for s in space.searched}
    assert space.fixed == {"epochs": 200}
    assert "search_real" in space.source
    assert found == {
        "adjacency": Choice(("original", "soft")),
        "alpha": Choice(("scalar", "channel")),
        "beta": Choice(("scalar", "channel")),
        "learning_rate": Range(1e-3, 6e-2),
        "weight_decay": Range(0.0, 3e-2),
        "dropout": Range(0.0, 0.6),
        "input_dropout": Range(0.0, 0.6),
        "hidden": Choice((32, 64, 128, 256)),
        "time": Range(0.1, 6.0),
        "method": Choice(("euler", "rk4", "dopri5")),
        "step": Range(0.1, 1.5),
    }


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_spaces_name_networks_that_there_are(name: str) -> None:
    space = find_space(name)
    for network in space.networks:
        space.of(Config.of(network))
    assert set(space.networks) <= set(models)
    assert space.source


@pytest.mark.parametrize("network", list(models))
def test_small_and_wide_are_for_every_network(network: str) -> None:
    for name in ("small", "wide"):
        space = find_space(name).of(Config.of(network))
        assert {"learning_rate", "weight_decay", "hidden"} <= {s.name for s in space.searched}


def test_a_setting_counts_where_its_condition_holds() -> None:
    text = """
    [settings]
    method = ["euler", "exact"]
    step = { low = 0.1, high = 1.5, when = { method = "euler", adjacency = ["soft"] } }
    """
    space = read_space(text, "mine").of(Config())

    def draw(base: Config, method: str) -> dict[str, object]:
        return dict(space.draw(base, lambda s: method if s.name == "method" else 0.5))

    assert draw(Config(), "euler") == {"method": "euler", "step": 0.5}
    assert draw(Config(), "exact") == {"method": "exact"}
    assert draw(Config().updated({"adjacency": "original"}), "euler") == {"method": "euler"}


def test_sections_are_read_back() -> None:
    space = find_space("wide").of(Config())
    again = read_space(tomli_w.dumps(space.sections()), "wide").of(Config())
    assert (again.searched, again.fixed) == (space.searched, space.fixed)


def test_a_network_has_its_own_range_in_place_of_the_common_one() -> None:
    space = read_space("[settings]\nhidden = [8]\n[networks.gcn]\nhidden = [16]\n", "mine")
    assert space.of(Config.of("gcn")).searched == (Searched("hidden", Choice((16,))),)
    assert space.of(Config.of("mlp")).searched == (Searched("hidden", Choice((8,))),)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[settings]\nwidth = [8]", UnknownName, "setting of gread, got 'width'"),
        ("[settings]\nhidden = ['wide']", InvalidArgument, "expected int for hidden"),
        ("[settings]\nhidden = [8, 8]", InvalidArgument, "different values"),
        ("[settings]\nhidden = []", InvalidArgument, "different values"),
        ("[settings]\nhidden = 8", InvalidArgument, r"hidden, got 8.*\[fixed\]"),
        ("[settings]\ndropout = { low = 0.5, high = 0.1 }", InvalidArgument, "low <= high"),
        ("[settings]\ndropout = { low = 0.0, high = 1.5 }", InvalidArgument, "0 <= dropout < 1"),
        ("[settings]\nweight_decay = { low = 0.0, high = 0.1, log = true }", InvalidArgument, "logarithmic"),
        ("[settings]\nhidden = { low = 8, high = 16, step = 0.5 }", InvalidArgument, "whole step"),
        ("[settings]\ndropout = { low = 0.1 }", InvalidArgument, "low and high"),
        ("[settings]\ndropout = { low = 0.1, high = 0.2, base = 2 }", UnknownName, "of dropout, got 'base'"),
        ("[settings]\ntime = { low = 1.0, high = 2.0, when = { heads = 8 } }\nheads = [8]", InvalidArgument, "before"),
        ("[settings]\ntime = { low = 1.0, high = 2.0, when = { width = 8 } }", UnknownName, "width"),
        ("[settings]\nhidden = [8, [16]]", InvalidArgument, r"numbers and texts .* got 8, \[16\], for hidden"),
        ("[settings]\nhidden = { low = 9, high = 8 }", InvalidArgument, "for hidden"),
        ("[settings]\nhidden = { low = 8, high = 16, log = 'no' }", InvalidArgument, "log = true or false, got 'no'"),
        ("[settings]\nmethod = ['eulr']", UnknownName, "did you mean 'euler'"),
        ("[settings]\nstep = { low = 0.1, high = 1.0, when = { method = 'eulr' } }", UnknownName, "'euler'"),
        ("[settings]\nreaction = ['BS', 'BSS']", LanguageError, "unknown name 'BSS'"),
        ("[fixed]\nreaction = ''\n[settings]\nhidden = [8]", LanguageError, "an equation"),
        ("[fixed]\nhidden = 8\n[settings]\nhidden = [8, 16]", InvalidArgument, "got hidden in both"),
        ("[settings]\nhidden = [8]\n[networks.gnc]\nlayers = [2]", UnknownName, "did you mean 'gcn'"),
        ("[others]\nhidden = [8]", UnknownName, "section of the space"),
        ("settings = 1", InvalidArgument, "must be tables"),
        ("", InvalidArgument, "got none"),
    ],
)  # fmt: skip
def test_what_is_no_space_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_space(text, "mine").of(Config())


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[settings]\nhidden = [8, 16]\n")
    assert find_space(path).name == "mine.toml"
    path.write_text("hidden = [")
    with pytest.raises(FileError, match="as toml"):
        find_space(path)
    with pytest.raises(FileError, match="cannot be read"):
        find_space(tmp_path / "none.toml")
    with pytest.raises(UnknownName, match="paper"):
        find_space("papers")
    assert tomllib.loads((Path("gread/data/spaces/small.toml")).read_text())["title"]


def test_a_space_is_restricted_to_some_choices() -> None:
    space = find_space("paper")
    kept = space.restricted("method", ["rk4", "euler", "imex"])
    assert [s for s in kept.searched if s.name != "method"] == [s for s in space.searched if s.name != "method"]
    (method,) = (s for s in kept.searched if s.name == "method")
    assert method.distribution.examples == ("euler", "rk4")
    with pytest.raises(InvalidArgument, match=r"expected a method among .*dopri5.*, got imex"):
        space.restricted("method", ["imex"])
    assert space.restricted("no such setting", []) == space


def test_steps_that_miss_the_end_stop_before_it() -> None:
    text = "[settings]\nhidden = { low = 2, high = 9, step = 3 }\ntime = { low = 0.5, high = 3, step = 1 }\n"
    space = read_space(text, "steps").of(Config())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = [candidate.values for candidate in Ledger(space, Config(), "random", seed=0).ask(40)]
    assert {values["hidden"] for values in drawn} == {2, 5, 8}
    assert {values["time"] for values in drawn} == {0.5, 1.5, 2.5}
