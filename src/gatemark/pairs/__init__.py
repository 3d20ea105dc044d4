"""Two gateways measured in pairs of short trials, close together: by how much the second differs from the first."""
