"""What happens around every call: logging, errors, drain, budgets, deadlines."""
