"""Benchmarks: commands that print ratios to floors measured in the same run, because machines differ and are noisy."""
