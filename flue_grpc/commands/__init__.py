"""The commands of ``flue-grpc``, one module each, imported before any of them runs.

A module imports at its top only what its parser needs.
"""
