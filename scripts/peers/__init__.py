"""Comparison with other memory systems ("peers") on the same data in the same run: same embedding model, no LLM.

`runner.py`, `registry.py` and `scale.py` run in Holdfast's environment. `driver.py`, the embedders and the `adapter_*.py` run
in each peer's own virtual environment and do not import Holdfast, except `adapter_holdfast.py`.
"""
