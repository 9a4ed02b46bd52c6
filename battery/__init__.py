"""The battery: kills writers at every system call and at random moments, breaks their disk, lets crowds in, and then everybody
who means harm: hostile paths, links that change under way, spoiled files, inputs that nobody thought of.

`python -m battery` runs all of it on temporary homes and prints one table; docs/battery.md says what each row tries.
"""
