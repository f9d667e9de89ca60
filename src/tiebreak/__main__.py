"""`python -m tiebreak` is the `tiebreak` command."""

from tiebreak.cli import app

app(prog_name="tiebreak")
