"""Try to break what the library promises; print what is wrong, and a table. The exit code is 1 if anything is."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import warnings

from campaign import everything
from campaign.trials import HEAD, run, table
from tiebreak.engine import interpreted


def main(given: list[str] | None = None) -> int:
    """Run the campaign and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="about how long (default: 20)")
    parser.add_argument("--seed", type=int, help="repeat a campaign; a new seed each time if it is not given")
    parser.add_argument("--only", default="", help="kinds whose name begins so; --list shows them")
    parser.add_argument("--round", type=int, help="one round of each kind alone: what repeats a finding")
    parser.add_argument("--list", action="store_true", help="print the kinds of trials and do nothing")
    parser.add_argument("--interpreted", action="store_true", help="compile nothing: slower, and without a first wait")
    options = parser.parse_args(given)
    kinds = [each for name, each in everything.KINDS.items() if name.startswith(options.only)]
    kinds.sort(key=lambda each: each.rounds is not None)  # those that start processes are the last
    if not kinds:
        parser.error(f"--only must be the beginning of a kind's name, got {options.only!r}; --list shows them")
    if options.list:
        print("\n".join(each.name for each in kinds))
        return 0
    seed = secrets.randbits(32) if options.seed is None else options.seed
    warnings.simplefilter("ignore")
    print(f"seed {seed}\n{HEAD}", flush=True)
    with interpreted() if options.interpreted else contextlib.nullcontext():
        tallies = run(kinds, seed, 60.0 * options.minutes, options.round, lambda text: print(text, flush=True))
    print(f"\nseed {seed}\n{table(tallies)}")
    return 0 if all(tally.well for tally in tallies.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
