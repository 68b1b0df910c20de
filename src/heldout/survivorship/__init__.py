"""Who was left out by shallow annotation: in evaluation, and in training."""
