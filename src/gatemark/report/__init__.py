"""Reports: pure functions of the stored result. Nothing is printed that was not measured."""
