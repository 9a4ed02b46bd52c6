"""The battery: slow and destructive tests that run on temporary homes.

Each part is a module with a `run` function: processes killed at system calls and at random moments, failing disks, many
processes at once, hostile paths and texts, damaged files, fuzzed parsers, connections, leaks and known vulnerabilities.
`python -m battery` runs all parts and prints one table; docs/battery.md says what each part tries. A module whose name ends
in `_child` is a program that a part starts in a process of its own.
"""
