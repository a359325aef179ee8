"""Fixtures of the downloader's tests: no way but to this machine, folders of their own, a server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gread.datasets import download
from tests.gread.datasets.download.local_server import CONTENT, OTHER, Server


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this machine can be reached."""
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def guarded(self: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1"
        connect(self, address)

    def local(host: Any, *args: Any, **options: Any) -> Any:
        assert host == "127.0.0.1"
        return lookup(host, *args, **options)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", local)


@pytest.fixture(autouse=True)
def _folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(download.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "WAIT", 0.01)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server(files={"good": CONTENT, "other": OTHER})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, asked = self.path.strip("/"), self.headers["Range"]
            state.asked.append((path, asked))
            status = state.status[path].pop(0) if state.status.get(path) else 200
            if status != 200 or path not in state.files:
                self.send_error(status if status != 200 else 404)
                return
            content = state.files[path]
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and state.honours_range else 0
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            stop = state.cut[path].pop(0) if state.cut.get(path) else len(content)
            self.pour(content[start:stop])

        def pour(self, content: bytes) -> None:
            try:
                for k in range(0, len(content), 20_000):
                    self.wfile.write(content[k : k + 20_000])
                    time.sleep(state.pause)
            except OSError:
                pass  # the other side has left
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        yield state
        http.shutdown()
        thread.join()
