"""Flue gRPC: an agent daemon's store and a read-only index over agent transcripts."""
