"""Triples of a few words, and the tiny models that train on them."""

from heldout.rankers.neural import cross_encoder

TRIPLES = [
    cross_encoder.TextTriple("open file", "open the file at path", "sum of the number list"),
    cross_encoder.TextTriple("sort list", "sort list by key", "walk the tree path"),
    cross_encoder.TextTriple("read buffer", "read from buffer", "close file"),
    cross_encoder.TextTriple("walk tree", "walk path tree", "write number to buffer"),
    cross_encoder.TextTriple("sum list", "sum number list", "open path"),
]


def load_tiny(folder: str) -> cross_encoder.CrossEncoder:
    return cross_encoder.load_cross_encoder(
        cross_encoder.CrossEncoderSettings(
            model=folder, device="cpu", precision="float32", length=32
        )
    )
