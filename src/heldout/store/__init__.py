"""The edges: git, the public repository, the vault, where submissions arrive."""
