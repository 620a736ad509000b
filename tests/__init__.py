"""A package, so that `python -m tests.golden` finds this one: some libraries install a `tests` of their own."""
