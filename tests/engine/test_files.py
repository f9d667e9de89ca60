"""Files that are whole or not there."""

from __future__ import annotations

import pytest

from tiebreak.engine.files import write_atomically


def test_bytes_and_writers_replace_a_file(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"first")
    assert path.read_bytes() == b"first"
    write_atomically(path, lambda file: file.write(b"second"))
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def half(file):
        file.write(b"ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_mark_is_part_of_the_temporary_name(tmp_path):
    path, seen = tmp_path / "file", []
    write_atomically(path, lambda file: seen.extend(each.name for each in tmp_path.iterdir()), ".7")
    assert seen == ["file.7.part"]
