"""Successive halving: what is dropped, and that the others end as they would have."""

from __future__ import annotations

import pytest

from gread.datasets.embedded import karate
from gread.settings.trials import make_trials
from gread.training.trainer import train
from gread.tuning.space import read_space
from gread.tuning.successive_halving import Rungs
from rdgraph.errors import InvalidArgument
from tests.gread.tuning.quick_searches import quick


@pytest.mark.slow
def test_halving_keeps_the_winner_of_a_rung_and_trains_it_to_the_same_end() -> None:
    options = {"fixed": {"epochs": 80, "hidden": 8}, "space": "small", "splits": [0, 1]}
    whole, halved = quick(9, **options), quick(9, halving=True, **options)
    assert [c.values for c in halved.candidates] == [c.values for c in whole.candidates]
    states = [(r.state, r.epochs) for r in halved.results]
    assert sorted(states) == [("complete", 80)] * 2 + [("pruned", 20)] * 6 + [("pruned", 40)]
    full = {r.number: r for r in whole.results}
    for result in halved.results:
        known = full[result.number]
        done = train(karate(), make_trials(whole.config(result.number), [0, 1]), device="cpu")
        for epoch, value in result.rungs:  # the best so far of the whole training
            assert value == pytest.approx(done.history[:, :epoch, 2].max(1).mean(), abs=1e-6)
        if result.state == "complete":
            assert (result.val, result.test) == (pytest.approx(known.val), pytest.approx(known.test))
    first = sorted(halved.results, key=lambda r: (-r.rungs[0][1], r.number))
    assert {r.number for r in first[:3]} == {r.number for r in halved.results if r.epochs > 20}


@pytest.mark.slow
def test_halving_over_several_shapes_compares_all_of_them() -> None:
    """Widths are different batches; those that stay may be of any."""
    text = "[settings]\nhidden = [4, 8]\nepochs = [20, 60]\nlearning_rate = { low = 1e-3, high = 5e-2, log = true }\n"
    options = {"space": read_space(text, "shapes"), "fixed": {"dropout": 0.1}, "splits": [0, 1], "seed": 2}
    whole, halved = quick(12, **options), quick(12, halving=True, **options)
    long = [c.number for c in halved.candidates if c.values["epochs"] == 60]
    assert 0 < len(long) < 12
    going = [r for r in halved.results if r.number in long]
    assert sum(r.state == "complete" for r in going) == Rungs().survivors(len(long), 40, 60)
    for one, other in zip(halved.results, whole.results, strict=True):
        if one.state == "complete":
            assert one.val == pytest.approx(other.val)
            assert one.epochs == halved.config(one.number).training.epochs


@pytest.mark.parametrize(
    "stages", [((0.2, 0.5), (0.1, 0.25)), ((0.1, 0.5), (0.2, 0.5)), ((0.0, 0.5),), ((0.5, 1.0),), ((1.5, 0.5),)]
)
def test_stages_that_save_nothing_are_refused(stages: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(InvalidArgument, match="shares of epochs must rise and shares of trials fall"):
        Rungs(stages)


def test_rungs_are_at_whole_chunks_and_leave_what_they_say() -> None:
    rungs = Rungs(((0.1, 0.5), (0.3, 0.1)))
    assert rungs.ends(200) == (20, 60, 200)
    assert rungs.ends(210) == (40, 80, 210)
    assert rungs.ends(50) == (20, 50)  # both stages meet, the last one counts
    assert rungs.survivors(11, 20, 50) == 2
    assert rungs.ends(10) == (10,)
    assert [rungs.survivors(20, end, 200) for end in (20, 60)] == [10, 2]
    assert rungs.work([200] * 20) == 20 * 20 + 10 * 40 + 2 * 140
    for count in (27, 50, 60, 200):
        assert Rungs().work([200] * count) / (200 * count) < 1 / 3
