"""Per-caller context: resolved scopes, open store, index and ledger, and keeping the index consistent with the store."""
