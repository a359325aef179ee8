"""The explorer with the real parser behind it: a server for this machine alone, of the standard library."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rdgraph.errors import InvalidArgument, LanguageError, RdgraphError
from rdgraph.reports.preflight_report import preflight
from rdgraph.systems.parser import parse
from studies.explorer.equation_bundle import make_bundle
from studies.explorer.page_text import page_text

HOST = "127.0.0.1"
#: Longest address that is read; equations have limits of their own.
MOST_CHARACTERS = 20_000


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    body: str
    kind: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Explorer:
    """The page and what it may ask: /, /api/bundle?equation=... and /api/preflight?equation=...&T=...&step=...

    >>> Explorer("").answer("/api/bundle?equation=A*H").body[:30]
    '{"error": {"at": 1, "expected"'
    """

    page: str

    def answer(self, address: str) -> Answer:
        """The answer to a question by its address; an error of ours is an answer too."""
        parts = urlsplit(address)
        questions: dict[str, Callable[[dict[str, str]], dict[str, Any]]] = {
            "/api/bundle": lambda words: {"bundle": make_bundle(parse(words.get("equation", "")))},
            "/api/preflight": _preflight,
        }
        if parts.path == "/":
            return Answer(self.page, "text/html; charset=utf-8")
        if parts.path not in questions or len(address) > MOST_CHARACTERS:
            return Answer('{"error": "no such page"}', status=404)
        words = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return Answer(json.dumps(_or_error(questions[parts.path], words)))


def _or_error(question: Callable[[dict[str, str]], dict[str, Any]], words: dict[str, str]) -> dict[str, Any]:
    try:
        return question(words)
    except LanguageError as problem:
        return {"error": {"at": problem.offset, "expected": problem.expected, "got": problem.got,
                          "remedy": problem.remedy}}  # fmt: skip
    except RdgraphError as problem:
        return {"error": {"at": 0, "expected": "another question", "got": str(problem), "remedy": "change it"}}


def _preflight(words: dict[str, str]) -> dict[str, Any]:
    try:
        numbers = {str(name): float(value) for name, value in json.loads(words.get("coefficients", "{}")).items()}
        end, step = float(words["T"]), float(words["step"])
    except (ValueError, TypeError, AttributeError, KeyError) as problem:
        raise InvalidArgument(f"expected numbers for T, the step and the coefficients, got {problem!r}") from None
    system = parse(words.get("equation", ""))
    numbers = {name: value for name, value in numbers.items() if system.coefficients.get(name) != "matrix"}
    report = preflight(
        system, normalisation=words.get("normalisation", "symmetric"), method=words.get("method", "auto"),
        values={name: value for name, value in numbers.items() if name in system.coefficients}, T=end, step=step,
    )  # fmt: skip
    return {"report": report.to_dict()}


def make_server(equation: str | None, graph: str, port: int = 0) -> HTTPServer:
    """A server on this machine; port 0 takes one that is free. `serve_forever` starts it."""
    explorer = Explorer(page_text(equation, graph, served=True))

    class Handler(BaseHTTPRequestHandler):
        """Answers to questions of this machine's own pages."""

        def do_GET(self) -> None:
            # Another site could resolve its own name to this machine; its pages get no answer.
            is_own = (self.headers.get("Host") or "").partition(":")[0] in (HOST, "localhost")
            answer = explorer.answer(self.path) if is_own else Answer("", "text/plain", 403)
            body = answer.body.encode("utf-8")
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as the standard library calls it
            """Say nothing."""

    return HTTPServer((HOST, port), Handler)
