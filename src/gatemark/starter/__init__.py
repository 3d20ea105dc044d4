"""A first campaign file: five questions, and a commented file of the answers that `gatemark plan` accepts."""
