"""Commands in processes of their own that load no large library: forks of one process that has loaded them already."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.paths import ROOT

#: What takes most of the start of a command; nothing of this project, which reads the environment while it is loaded.
LIBRARIES = ("sympy", "torch", "scipy.stats", "scipy.sparse.linalg", "scipy.integrate", "networkx", "z3")
#: Seconds after which a command is killed.
LONGEST = 600


def run_warm(
    words: Sequence[str], cwd: Path = ROOT, env: Mapping[str, str] | None = None, is_strict: bool = False
) -> subprocess.CompletedProcess[str]:
    """Like `subprocess.run` of `python -m MODULE ARGUMENTS`: folder, environment, streams and exit code are its own.

    Where it is strict, warnings are errors. Strings have the hashes of the process that is forked: a test of hashes
    starts an interpreter instead.

    >>> run_warm(["platform"]).returncode
    0
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = (Path(folder) / name for name in ("out", "err"))
        job: dict[str, Any] = {"words": [*words], "cwd": str(cwd), "is_strict": is_strict}
        job["env"] = dict(os.environ if env is None else env)
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({**job, "out": str(out), "err": str(err)}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(
            [*words], code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
        )


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm_processes"], cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    atexit.register(server.kill)
    return server


def _become(job: dict[str, Any]) -> None:
    """Run the module of a job as the program of this process."""
    signal.alarm(LONGEST)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    for stream, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY | os.O_CREAT), (2, os.O_WRONLY | os.O_CREAT)):
        file = os.open((os.devnull, job["out"], job["err"])[stream], mode)
        os.dup2(file, stream)
    sys.path[:] = [job["cwd"], *filter(None, job["env"].get("PYTHONPATH", "").split(os.pathsep)), *sys.path[1:]]
    module, *arguments = job["words"]
    sys.argv = [module, *arguments]
    if job["is_strict"]:
        warnings.simplefilter("error")
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _serve() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
            return
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
