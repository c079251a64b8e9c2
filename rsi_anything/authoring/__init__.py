"""From a specification and a project to the files of a task: derive, plan, compare, write once."""
