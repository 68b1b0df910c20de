"""What editors and old settings leave: marks of byte order, names that are not UTF-8."""

import pytest
from town import Town, fresh_town

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"


town = fresh_town


def test_a_key_that_an_editor_saved_with_a_mark_of_byte_order(town: Town) -> None:
    (key,) = (town.vault / "identities").glob("*.txt")
    key.write_bytes(b"\xef\xbb\xbf# schl\xc3\xbcssel\r\n" + key.read_bytes())
    town.enter("one", now=DAY)


@pytest.mark.parametrize("saved", ["utf-16", "latin-1"])
def test_a_key_that_an_editor_saved_as_no_text_is_named_and_not_shown(
    town: Town, saved: str
) -> None:
    (key,) = (town.vault / "identities").glob("*.txt")
    secret = key.read_text()
    key.write_bytes(f"# schlüssel\n{secret}".encode(saved))
    for command in (["inbox"], ["rebuild"], ["audit"]):
        told = town.organiser(*command, now=DAY)
        assert (told.code, str(key) in told.err) == (
            (0, False) if command == ["audit"] else (2, True)
        )
        assert secret.strip() not in told.out + told.err
