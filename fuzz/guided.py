"""differential.py led by coverage; needs atheris.

python fuzz/guided.py CORPUS [options of libFuzzer]
"""

import sys

import atheris

with atheris.instrument_imports(include=["heldout", "structured"]):
    from differential import check


if __name__ == "__main__":
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
