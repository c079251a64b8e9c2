"""What is asked about a project, what was answered, and the task specification that follows."""
