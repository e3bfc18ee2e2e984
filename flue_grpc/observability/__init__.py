"""What an operator sees: call records, metrics and traces; each off unless switched on.

Nothing here imports Prometheus or OpenTelemetry before it is asked for.
"""
