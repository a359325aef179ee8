"""The command line as a user meets it: exit codes, what is printed where, and no traceback; some of it as processes."""

from __future__ import annotations

import csv
import gc
import importlib.abc
import json
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import sympy as sp
from typer.testing import CliRunner

import rdgraph as rd
from studies.cli import app, launch
from tests.paths import ROOT
from tests.warm_processes import run_warm

KEYS = [
    "text", "latex", "linear", "has_source", "symbol", "response_exact", "lipschitz_global", "lipschitz_local",
    "one_sided", "existence", "invariant_box", "step_limit_euler", "step_limit_rk4", "identifiable", "conserved",
    "notes", "engines",
]  # fmt: skip


class Run(NamedTuple):
    """What a command leaves behind."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Run]


def process(*words: str) -> Run:
    """The command in a process of its own."""
    environment = {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "PATH": "/usr/bin:/bin", "NO_COLOR": "1"}
    done = run_warm(["studies.cli.app", *words], ROOT, environment)
    return Run(done.returncode, done.stdout, done.stderr)


def said(run: Run) -> list[str]:
    """The words on standard error, without the lines that a slow machine adds about what is under way."""
    return " ".join(line for line in run.stderr.splitlines() if not re.search(r" \(\d+ s\)$", line)).split()


@pytest.fixture
def rdgraph(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process: the same entry point, exit code and streams."""
    for console in (app.console, app.errors):
        monkeypatch.setattr(console, "width", 200)

    def run(*words: str) -> Run:
        monkeypatch.setattr(sys, "argv", ["rdgraph", *words])
        with pytest.raises(SystemExit) as end:
            app.main()
        printed = capsys.readouterr()
        return Run(int(end.value.code or 0), printed.out, printed.err)

    return run


@pytest.mark.slow
def test_analyse_json_of_bs() -> None:
    run = process("analyse", "-alpha*L@H + beta*(A@H - A@A@H)", "--json")
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert list(answer) == KEYS
    lam, alpha, beta = sp.symbols("lam alpha beta")
    local = {"lam": lam, "alpha": alpha, "beta": beta, "T": sp.Symbol("T")}
    assert sp.expand(sp.sympify(answer["symbol"], locals=local) - ((beta - alpha) * lam - beta * lam**2)) == 0
    assert sp.sympify(answer["lipschitz_global"]["symmetric"], locals=local).equals(2 * (alpha + beta))
    assert sp.sympify(answer["step_limit_euler"]["row"], locals=local).equals(1 / (alpha + beta))
    assert answer["existence"] == "global"
    assert answer["invariant_box"] is None
    assert "maximum principle" in answer["notes"]["invariant_box"]


@pytest.mark.slow
def test_declarations_and_assumptions_on_the_command_line(rdgraph: Command) -> None:
    words = ("--coefficient", "k=channel", "--coefficient", "m", "--assume", "k<0", "--json")
    run = rdgraph("analyse", "-alpha*L@H + k*H - m*H", *words)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer["text"] == "-alpha*L@H + k*H - m*H where k channel, m scalar, k negative"
    assert sp.sympify(answer["one_sided"]["symmetric"]) == sp.sympify("k - m")


@pytest.mark.parametrize(
    ("words", "needles"),
    [
        (("analyse", "A*H"), ("column 2", "use A@H", "expected", "remedy")),
        (("analyse", "H@A"), ("A@H, not H@A",)),
        (("analyse", "-alhpa*L@H"), ("did you mean alpha", "where alhpa scalar")),
        (("analyse", ""), ("nothing",)),
        (("analyse", "(" * 10_000 + "H" + ")" * 10_000), ("nested brackets",)),
        (("analyse", "H**999999999999"), ("exponent",)),
        (("analyse", "αH"), ("GREEK SMALL LETTER ALPHA", "write alpha")),
        (("analyse", "-alpha*L@H", "--assume", "beta ~ 3"), ("expected an assumption",)),
        (("analyse", "-k*H", "--coefficient", "k=tensor"), ("scalar, channel, node",)),
        (("show", "BSS"), ("did you mean 'BS'",)),
        (("verify", "M99"), ("expected a claim",)),
        (("preflight", "BS", "--step", "-1"), ("step > 0",)),
        (("preflight", "BS", "--method", "rk5", "--step", "1"), ("did you mean 'rk4'",)),
        (("preflight", "BS", "--method", "euler"), ("expected a step",)),
        (("preflight", "BS", "--step", "1", "--set", "alpha=x"), ("expected NAME=VALUE",)),
        (("preflight", "BS", "--step", "1", "--set", "gamma=1"), ("expected coefficients among",)),
        (("plot", "response", "F"), ("no symbol because",)),
        (("plot", "response", "-gamma*L@H"), ("--set gamma=1.0",)),
        (("plot", "phase", "BS", "--graph", "torus"), ("torus:ROWS:COLUMNS",)),
        (("plot", "phase", "u' = a*u - L@u; v' = -a*v - L@v"), ("rdgraph study atlas",)),
        (("plot", "dispersion", "u' = -L@u + B@u where B antisymmetric"), ("further operators",)),
    ],
)
def test_errors_are_text(words: tuple[str, ...], needles: tuple[str, ...], rdgraph: Command) -> None:
    started = time.process_time()
    run = rdgraph(*words)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr + run.stdout
    for needle in needles:
        assert needle in run.stderr
    assert time.process_time() - started < 15


@pytest.mark.slow
@pytest.mark.parametrize("words", [("analyse", "A*H"), ("analyse", "(" * 10_000 + "H" + ")" * 10_000), ("--help",)])
def test_a_process_ends_as_the_entry_point_does(words: tuple[str, ...], rdgraph: Command) -> None:
    alone, here = process(*words), rdgraph(*words)
    assert alone.returncode == here.returncode
    assert "Traceback" not in alone.stderr
    assert said(alone) == said(here)


def test_verify_exit_codes_and_formats(rdgraph: Command) -> None:
    run = rdgraph("verify", "M1", "--json")
    assert run.returncode == 0, run.stderr
    claims = json.loads(run.stdout)
    assert [c["id"] for c in claims] == ["M1.1", "M1.2", "M1.3", "M1.4", "M1.5", "M1.6"]
    assert {c["status"] for c in claims} == {"holds", "false"}
    table = rdgraph("verify", "M1.4", "--markdown")
    assert table.returncode == 0
    assert "| M1.4 |" in table.stdout
    detailed = rdgraph("verify", "M1.1", "--evidence")
    assert "identities under L = I - A alone" in detailed.stdout


@pytest.mark.slow
def test_verify_exits_1_when_a_claim_comes_out_otherwise(tmp_path: Path) -> None:
    """A recorded status that the machinery does not confirm must be reported, not believed."""
    code = (
        "import sys, dataclasses; from rdgraph.reports.claims import claim_records as r; s = r.statements();"
        "s['M1.4'] = dataclasses.replace(s['M1.4'], expected='holds');"
        "sys.argv = ['rdgraph', 'verify', 'M1.4']; from studies.cli.app import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 1
    assert "NO" in run.stdout


def test_options_of_an_own_graph_stand_under_a_heading() -> None:
    assert "\nArguments:\n" in CliRunner().invoke(app.app, ["predict", "--help"]).stdout
    for command in ("train", "search"):
        page = CliRunner().invoke(app.app, [command, "--help"]).stdout
        general, own = page.split("\nYour own graph:\n")
        assert "--device" in general
        assert "--nodes" not in general
        assert "--device" not in own
        assert "--nodes" in own


def test_an_interrupt_while_the_program_is_loaded_has_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupts(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, *_: object) -> None:
            if name == "studies.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "studies.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        launch.main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["rdgraph"]
        == "studies.cli.launch:main"
    )


@pytest.mark.parametrize(("library", "freezes"), [("builtins", 1), ("nanobind", 0)])
def test_objects_that_nanobind_counts_are_collected(
    library: str, freezes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen ones would be printed as leaks behind the answer."""
    for name, module in list(sys.modules.items()):
        if any(str(type(v).__module__) == "nanobind" for v in getattr(module, "__dict__", {}).values()):
            monkeypatch.delitem(sys.modules, name)
    bound = ModuleType("bound")
    bound.kind = type("nb_type", (), {"__module__": library})()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bound", bound)
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    app._leave_garbage()
    assert len(frozen) == freezes


def test_catalogue_and_show(rdgraph: Command) -> None:
    table = rdgraph("catalogue")
    assert table.returncode == 0
    for name in ("diffusion", "FB*-released", "GRAND++", "Nagumo"):
        assert name in table.stdout
    page = rdgraph("show", "fisher")
    assert page.returncode == 0
    assert "Fisher" in page.stdout
    assert "[0, 1]" in page.stdout
    listed = {entry["name"]: entry for entry in json.loads(rdgraph("catalogue", "--json").stdout)}
    assert len(listed) == len(rd.catalogue)
    assert listed["BS"]["fields"] == ["H"]
    assert listed["BS"]["parameters"] == {}
    assert listed["GraphCON"]["fields"] == ["H", "H'"]
    assert listed["Schnakenberg"]["parameters"] == {"a": 0.1, "b": 0.9, "Du": 1, "Dv": 10}
    assert "Madzvamuse" in listed["Schnakenberg"]["parameters_source"]


@pytest.mark.slow
def test_several_fields_are_listed_and_shown(rdgraph: Command) -> None:
    table = rdgraph("catalogue").stdout
    for words in (
        "u' = a - u + u**2*v - Du*L@u",
        "v' = b - u**2*v - Dv*L@v",
        "a = 0.7, b = 0.8, c = 3",
        "dH/dt = -alpha*L@H",
    ):
        assert words in table
    page = rdgraph("show", "schnakenberg")
    assert page.returncode == 0
    assert said(page) == []
    for words in (
        "u' = a - u + u**2*v - Du*L@u", "fields: u, v", "parameters: a = 0.1, b = 0.9, Du = 1, Dv = 10 (Madzvamuse",
        r"\begin{aligned} \dot{\mathbf{u}} &= a", "no symbol because the reaction", "reaction u**2*v", "constant a",
    ):  # fmt: skip
        assert words in page.stdout, words
    oscillators = rdgraph("show", "GraphCON-linear").stdout
    assert "[[0, 1], [-gamma - lam + 1, -alpha]]" in oscillators
    assert "linear in H (node and A), H' (node)" in oscillators
    assert "parameters: alpha = 1, gamma = 1 (the authors' released code" in oscillators
    assert "dH/dt" not in oscillators
    infection = rdgraph("show", "SIR").stdout
    assert "between nodes -beta*u*A@v" in infection
    assert "couples nodes" in infection
    one = rdgraph("show", "APPNP").stdout
    assert "parameters: alpha = 0.9, beta = 0.1 (Gasteiger" in one
    assert "dH/dt = -alpha*L@H + beta*(H0 - H)" in one


def test_preflight_verdicts_and_exit_codes(rdgraph: Command) -> None:
    unsafe = rdgraph(
        "preflight", "BS", "--time", "40", "--method", "euler", "--step", "1", "--set", "alpha=1", "--set", "beta=1"
    )
    assert unsafe.returncode == 1
    assert "unsafe because" in unsafe.stdout
    safe = rdgraph(
        "preflight", "BS", "--time", "3", "--method", "exact", "--set", "alpha=1", "--set", "beta=0.5", "--json"
    )
    assert safe.returncode == 0
    assert json.loads(safe.stdout)["outcome"] == "safe"


@pytest.mark.slow
def test_plot_phase_writes_figure_and_numbers(tmp_path: Path, rdgraph: Command) -> None:
    run = rdgraph("plot", "phase", "FB", "--graph", "ring:5", "--points", "9", "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert "9 x 9 runs: 100.00% of those away from a border" in run.stdout
    with (tmp_path / "phase.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 81
    for row in rows:  # FB is diffusion with alpha - beta
        gap = float(row["alpha"]) - float(row["beta"])
        expected = "neutral" if abs(gap) < 1e-9 else "smooths" if gap > 0 else "grows without bound"
        assert row["predicted"] == expected
    assert (tmp_path / "phase.png").stat().st_size > 1000


@pytest.mark.slow
def test_plot_response_writes_figure_and_numbers(tmp_path: Path, rdgraph: Command) -> None:
    run = rdgraph(
        "plot", "response", "-alpha*L@H", "ST", "--time", "2", "--step", "0.5", "--out", str(tmp_path / "figure")
    )
    assert run.returncode == 0, run.stderr
    assert {p.name for p in (tmp_path / "figure").iterdir()} == {"response.png", "response.pdf", "response.csv"}
    with (tmp_path / "figure/response.csv").open() as file:
        rows = list(csv.DictReader(file))
    at_two = [
        float(r["gain"]) for r in rows if r["system"] == "-alpha*L@H" and r["method"] == "exact" and r["lam"] == "2"
    ]
    assert at_two == pytest.approx([float(sp.exp(-2))])
    at_zero = [float(r["gain"]) for r in rows if r["system"] == "ST" and r["method"] == "euler" and r["lam"] == "0"]
    assert at_zero == pytest.approx([3.0])  # 1 + beta T, the removable point


@pytest.mark.slow
def test_plot_dispersion_writes_figure_and_numbers(tmp_path: Path, rdgraph: Command) -> None:
    text = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
    numbers = [word for pair in ("a=0.1", "b=0.9", "Du=0.02", "Dv=1") for word in ("--set", pair)]
    run = rdgraph("plot", "dispersion", text, *numbers, "--graph", "ring:6", "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert "u = 1, v = 9/10 (exact): turing" in run.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"dispersion.png", "dispersion.pdf", "dispersion.csv"}
    with (tmp_path / "dispersion.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:  # the larger root of the quadratic of P(lam) = [[0.8 - 0.02 lam, 1], [-1.8, -1 - lam]]
        place = float(row["lam"])
        trace, determinant = -0.2 - 1.02 * place, 1.8 - (0.8 - 0.02 * place) * (1 + place)
        root = complex(trace**2 - 4 * determinant) ** 0.5
        assert float(row["growth"]) == pytest.approx((trace + root.real) / 2, abs=1e-6)
        assert float(row["frequency"]) == pytest.approx(abs(root.imag) / 2, abs=1e-6)
    modes = sorted(float(row["lam"]) for row in rows if row["part"] == "mode")
    assert modes == pytest.approx([0, 0.5, 0.5, 1.5, 1.5, 2], abs=1e-9)


def test_unwritable_folder_is_an_error(tmp_path: Path, rdgraph: Command) -> None:
    (tmp_path / "file").write_text("not a folder")
    run = rdgraph("plot", "response", "BS", "--out", str(tmp_path / "file"))
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert "cannot write" in run.stderr


def test_help_is_worth_reading(rdgraph: Command) -> None:
    for words in ((), ("analyse",), ("verify",), ("preflight",), ("plot", "response")):
        run = rdgraph(*words, "--help")
        assert run.returncode == 0
        assert len(run.stdout.splitlines()) > 8


@pytest.mark.slow
def test_plot_phase_draws_a_reaction(tmp_path: Path, rdgraph: Command) -> None:
    run = rdgraph("plot", "phase", "F", "--graph", "ring:5", "--points", "6", "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert "100.00% of these behaved as predicted" in run.stdout
    with (tmp_path / "phase.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert row["predicted"] == row["simulated"] == ("settles at 1" if float(row["beta"]) > 0 else "settles at 0")
