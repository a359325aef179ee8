"""Checks the built site: pages load nothing from a network, no link is dead, every gallery program shows a picture.

`python -m docs.building.built_site build/docs` lists violations and exits with 1 if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser loads by itself, by element.
LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "link": ("href",),
    "source": ("src", "srcset"),
    "video": ("src",),
    "object": ("data",),
}
#: Links in the head that are addresses and load nothing.
ONLY_NAMED = {"canonical", "index", "search", "next", "prev", "author", "help", "copyright"}


class Page(HTMLParser):
    """The addresses that a page loads, those it links to, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.linked.append(values["href"])
        if tag == "link" and set(values.get("rel", "").split()) & ONLY_NAMED:
            return
        self.loaded += [values[name] for name in LOADED.get(tag, ()) if name in values]


def faults(folder: Path) -> Iterator[str]:
    """Remote addresses that are loaded, links to what is not there, and programs that have drawn nothing."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder)
        if path.stem.startswith("plot_") and not any(path.stem in address for address in page.loaded):
            yield f"{name} shows no picture of its program"
        for address in page.loaded:
            if urlsplit(address).scheme in {"http", "https"} or address.startswith("//"):
                yield f"{name} loads {address}"
        for address in {*page.linked, *page.loaded}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{name} leads to {address}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{name} leads to {address}, a place that is not there"
    for style in folder.rglob("*.css"):
        if "url(http" in style.read_text(encoding="utf-8").replace('"', "").replace("'", ""):
            yield f"{style.relative_to(folder)} loads from a network"


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]).resolve()))
    print(*found, sep="\n")
    sys.exit(1 if found else 0)
