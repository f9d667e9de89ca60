"""The cut of a box as a continuous knapsack: coordinates go to their other bound, the cheapest for what they gain first.

A coordinate changes its bound at its price, the λ at which c_i + λ a_i changes its sign. The search is for the price at
which the cut is met. A few looks at ⟨a, s⟩ for some λ, each a pass in vector registers, leave few coordinates in question if
prices are spread somewhat evenly. The first look is where normal entries would meet the cut. Those
in question are selected by pivots (Balas and Zemel 1980), in linear time whatever their order and spread is.
"""

from __future__ import annotations

import math

import numpy as np

from tiebreak.domains.base import ACTIVE, EMPTY, FREE, INVALID
from tiebreak.domains.cuts.search import opening
from tiebreak.engine import generic, kernel
from tiebreak.engine.vectors import dot, is_modest, middle_of, reciprocal

LOOKS = 6  # looks at most, each at two λ
MARGIN = 0.01  # distance of the two λ from the one that is expected, relative to the range in question …
SPREAD = 0.7  # … and what is added for the scatter of the sum, divided by the square root of the number of coordinates
FEW = 0.005  # share of all that can be gained that may be left for the selection …
HANDFUL = 16  # … or the number of coordinates that gain about as much
BLOCK = 32  # coordinates that are looked at together


@generic
def lower_bound(domain, i):
    """Return the lower bound of coordinate i."""


@generic
def upper_bound(domain, i):
    """Return the upper bound of coordinate i."""


@kernel
def knapsack_cut(domain, c, a, b, out):
    """Solve the cut of a box."""
    if math.isnan(b):
        return INVALID, math.nan
    size_c, size_a, at_start, least, span = box_sums(domain, c, a)
    factor_c, factor_a = 1.0, 1.0
    if not (is_modest(size_c) and is_modest(size_a) and is_modest(abs(at_start) + abs(least))):
        valid, size_c, size_a = opening(c, a, b)
        if not valid:
            return INVALID, math.nan
        factor_c, factor_a = reciprocal(size_c), reciprocal(size_a)
        c, a = c * factor_c, a * factor_a
        size_c, size_a, at_start, least, span = box_sums(domain, c, a)
    bound = b * factor_a
    if at_start <= bound:
        for i in range(c.size):
            out[i] = start_of(lower_bound(domain, i), upper_bound(domain, i), c[i], a[i])
        return FREE, 0.0
    if least > bound:
        for i in range(c.size):  # against a, and where that is zero against c
            out[i] = start_of(lower_bound(domain, i), upper_bound(domain, i), a[i], c[i])
        return EMPTY, math.inf
    per_c, per_a = reciprocal(size_c), reciprocal(size_a)
    price = trade(domain, c, per_c, a, per_a, bound, at_start, least, span, out)
    return ACTIVE, price / per_c / factor_c * factor_a * per_a


# What follows takes single numbers, because passing arrays on for each coordinate would count references to them each time;
# and it reads both bounds and then selects, because signs at random would be guessed wrong half of the time.


@kernel
def end_of(low, high, direction):
    """Return the bound against a direction."""
    return low if direction > 0.0 else high


@kernel
def start_of(low, high, first, second):
    """Return the bound against a direction, and if that is zero, against a second one."""
    return low if (first > 0.0) | ((first == 0.0) & (second > 0.0)) else high


@kernel(reorder=True)
def box_sums(domain, c, a):
    """Return ‖c‖₁, ‖a‖₁, ⟨a, s⟩ at the minimisers of ⟨c, s⟩ (of several, the best for a) and of ⟨a, s⟩, and its range."""
    size_c = 0.0
    size_a = 0.0
    at_start = 0.0
    least = 0.0
    span = 0.0
    for i in range(c.size):
        low, high = lower_bound(domain, i), upper_bound(domain, i)
        size_c += abs(c[i])
        size_a += abs(a[i])
        at_start += a[i] * start_of(low, high, c[i], a[i])
        least += a[i] * end_of(low, high, a[i])
        span += abs(a[i]) * (high - low)
    return size_c, size_a, at_start, least, span


@kernel(inline=False)
def trade(domain, c, per_c, a, per_a, bound, at_start, least, span, out):
    """Set out to the cut's minimiser if it binds, and return the price of the last coordinate that moved.

    Prices are λ = t / (1 − t) in units of per_c · c and per_a · a. What exceeds the bound at t falls as t grows.
    """
    t_low, excess_low, t_high, excess_high = 0.0, at_start - bound, 1.0, least - bound
    few = max(FEW, HANDFUL / c.size) * (at_start - least)
    middle = first_guess(bound, at_start, least, span)
    for _ in range(LOOKS):
        if excess_low - excess_high <= few:
            break
        in_question = c.size * (excess_low - excess_high) / (at_start - least)
        margin = (MARGIN + SPREAD / math.sqrt(in_question)) * (t_high - t_low)
        first, second = max(middle - margin, t_low), min(middle + margin, t_high)
        value_first, value_second = look(
            domain, c, a, (1.0 - first) * per_c, first * per_a, (1.0 - second) * per_c, second * per_a
        )
        if value_first <= bound:
            t_high, excess_high = first, value_first - bound
        elif value_second > bound:
            t_low, excess_low = second, value_second - bound
        else:
            t_low, excess_low, t_high, excess_high = first, value_first - bound, second, value_second - bound
        middle = t_low + (t_high - t_low) * (excess_low / (excess_low - excess_high))
    value, count = lay(domain, c, a, (1.0 - t_low) * per_c, t_low * per_a, (1.0 - t_high) * per_c, t_high * per_a, out)
    price = t_low / (1.0 - t_low) if t_low < 1.0 else math.inf
    if value <= bound or count == 0:
        return price
    where, known = np.empty(count, np.int64), np.empty((4, count))
    count = gather(domain, c, per_c, a, per_a, (1.0 - t_high) * per_c, t_high * per_a, out, where, known)
    price = critical_price(known[2], known[3], count, value - bound)
    for k in range(count):
        if known[0, k] < price:
            out[where[k]] = end_of(lower_bound(domain, where[k]), upper_bound(domain, where[k]), a[where[k]])
            value -= known[1, k]
    for k in range(count):
        if value <= bound:
            break
        if known[0, k] == price:
            i, share = where[k], min((value - bound) / known[1, k], 1.0)
            out[i] += share * (end_of(lower_bound(domain, i), upper_bound(domain, i), a[i]) - out[i])
            value -= share * known[1, k]
    return price


@kernel
def first_guess(bound, at_start, least, span):
    """Return the t at which the cut is met if the entries of c and a are normal.

    Then ⟨a, s⟩ at a minimiser for a direction falls as the cosine of its angle to a grows, by ``span`` from −1 to 1. The
    cosines for c and for the direction that meets the bound are known; so is the λ between them, by the law of sines.
    """
    if span == 0.0:
        return 0.5
    cosine_start, cosine = 1.0 - 2.0 * (at_start - least) / span, 1.0 - 2.0 * (bound - least) / span
    sine_start, sine = math.sqrt(max(1.0 - cosine_start**2, 0.0)), math.sqrt(max(1.0 - cosine**2, 0.0))
    turn = sine_start * cosine - cosine_start * sine
    return turn / (turn + sine) if turn > 0.0 else 0.5


@kernel(reorder=True)
def look(domain, c, a, p, q, u, v):
    """Return ⟨a, s⟩ at the minimisers of ⟨p c + q a, s⟩ and of ⟨u c + v a, s⟩.

    Of several, any will do: a coordinate that is at its price and has not moved is in question above that λ, not below.
    """
    first = 0.0
    second = 0.0
    for i in range(c.size):
        low, high = lower_bound(domain, i), upper_bound(domain, i)
        first += a[i] * end_of(low, high, p * c[i] + q * a[i])
        second += a[i] * end_of(low, high, u * c[i] + v * a[i])
    return first, second


@kernel(reorder=True)
def lay(domain, c, a, p, q, u, v, out):
    """Set out to the minimiser of ⟨p c + q a, s⟩; return ⟨a, out⟩ and how many coordinates that of ⟨u c + v a, s⟩ moves."""
    count = 0
    for i in range(c.size):
        low, high = lower_bound(domain, i), upper_bound(domain, i)
        entry = end_of(low, high, p * c[i] + q * a[i])
        out[i] = entry
        count += 1 if entry != end_of(low, high, u * c[i] + v * a[i]) else 0
    return dot(a, out), count


@kernel
def gather(domain, c, per_c, a, per_a, p, q, out, where, known):
    """Collect the coordinates that the minimiser of ⟨p c + q a, s⟩ moves from ``out``, and return how many they are.

    ``known`` holds the price of each, and what a · s gains if it moves; both twice. Most blocks have none.
    """
    starts = np.empty(c.size // BLOCK + 1, np.int64)
    blocks = open_blocks(domain, c, a, p, q, out, starts)
    count = 0
    for k in range(blocks):
        for i in range(starts[k], min(starts[k] + BLOCK, c.size)):
            low, high = lower_bound(domain, i), upper_bound(domain, i)
            most = a[i] * (out[i] - end_of(low, high, a[i]))
            # Rounding may find one more than were counted. It is at the edge of what is in question: it need not move.
            is_open = end_of(low, high, p * c[i] + q * a[i]) != out[i] and most > 0.0
            if is_open and count < where.size:
                where[count] = i
                known[0, count] = known[2, count] = per_c * abs(c[i]) / (per_a * abs(a[i]))
                known[1, count] = known[3, count] = most
                count += 1
    return count


@kernel(reorder=True)
def open_blocks(domain, c, a, p, q, out, starts):
    """List where blocks with coordinates start that the minimiser of ⟨p c + q a, s⟩ moves from ``out``; return how many."""
    count = 0
    whole = c.size // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        moved = 0
        for i in range(start, start + BLOCK):  # of a length that the compiler knows, without a branch
            low, high = lower_bound(domain, i), upper_bound(domain, i)
            moved += 1 if end_of(low, high, p * c[i] + q * a[i]) != out[i] else 0
        starts[count] = start
        count += 1 if moved > 0 else 0
    starts[count] = whole
    return count + 1


@kernel
def critical_price(prices, gains, left, need):
    """Return the least price such that all candidates up to it gain what is needed; it overwrites them, in O(left)."""
    price = 0.0
    while left > 0:
        price = middle_of(prices[0], prices[left // 2], prices[left - 1])
        below, same = gains_up_to(prices, gains, left, price)
        if below < need <= below + same:
            break
        cheaper = below >= need
        need -= 0.0 if cheaper else below + same
        kept = 0
        for k in range(left):  # without a branch: the prices are in no order
            own = prices[k]
            prices[kept], gains[kept] = own, gains[k]
            kept += 1 if (own < price if cheaper else own > price) else 0
        left = kept
    return price


@kernel(reorder=True)
def gains_up_to(prices, gains, count, price):
    """Return the gains of all candidates below a price, and of all at it."""
    below = 0.0
    same = 0.0
    for k in range(count):
        below += gains[k] if prices[k] < price else 0.0
        same += gains[k] if prices[k] == price else 0.0
    return below, same
