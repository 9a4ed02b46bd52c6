"""What Holdfast does: one module or package per verb."""
