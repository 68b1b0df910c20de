"""Can a ranking be believed? One module for each analysis, one table of all."""
