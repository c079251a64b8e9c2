"""The conversation that turns a project into confirmed answers: one state machine, several fronts."""
