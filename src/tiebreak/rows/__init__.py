"""Where data live, and how they are passed over: blocks of rows whose sums do not depend on who makes them."""

from tiebreak.rows.blocks import LEAST_NUMBERS, one_thread, over_blocks, processors, rows_per_block, threads_allowed

__all__ = ["LEAST_NUMBERS", "one_thread", "over_blocks", "processors", "rows_per_block", "threads_allowed"]
