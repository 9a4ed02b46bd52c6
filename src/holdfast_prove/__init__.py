"""`holdfast prove`: run a real client in a private home against a model server on loopback, check what reaches the model."""
