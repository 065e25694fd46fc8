"""The rules by which workloads make and delete pods, and budgets guard them; pure functions of plain objects."""
