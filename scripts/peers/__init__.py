"""Other memories on the same data in the same run: each in an environment of its own, all with one embedding model, no LLM.

`runner.py`, `roster.py` and `scale.py` run here. `drive.py`, `minilm.py`, `hashed.py` and the `with_*.py` are run by each
peer's own Python and import nothing of ours (but for `with_holdfast.py`)."""
