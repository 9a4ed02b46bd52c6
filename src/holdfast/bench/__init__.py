"""Benchmarks: commands that print ratios to floors measured in the same run, because machines differ and are noisy."""

from __future__ import annotations


def main(argv: list[str]) -> int:
    """`holdfast bench speed`: arguments as typed after `bench`."""
    from holdfast.bench.speed import run

    return run(argv)
