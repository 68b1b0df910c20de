"""The rules of a board as pure values: spec, manifest, events, policy, release, standings."""
