"""Programs that try to break what the library promises: ``python -m campaign``, or ``make campaign``.

Each file has one subject and registers its kinds of trials with :func:`campaign.trials.kind`. A trial is random and has a
seed of its own. It ends well, or it is *wrong* (the library claimed something that is false) or *lost* (there is no answer
where one was promised: an exception from inside, a run or a file that is gone). Both are printed with what repeats them.
"""
