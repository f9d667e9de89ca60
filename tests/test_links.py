"""Links inside the project lead somewhere, and those that do not are found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("links", Path(__file__).parents[1] / "docs" / "links.py")
links = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(links)


@pytest.mark.parametrize("path", links.markdown_files(), ids=lambda path: str(path.relative_to(links.ROOT)))
def test_the_links_of_a_markdown_file_lead_somewhere(path):
    assert list(links.broken(path)) == []


PAGE = """# A *title*, with `code`

[good](#a-title-with-code) [other](other.md#part-1) [far](https://example.org/x) `[code](nothing.md)`

```text
[in a block](nothing.md)
```
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("[gone](nothing.md)", ["nothing.md (no such file)"]),
        ("[gone]: nothing.md", ["nothing.md (no such file)"]),
        ('<img src="nothing.png">', ["nothing.png (no such file)"]),
        ("[gone](#elsewhere)", ["#elsewhere (no such anchor)"]),
        ("[gone](other.md#part-2)", ["other.md#part-2 (no such anchor)"]),
        ("[gone](nothing.md 'title')", ["nothing.md (no such file)"]),
        ("[gone](nothing_(a).md)", ["nothing_(a).md (no such file)"]),
        ("[gone](<no thing.md>)", ["no thing.md (no such file)"]),
        ("  [gone]: nothing.md", ["nothing.md (no such file)"]),
        ("a ` tick\n\n[gone](nothing.md)\n\nanother ` tick", ["nothing.md (no such file)"]),
        ("[outside](..)", [".. (no such file)"]),
    ],
)
def test_links_that_lead_nowhere_are_found(tmp_path, text, found):
    (tmp_path / "other.md").write_text("# Part\n\n## Part\n")
    (tmp_path / "page.md").write_text(PAGE + "\n" + text + "\n")
    assert list(links.broken(tmp_path / "page.md", tmp_path)) == found


def test_links_between_pages_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "index.html").write_text('<a href="two.html#here">x</a><a href="two.html#there">x</a><img src="x.png">')
    (tmp_path / "two.html").write_text('<h1 id="here">x</h1>')
    assert list(links.broken(tmp_path / "index.html", tmp_path)) == [
        "two.html#there (no such anchor)",
        "x.png (no such file)",
    ]
