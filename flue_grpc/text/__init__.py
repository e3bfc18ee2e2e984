"""Rules about text that the Store and the transcript index share."""
