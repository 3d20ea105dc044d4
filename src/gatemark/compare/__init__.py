"""Results side by side: what differs in their set-up, by how much figures differ, and whether that is shown."""
