"""Can a ranking be believed? An analysis a module, from scores to a frozen result."""
