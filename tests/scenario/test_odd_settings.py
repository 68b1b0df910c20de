"""What editors and old settings leave: marks of byte order, names that are not UTF-8."""

import pytest
from lab import Lab, fresh_lab

lab = fresh_lab


def test_a_key_that_an_editor_saved_with_a_mark_of_byte_order(lab: Lab) -> None:
    (key,) = (lab.vault / "identities").glob("*.txt")
    key.write_bytes(b"\xef\xbb\xbf# schl\xc3\xbcssel\r\n" + key.read_bytes())
    lab.enter("one")


@pytest.mark.parametrize("saved", ["utf-16", "latin-1"])
def test_a_key_that_an_editor_saved_as_no_text_is_named_and_not_shown(lab: Lab, saved: str) -> None:
    (key,) = (lab.vault / "identities").glob("*.txt")
    secret = key.read_text()
    key.write_bytes(f"# schlüssel\n{secret}".encode(saved))
    for command in (["inbox"], ["rebuild"], ["audit"]):
        said = lab.organiser(*command)
        assert (said.code, str(key) in said.err) == (
            (0, False) if command == ["audit"] else (2, True)
        )
        assert secret.strip() not in said.out + said.err
