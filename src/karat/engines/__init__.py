"""Engines map a function over shards; which one is used never changes a number."""
