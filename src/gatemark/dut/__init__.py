"""Test beds: the ports that the Tester uses, and the gateway between them where the test bed makes one."""
