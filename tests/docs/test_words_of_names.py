"""Names in the code are words of the field: none of those that say several things."""

import io
import re
import tokenize
from pathlib import Path

import heldout

_AVOIDED = {
    *("place", "places", "told", "tell", "tells", "kept", "keep", "keeps", "anew", "mend"),
    *("letter", "letters", "town", "stage", "stages"),
}
_FOREIGN = {
    "first_stage",  # what retrieval calls the ranking that another one ranks again
    "find_first_stage",
    "keep_blank_values",  # urllib's
    "keep_models",  # as the option `--keep-models`
    "keep_trailing_newline",  # Jinja's
    "place",  # a column of the database
    "tell",  # of a file
}


def test_no_name_is_a_word_of_several_senses() -> None:
    root = Path(heldout.__file__).parent
    found = {
        f"{path.relative_to(root)}:{token.start[0]} {token.string}"
        for path in root.rglob("*.py")
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
        if token.type == tokenize.NAME and token.string not in _FOREIGN
        if _AVOIDED & {part.lower() for part in re.split(r"_|(?<=[a-z0-9])(?=[A-Z])", token.string)}
    }
    assert not found
