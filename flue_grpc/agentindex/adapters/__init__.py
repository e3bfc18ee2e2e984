"""One module per tool: how its transcripts are found and what their lines mean."""
