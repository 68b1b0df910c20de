"""From a sealed submission to scores in the vault, and from those to what may be told."""
