"""What the lint rung looks for, one subject a module; each is a function from a task's files to findings."""
