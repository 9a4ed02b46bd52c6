"""General building blocks: records, ids, dates, lazy regular expressions, group commit, HTTP."""
