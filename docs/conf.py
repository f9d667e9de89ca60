"""The documentation site: ``make docs`` builds it, with warnings as errors."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Any

project = "tiebreak"
copyright = "the tiebreak developers"
release = importlib.metadata.version("tiebreak")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "gallery/**/*.md5"]
templates_path = ["_templates"]
suppress_warnings = ["ref.python"]  # several classes have a `dimension`

html_theme = "pydata_sphinx_theme"
html_title = "tiebreak"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "collapse_navigation": True,
    "show_nav_level": 1,
    "secondary_sidebar_items": [],  # one column beside the text, not two: code has lines of 125 characters
}
html_sidebars = {"**": ["sidebar-nav-bs", "page-toc"], "index": []}
html_static_path = ["_static"]
html_css_files = ["tiebreak.css"]
html_show_sourcelink = False

myst_heading_anchors = 3  # links such as extending.md#a-set

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say it in words
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

BARS = re.compile(r"(?<!\\)\|")

# Each program in examples/ becomes a page with its figures.
EXAMPLES = Path(__file__).parents[1] / "examples"
if any(EXAMPLES.glob("*.py")):
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": str(EXAMPLES),
        "gallery_dirs": "gallery",
        "filename_pattern": r"\.py",
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_memory": False,
        "image_srcset": ["2x"],
        "write_computation_times": False,
        "within_subsection_order": "FileNameSortKey",
    }


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let |x| be an absolute value, not a substitution."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else BARS.sub(r"\\|", line) for line in lines]


def skip_routing(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn makes for the routing of metadata; its own pages explain them."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Any) -> None:
    """Connect the two functions above."""
    app.connect("autodoc-process-docstring", escape_bars, priority=999)  # after napoleon
    app.connect("autodoc-skip-member", skip_routing)
