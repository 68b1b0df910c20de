"""What editors and old settings leave: marks of byte order, names that are not UTF-8."""

import pytest
from town import Town, fresh_town, git

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
LATIN = b"\n[user]\n\tname = Ren\xe9 M\xfcller\n\temail = rene@here\n"


town = fresh_town


def test_a_name_that_is_not_utf8_in_git_s_settings(town: Town) -> None:
    """Of the organiser, who commits the page, and of the participant, who commits a branch."""
    for folder in (town.board, town.clone):
        config = folder / ".git" / "config"
        config.write_bytes(config.read_bytes() + LATIN)
    one = town.enter("one", now=DAY)
    assert git(town.board, "log", "-1", "--format=%an").startswith("Ren")
    assert git(town.forge, "log", "-1", "--format=%ae", f"submission/{one}") == "rene@here"


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
