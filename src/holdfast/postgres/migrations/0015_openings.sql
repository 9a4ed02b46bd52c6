-- Assistants' messages get a vector of their opening, and pieces a mark for names: every passage is embedded again.
TRUNCATE holdfast.vectors, holdfast.model, holdfast.stock, holdfast.lacking, holdfast.piece;
