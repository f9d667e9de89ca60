"""Files that are downloaded once and verified."""

from __future__ import annotations

import hashlib
import http.server
import json
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data import files, traffic, wikimath

VISITS = {"0": {"y": [5, 0, 2]}, "1": {"y": [7, 1, 3]}, "time_periods": 2, "edges": [[0, 1]], "node_ids": {"Pi": 0}}
MATRIX = [[5, 7], [0, 1], [2, 3]]


class Server:
    """Serves one content on loopback, counts the requests; ``promised`` is the size that its headers announce."""

    def __init__(self):
        self.content, self.promised, self.status, self.requests = b"", None, 200, 0
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests += 1
                self.send_response(server.status)
                self.send_header("Content-Length", str(server.promised or len(server.content)))
                self.end_headers()
                self.wfile.write(server.content)

            def log_message(self, *args):
                pass

        self.http = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/visits.json"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(traffic, "cache_folder", lambda: tmp_path)
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path


@pytest.fixture
def server(cache, monkeypatch):
    server = Server()
    server.content = json.dumps(VISITS).encode()
    monkeypatch.setattr(traffic, "WIKIMATH_URL", server.url)
    header = f"blob {len(server.content)}\0".encode()
    monkeypatch.setattr(traffic, "WIKIMATH_BLOB", hashlib.sha1(header + server.content).hexdigest())
    yield server
    server.close()


def kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_blob_id_is_the_one_of_git():
    assert files._blob(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert files._blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_wikimath_is_downloaded_once(server, cache):
    np.testing.assert_array_equal(wikimath(), MATRIX)
    np.testing.assert_array_equal(wikimath(), MATRIX)
    assert server.requests == 1
    assert [path.relative_to(cache) for path in cache.rglob("*.json")] == [Path("data", "visits.json")]
    assert len(kept(cache)) == 1


def test_a_cached_file_needs_no_network(server):
    wikimath()
    server.status = 500
    np.testing.assert_array_equal(wikimath(), MATRIX)


def test_a_damaged_cached_file_is_downloaded_anew(server, cache):
    wikimath()
    file = cache / "data" / "visits.json"
    file.write_bytes(file.read_bytes()[:-5])
    np.testing.assert_array_equal(wikimath(), MATRIX)
    assert server.requests == 2
    assert file.read_bytes() == server.content


def test_a_file_with_another_blob_id_is_refused_and_not_kept(server, cache):
    server.content = server.content.replace(b"5", b"6")
    with pytest.raises(OSError, match=r"must have the git blob id .*, got .*`path`") as caught:
        wikimath()
    assert server.url in str(caught.value)
    assert traffic.WIKIMATH_BLOB in str(caught.value)
    assert not kept(cache)


def test_a_download_that_breaks_off_leaves_nothing(server, cache):
    server.promised = len(server.content) + 10
    with pytest.raises(ConnectionError, match=r"could not download .*IncompleteRead"):
        wikimath()
    assert not kept(cache)


def test_a_write_that_breaks_off_leaves_nothing(server, cache, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        wikimath()
    assert not kept(cache)


def test_a_server_that_refuses_is_reported(server):
    server.status = 404
    with pytest.raises(ConnectionError, match=r"could not download .*404"):
        wikimath()


def test_without_network_the_error_says_where_to_get_the_file(cache, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening, so that nobody answers there
        monkeypatch.setattr(traffic, "WIKIMATH_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/visits.json")
        with pytest.raises(ConnectionError, match=r"could not download http://.*/visits.json \(.*`path`"):
            wikimath()
    assert not kept(cache)


def test_a_silent_server_is_given_up(cache, monkeypatch):
    monkeypatch.setattr(files, "TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(traffic, "WIKIMATH_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/visits.json")
        with pytest.raises(ConnectionError, match="timed out"):
            wikimath()
