"""A campaign: the plan of its runs, their measurement, their journal."""
