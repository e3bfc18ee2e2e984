"""Rules for text that both services share: folding, queries, ranking, snippets."""
