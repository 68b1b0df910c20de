"""Triples of a few words, and the tiny models that train on them."""

from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    TextTriple,
    load_cross_encoder,
)

TRIPLES = [
    TextTriple("open file", "open the file at path", "sum of the number list"),
    TextTriple("sort list", "sort list by key", "walk the tree path"),
    TextTriple("read buffer", "read from buffer", "close file"),
    TextTriple("walk tree", "walk path tree", "write number to buffer"),
    TextTriple("sum list", "sum number list", "open path"),
]


def load_tiny(folder: str) -> CrossEncoder:
    return load_cross_encoder(
        CrossEncoderSettings(model=folder, device="cpu", precision="float32", length=32)
    )
