"""The page: one HTML file with all figures inside it, which needs no network."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tiebreak.studies.claims import Claim, Verdict
from tiebreak.studies.drawing import Figure
from tiebreak.studies.study import Section, Table

MARKS = {Verdict.HOLDS: ("holds", "✓"), Verdict.FAILS: ("fails", "✗"), Verdict.OPEN: ("open", "?")}

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5a6673; --line: #d9dfe6; --page: #f6f7f9; --card: #ffffff;
  --shade: #98a3b0; --accent: #2a6fbb; --holds: #1d7a46; --fails: #b3362b; --open: #7a6420; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #a3adb8; --line: #38424d; --page: #14181d;
  --card: #1d232a; --shade: #05070a; --accent: #7db4f0; --holds: #5fc88c; --fails: #f08a80; --open: #d9bf6a; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0; } h2 { font-size: 1.45rem; margin: 0 0 0.25rem; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 0.5rem; } p { margin: 0.5rem 0; max-width: 88ch; overflow-wrap: anywhere; }
a { color: var(--accent); } .soft { color: var(--soft); font-size: 0.92rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; margin: 1rem 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem; margin: 1.5rem 0; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 0.75rem; }
.panels.four { grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
.panels img { width: 100%; height: auto; display: block; background: #fff; border-radius: 6px; }
figure { margin: 1rem 0 1.75rem; }
figcaption { margin-top: 0.5rem; color: var(--soft); font-size: 0.95rem; max-width: 88ch; }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.1rem; margin: 0 0 0.5rem; font-size: 0.92rem; }
.legend i { display: inline-block; width: 1.5em; height: 0.25em; border-radius: 2px; margin-right: 0.45em;
  vertical-align: middle; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; /* a shadow where more is to be scrolled to */
  background: linear-gradient(to right, var(--card) 40%, transparent) 0 0 / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--card) 40%, transparent) 100% 0 / 3rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) 0 0 / 1.1rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) 100% 0 / 1.1rem 100% no-repeat scroll var(--card); }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 0.7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--soft); white-space: normal; vertical-align: bottom; min-width: 5rem; }
th:first-child, td:first-child { text-align: left; }
tr:last-child td { border-bottom: 0; }
table.wrap td { white-space: normal; text-align: left; overflow-wrap: anywhere; min-width: 8rem; }
.claims { list-style: none; padding: 0; margin: 0; }
.claims li { border-left: 4px solid var(--line); padding: 0.35rem 0.8rem; margin: 0.6rem 0; overflow-wrap: anywhere; }
.claims li.holds { border-color: var(--holds); } .claims li.fails { border-color: var(--fails); }
.claims li.open { border-color: var(--open); }
.badge { font-weight: 600; white-space: nowrap; } .badge.holds { color: var(--holds); } .badge.fails { color: var(--fails); }
.badge.open { color: var(--open); }
.warning { border-left: 4px solid var(--fails); padding: 0.35rem 0.8rem; }
details { margin: 1rem 0; } summary { cursor: pointer; font-weight: 600; }
"""


class Chapter(NamedTuple):
    """A study in the report."""

    name: str
    title: str
    reference: str
    section: Section
    timing: str


Pictures = Mapping[str, Sequence[tuple[str, bytes]]]  # of each figure, by "study-figure": the titles and PNGs of its panels


def page(
    title: str,
    lead: Sequence[str],
    chapters: Sequence[Chapter],
    pictures: Pictures,
    facts: Mapping[str, Any],
    failed: Sequence[str],
) -> str:
    """Return the page.

    Parameters
    ----------
    title : str
    lead : list of str
        Paragraphs at the top.
    chapters : list of Chapter
    pictures : dict
        The images of all figures.
    facts : dict
        Versions, machine, settings of the whole.
    failed : list of str
        Runs that failed, if any did.
    """
    links = "".join(f'<a href="#{_text(chapter.name)}">{_text(chapter.title)}</a>' for chapter in chapters)
    warnings = "".join(f'<p class="warning">A run has failed, and is missing below: {_text(line)}</p>' for line in failed)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head>\n<body><main><h1>{_text(title)}</h1>"
        + "".join(f"<p>{_text(paragraph)}</p>" for paragraph in lead)
        + f"<nav>{links}</nav>{warnings}{_overview(chapters)}"
        + "".join(_chapter(chapter, pictures) for chapter in chapters)
        + f'<section id="about"><h2>How this was made</h2>{_facts(facts)}</section></main></body></html>\n'
    )


def _overview(chapters: Sequence[Chapter]) -> str:
    rows = [
        [each.title, *(sum(claim.verdict is verdict for claim in each.section.claims) for verdict in Verdict), each.timing]
        for each in chapters
    ]
    head = ["study", *(f"{MARKS[verdict][1]} {verdict.value}" for verdict in Verdict), "runs and their time"]
    return "<h3>Claims at a glance</h3>" + _table(Table("", head, rows))


def _chapter(chapter: Chapter, pictures: Pictures) -> str:
    section = chapter.section
    blocks = [
        f'\n<section id="{_text(chapter.name)}"><h2>{_text(chapter.title)}</h2>',
        f'<p class="soft">{_text(chapter.reference)} · {_text(chapter.timing)}</p>',
        *(f"<p>{_text(paragraph)}</p>" for paragraph in section.text.split("\n\n")),
        _claims(section.claims, section.unjudged),
        *(_figure(figure, pictures[f"{chapter.name}-{figure.name}"]) for figure in section.figures),
        *(f"<h3>{_text(table.title)}</h3>{_table(table)}" for table in section.tables),
        *(f'<p class="soft">Note: {_text(note)}</p>' for note in section.notes),
        f"<details><summary>Settings</summary>{_facts(section.settings)}</details>" if section.settings else "",
        "</section>",
    ]
    return "".join(blocks)


def _claims(claims: Sequence[Claim], unjudged: str) -> str:
    if not claims and not unjudged:
        return ""
    items = "".join(
        f'<li class="{MARKS[claim.verdict][0]}"><span class="badge {MARKS[claim.verdict][0]}">{MARKS[claim.verdict][1]} '
        f'{claim.verdict.value}</span> — {_text(claim.text)} <span class="soft">({_text(claim.where)})</span>'
        f'<br><span class="soft">{_text(claim.numbers)}</span></li>'
        for claim in claims
    )
    left = f'<p class="soft">{_text(unjudged)}</p>' if unjudged else ""
    return f'<h3>Claims</h3><ul class="claims">{items}</ul>{left}'


def _figure(figure: Figure, panels: Sequence[tuple[str, bytes]]) -> str:
    legend = "".join(
        f'<span><i style="background:{colour}"></i>{_text(label)}</span>' for label, colour in figure.colours.items()
    )
    four = " four" if len(panels) == 4 else ""  # two by two, where there is room
    pictures = "".join(
        f'<img alt="{_text(title)}" src="data:image/png;base64,{base64.b64encode(image).decode()}">'
        for title, image in panels
    )
    return (
        f'<figure><div class="legend">{legend}</div><div class="panels{four}">{pictures}</div>'
        f"<figcaption>{_text(figure.caption)}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in table.head)
    rows = "".join("<tr>" + "".join(f"<td>{_text(_shown(cell))}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _facts(facts: Mapping[str, Any]) -> str:
    rows = "".join(f"<tr><td>{_text(name)}</td><td>{_text(_shown(value))}</td></tr>" for name, value in facts.items())
    return f'<div class="scroll" tabindex="0"><table class="wrap"><tbody>{rows}</tbody></table></div>'


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _text(value: Any) -> str:
    return html.escape(str(value))
