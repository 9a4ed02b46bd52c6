"""Small building blocks without any knowledge of memory: records, ids, dates, locks, HTTP."""
