"""Which of two gateways in a row damaged a frame: from three captures of it to the gateway that is to blame. Pure."""
