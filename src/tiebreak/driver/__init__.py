"""Running a method on a problem: budgets, records, checkpoints and results."""
