"""Reading the kernel's table of interfaces."""

from gatemark.dut.interface_counters import parse_tx_dropped

TABLE = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
gw1x0-left: 5020320   78412    1    2    3     4          5         6  5019872   78405    7   29    8     9      10         11
 gv1x0.7: 1 2 3 4 5 6 7 8 9 10 11 12345678901234 13 14 15 16
"""  # noqa: E501  # the kernel's own lines


def test_the_drops_of_the_sending_side_are_taken() -> None:
    assert parse_tx_dropped(TABLE) == {"lo": 0, "gw1x0-left": 29, "gv1x0.7": 12345678901234}


def test_a_namespace_without_interfaces() -> None:
    assert parse_tx_dropped("\n".join(TABLE.splitlines()[:2])) == {}
