"""The verbs of Holdfast: one module or package each."""
