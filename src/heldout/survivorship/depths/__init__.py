"""What evaluation loses: scores on the labels that shallower annotation would have left."""
