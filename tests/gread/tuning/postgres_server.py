"""A PostgreSQL server of the tests' own: a new folder, a free port of the loopback device, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def server_folder() -> Path | None:
    """Where the programs of the server lie: Debian keeps them out of the path."""
    places = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").exists() and (place / "initdb").exists()), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres_server(programs: Path) -> Iterator[str]:
    """The url of a database of a server that runs for the length of the block; as nobody where we are root."""
    root = tempfile.mkdtemp(prefix="rdgraph-postgres-")
    owner = pwd.getpwnam("nobody") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    os.chown(root, owner.pw_uid, owner.pw_gid)
    port, data = free_port(), f"{root}/data"

    def call(program: str, *words: str) -> None:
        done = subprocess.run(
            [programs / program, "-D", data, *words], cwd=root, env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            user=owner.pw_uid, group=owner.pw_gid, extra_groups=[] if os.getuid() == 0 else None, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout

    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    try:
        call("initdb", "--username=ada", "--auth=trust", "--no-sync")
        call("pg_ctl", "start", "-w", "-t", "120", "-l", f"{root}/log", "-o", options)
        try:
            yield f"postgresql://ada:unused@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "stop", "-w", "-m", "immediate")
    finally:
        shutil.rmtree(root, ignore_errors=True)
