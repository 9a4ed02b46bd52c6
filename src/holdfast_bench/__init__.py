"""Benchmarks behind `holdfast bench`: figures and their ratios to floors measured in the same run, since machines differ."""
