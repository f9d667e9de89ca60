"""What is written for readers: the summary, the figures, and the page, which is looked at in a real browser."""

from __future__ import annotations

import csv
import http.server
import shutil
import threading
from functools import partial

import pytest
from toys import Walks

from tiebreak.studies.regression import reference_tables
from tiebreak.studies.reproduce import reproduce
from tiebreak.studies.study import Plan, Runs

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --force-device-scale-factor=1"
)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """What six seeds of a study leave, one run of which fails."""
    folder = tmp_path_factory.mktemp("walks")
    (folder / "forbidden-0-5").touch()
    said = []
    reproduce([Walks(folder)], Plan(seeds=6), folder / "out", jobs=1, echo=said.append)
    assert said[-1] == f"the report is in {folder / 'out' / 'report.html'}"
    return folder / "out"


def test_the_summary_has_one_row_a_run_with_all_that_it_recorded(out):
    with (out / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 11
    assert [(row["run"], row["seed"]) for row in rows[:3]] == [("walks/0", "0"), ("walks/1", "0"), ("walks/0", "1")]
    assert float(rows[1]["end"]) - float(rows[0]["end"]) == pytest.approx(60.0)
    assert float(rows[0]["wall_seconds"]) >= 0.0


def test_figures_are_written_as_png_and_pdf(out):
    assert (out / "figures/walks-paths.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "figures/walks-paths.pdf").read_bytes().startswith(b"%PDF")


def test_the_page_says_what_failed_and_what_holds(out):
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "A run has failed, and is missing below: walks/0, seed 5: RuntimeError: no walk of drift 0 today" in page
    assert "on 5/5 seeds" in page
    assert "--seeds 6" in page
    assert "in walk\n" in (out / "failures.txt").read_text()


@pytest.mark.parametrize(("seeds", "reason"), [(5, "budgets are small here"), (2, "fewer than 5 seeds decide nothing")])
def test_a_quick_run_leaves_out_what_it_cannot_decide_and_says_so(tmp_path, seeds, reason):
    reproduce([Walks(tmp_path)], Plan(seeds=seeds, quick=True), tmp_path / "out", jobs=1, echo=lambda line: None)
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert f"1 of 1 claims are judged at full size only: {reason}." in page
    assert "drift wins" not in page
    assert '<li class="' not in page


def test_every_column_of_the_reference_tables_has_a_name_of_its_own():
    for table in reference_tables(Runs({}), {}):
        assert all(table.head)
        assert len(set(table.head)) == len(table.head)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and remembers what was asked for."""

    def __init__(self, *arguments, asked, **options):
        self.asked = asked
        super().__init__(*arguments, **options)

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def served(out):
    """The address of the page, and the list of requests that it makes."""
    asked: list[str] = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, asked=asked, directory=str(out)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/report.html", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def browser(tmp_path):
    """A headless Chromium with a profile of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: the page is not looked at")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no chromium with chromedriver here: the page is not looked at")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    yield driver
    driver.quit()


LOOK = """
const seen = (e) => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 && e.checkVisibility(); };
const all = (s) => [...document.querySelectorAll(s)];
return {
  width: window.innerWidth,
  scrollWidth: document.documentElement.scrollWidth,
  images: all("img").map((i) => [i.complete, i.naturalWidth, i.getBoundingClientRect().width]),
  claims: all(".claims li").filter(seen).map((c) => c.innerText),
  badges: all(".badge").map((b) => [b.innerText, getComputedStyle(b).color]),
  outside: all("*").filter((e) => !e.closest(".scroll") && e.getBoundingClientRect().right > window.innerWidth + 1)
    .map((e) => e.tagName),
  scrolls: all(".scroll").map((s) => s.scrollWidth - s.clientWidth),
  requests: performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith("data:")),
};
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_readable_in_a_browser(width, browser, served):
    address, asked = served
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(address)
    seen = browser.execute_script(LOOK)
    assert seen["width"] == width
    assert seen["scrollWidth"] <= width  # nothing sticks out to the side …
    assert seen["outside"] == []
    assert max(seen["scrolls"]) > 100  # … for what is too wide scrolls within its own box
    assert len(seen["images"]) == 2
    for complete, natural, shown in seen["images"]:
        assert complete
        assert natural > 600
        assert shown > 250
    assert len(seen["claims"]) == 1
    assert "✓ holds — Drift wins (nowhere)" in seen["claims"][0].replace("\n", " ")
    assert seen["requests"] == []
    assert asked == ["/report.html"]
    assert browser.title == "Reproduction report"
