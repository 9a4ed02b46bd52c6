"""The battery: kills writers at every system call and at random moments, breaks their disk, and lets crowds in.

`python -m battery` runs all of it on temporary homes and prints one table. What must hold afterwards is in `oracle`.
"""
