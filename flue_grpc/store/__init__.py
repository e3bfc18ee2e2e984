"""The Store: sessions, messages and memory, durable in SQLite."""
