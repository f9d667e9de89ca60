"""Random numbers as a pure function of the seed, the level, the iteration and the place within it.

Samples do not depend on what was drawn before: whoever knows the seed knows the samples of every iteration, and can fetch
them ahead. The generator is Philox4x32-10, which is counter-based: Salmon, Moraes, Dror and Shaw, Parallel random numbers:
as easy as 1, 2, 3, SC 2011. It computes in whole numbers of 32 bits held in 64, which Python and compiled code do alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.engine.kernels import kernel

WORD = 0xFFFFFFFF  # mask of the lowest 32 bits
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
INCREMENTS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
TURNS = 2**24  # draws that one iteration may make


class Key(NamedTuple):
    """What sets the samples of one run and level apart from all others."""

    low: int
    high: int


class Keys(NamedTuple):
    """The keys of a run, one per level."""

    upper: Key
    lower: Key


class Moment(NamedTuple):
    """When samples are drawn: all that they depend on."""

    key: Key
    iteration: int  # t
    turn: int  # number of the draw within the iteration
    path: int  # which term of a sum draws; 0 outside of sums


def key_of(*words: int) -> Key:
    """Return a key made of non-negative whole numbers, such as a seed and a level."""
    low, high = np.random.SeedSequence(words).generate_state(2, np.uint32)
    return Key(int(low), int(high))


def keys_of(words: Sequence[int]) -> Keys:
    """Return the keys of both levels for a seed, or for several numbers that identify a run."""
    return Keys(key_of(*words, 0), key_of(*words, 1))


class Moments:
    """One moment after another, for draws that no loop makes.

    Attributes
    ----------
    count : int
        Moments so far; a run that resumes sets it.
    """

    def __init__(self, *words: int) -> None:
        self._key, self.count = key_of(*words), 0

    def __next__(self) -> Moment:
        self.count += 1
        return Moment(self._key, self.count - 1, 0, 0)


@kernel
def turn_of(moment, turn):
    """Return the moment of another draw of the same iteration."""
    return Moment(moment.key, moment.iteration, turn, moment.path)


@kernel
def branch(moment, term):
    """Return the moment at which a term of a sum draws; ``term`` is 1 or 2, and terms may be sums."""
    return Moment(moment.key, moment.iteration, moment.turn, 3 * moment.path + term)


@kernel
def philox(moment, block):
    """Return four random words of 32 bits: block number ``block`` of a moment."""
    t = int(moment.iteration)  # interpreted, NumPy's numbers would warn of overflow
    a, b, c, d = block & WORD, moment.path & WORD, t & WORD, ((t >> 32) + 256 * moment.turn) & WORD
    low, high = moment.key.low, moment.key.high
    for _ in range(ROUNDS):
        p, q = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = ((q >> 32) & WORD) ^ b ^ low, q & WORD, ((p >> 32) & WORD) ^ d ^ high, p & WORD
        low, high = (low + INCREMENTS[0]) & WORD, (high + INCREMENTS[1]) & WORD
    return a, b, c, d


@kernel
def fraction(high, low):
    """Return a number in [0, 1) made of 53 bits of two words."""
    return ((high >> 5) * 67108864.0 + (low >> 6)) * (1.0 / 9007199254740992.0)


@kernel
def uniform(moment):
    """Return one random number in [0, 1)."""
    a, b, _, _ = philox(moment, 0)
    return fraction(a, b)


@kernel
def uniform_indices(moment, count, out):
    """Fill an array with independent indices below ``count``, all equally likely, and return it."""
    for k in range(0, out.size, 2):
        a, b, c, d = philox(moment, k >> 1)
        out[k] = int(fraction(a, b) * count)
        if k + 1 < out.size:
            out[k + 1] = int(fraction(c, d) * count)
    return out


@kernel
def numbers_of_places(key, first, out):
    """Fill an array with whole numbers of 63 random bits, each a function of its place, from ``first`` on; return it."""
    for k in range(out.size):
        place = first + k
        a, b, _, _ = philox(Moment(key, place >> 32, 0, 0), place & WORD)
        out[k] = ((a >> 1) << 32) | b
    return out


def generator(moment: Moment) -> np.random.Generator:
    """Return a NumPy generator whose numbers are a function of the moment alone, for sources that take one."""
    key, counter = [moment.key.low | moment.key.high << 32, moment.path], [0, 0, moment.iteration, moment.turn]
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
