"""What training loses: triples by depth of annotation, and re-rankers trained on each."""
