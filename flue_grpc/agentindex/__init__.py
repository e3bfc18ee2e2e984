"""The index over the transcripts that coding agents keep in a home."""
