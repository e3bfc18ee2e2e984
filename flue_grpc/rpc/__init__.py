"""The wire: translates between protobuf and the domain, and nothing else."""
