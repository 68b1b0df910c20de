"""What each of two runs finds, how high, and which is the better."""
