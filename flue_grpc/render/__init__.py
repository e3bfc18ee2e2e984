"""How sessions, messages and figures look to a person."""
