"""Results on disk: the folder of a campaign, the schema of `result.json` and where the numbers came from."""
