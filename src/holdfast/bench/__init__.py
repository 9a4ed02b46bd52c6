"""Benchmarks: commands that print ratios to floors measured in the same run, because machines differ and are noisy."""

from __future__ import annotations


def main(argv: list[str]) -> int:
    """`holdfast bench speed`, `load` or `retrieval`: arguments as typed after `bench`."""
    if argv[:1] == ["retrieval"]:
        from holdfast.bench import retrieval

        return retrieval.run(argv[1:])
    if argv[:1] == ["load"]:
        from holdfast.bench import load

        return load.run(argv[1:])
    from holdfast.bench import speed

    return speed.run(argv)
