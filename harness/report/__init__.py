"""What a run says to people: everything is drawn from the plan and the journal."""

__all__: list[str] = []
