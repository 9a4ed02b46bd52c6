"""Retrieval: candidates by keyword, meaning, facts and time, then scoring, ordering and reranking."""
