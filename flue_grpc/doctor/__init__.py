"""What is where, whether it can be used, and what to do when it cannot."""
