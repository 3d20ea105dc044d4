"""Campaigns as jobs of a laboratory: which test bed each takes, who runs them there. It schedules nothing."""
