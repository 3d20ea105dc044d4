"""MAP-T domains: rules, addresses and port sets of their customer edges, and what gateways are told of them. Pure."""
