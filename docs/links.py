"""Follow every link inside the project: those of the Markdown files, and of the pages in docs/_build where they are built.

Links to other hosts are left alone, so no network is needed. Anchors are looked for too. ``make links`` runs it.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "docs" / "_build"
MADE = ("docs/gallery/", "docs/reference/generated/")  # what Markdown may link to and only `make docs` writes
FENCE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)", flags=re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)\1(?!`)", flags=re.DOTALL)  # within one paragraph
TITLE = r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^)]*\)))?"
LINK = re.compile(
    rf"\]\(\s*(?:<([^<>\n]+)>|((?:[^\s()<>]|\([^\s()]*\))+)){TITLE}\s*\)|^ {{0,3}}\[[^\]]+\]:\s+(\S+)", flags=re.MULTILINE
)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", flags=re.MULTILINE)


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what is an anchor or a link."""
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in {"href", "src"} and (tag, name) != ("base", "href"):
                self.links.append(value)
            elif name == "srcset":
                self.links += [entry.split()[0] for entry in value.split(",")]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)  # a link is its text
    text = re.sub(r"[`*\\]", "", html.unescape(text)).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def page_of(path: Path) -> Page:
    """Return the anchors and links of a Markdown or HTML file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        return Page(text)
    text = FENCE.sub("", text)
    page = Page(CODE.sub("", text))  # tags that are written into it
    page.links += [next(filter(None, found)) for found in LINK.findall(CODE.sub("", text))]
    seen: dict[str, int] = {}
    for anchor in map(slug, HEADING.findall(text)):
        page.anchors.add(f"{anchor}-{seen[anchor]}" if anchor in seen else anchor)
        seen[anchor] = seen.get(anchor, 0) + 1
    return page


def broken(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield the links of a file that lead nowhere."""
    for link in page_of(path).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        base = root if parts.path.startswith("/") else path.parent
        target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        if path.suffix == ".md" and target.is_relative_to(root) and str(target.relative_to(root)).startswith(MADE):
            continue
        if target.is_dir() and path.suffix != ".md":
            target /= "index.html"
        if not target.exists() or not target.is_relative_to(root.resolve()):
            yield f"{link} (no such file)"
        elif target.suffix in {".md", ".html"} and unquote(parts.fragment) not in page_of(target).anchors | {""}:
            yield f"{link} (no such anchor)"


def markdown_files(root: Path = ROOT) -> list[Path]:
    """Return the Markdown files of the project, without those that programs have written."""
    made = ("node_modules", "_build", "gallery", "generated", "outputs")
    hidden = {path for path in root.glob(".*") if path.name != ".github"}
    return sorted(
        path
        for path in root.rglob("*.md")
        if not hidden.intersection(path.parents) and not set(made).intersection(path.relative_to(root).parts)
    )


def main() -> int:
    """Print the links that lead nowhere; return whether there are any."""
    pages = [path for path in sorted(BUILT.rglob("*.html")) if BUILT / "_static" not in path.parents]  # which has templates
    found = [(path, link) for path in markdown_files() for link in broken(path)]
    found += [(path, link) for path in pages for link in broken(path, BUILT)]
    for path, link in found:
        print(f"{path.relative_to(ROOT)}: {link}")
    followed = sum(len(page_of(path).links) for path in [*markdown_files(), *pages])
    print(
        f"{followed} links of {len(markdown_files())} Markdown files and {len(pages)} built pages: {len(found)} lead nowhere"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
