"""Runs made at random: regular ones, and ones with everything that goes wrong in real files."""

from hypothesis import strategies as st
from naive_runs import Row

QUERIES = ["1", "01", "7", "07", "q2", "ü", "10"]
DOCUMENTS = ["a", "B", "aa", "7", "07", "é", "10", "9", "d0000001", "d0000002", "\U0001f600",
             "x" * 23, "x" * 65, "y" * 200, "-", "#"]  # fmt: skip
RANKS = ["0", "-1", "1", "01", "2", "x", "1.0", "\uff11", "9" * 19, "999999999999999999"]
SCORES = ["1", "1.0", "1.000000001", "0", "-0.0", "-3.5", "2e1", "1e-40", "9e-41", "+.5", "7."]
BAD_SCORES = ["nan", "-inf", "1e999", "1e39", "0x10", "1_0", "1,5", "12abc", "--1", "1e", "\u0661"]
LINES = [b"", b" \t", b"# comment", b"#1 Q0 a 1 2 t", b"1 a", b"1 a 1 2", b"7 Q0 a 1 2 t x",
         b"7\tc\xff\t1", b"7 Q0 \xc0\xaf 1 2 t", b"1\t\x1b[2Jc\t3", b"2\x0ca\t1", b"1\x7f\ta\t1",
         b"1 Q0 a\x0b9 2 t", b"1\ta\r\t1", "1\tc\u200b\t3".encode(), "1\u00a0a\t3".encode(),
         "7 Q0 a 1 2 \u202et".encode(), b"1\ta\0\t1", b" 1 a 1", b"1 Q0 a 1 2 t "]  # fmt: skip
GRADES = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1, max_size=6),
    max_size=4,
)


@st.composite
def _answers(draw: st.DrawFn, query: str) -> list[tuple[str, str, str, str]]:
    """The rows of one query: in most runs as they should be."""
    kind = draw(st.sampled_from(["regular", "regular", "tied", "odd"]))
    documents = draw(st.lists(st.sampled_from(DOCUMENTS), unique=kind != "odd", max_size=8))
    rows = []
    for rank, document in enumerate(documents, start=1):
        column, score = str(rank), str(100 - rank)
        if kind != "regular":
            score = draw(st.sampled_from(SCORES))
        if kind == "odd":
            column = draw(st.sampled_from([column, *RANKS]))
            score = draw(st.sampled_from([score, *BAD_SCORES]))
        rows.append((query, document, column, score))
    return rows


def _mix(draw: st.DrawFn, groups: list[list[tuple[str, str, str, str]]]) -> list[tuple[str, ...]]:
    layout = draw(st.sampled_from(["grouped", "grouped", "interleaved", "shuffled"]))
    if layout == "interleaved":
        longest = max(map(len, groups), default=0)
        return [group[place] for place in range(longest) for group in groups if place < len(group)]
    rows: list[tuple[str, ...]] = [row for group in groups for row in group]
    return draw(st.permutations(rows)) if layout == "shuffled" else rows


@st.composite
def odd_runs(draw: st.DrawFn) -> bytes:
    """A run file of a few dozen lines."""
    queries = draw(st.lists(st.sampled_from(QUERIES), unique=True, max_size=4))
    rows = _mix(draw, [draw(_answers(query)) for query in queries])
    separator = draw(st.sampled_from(["\t", " ", "  ", " \t"]))
    trec = draw(st.booleans())
    lines = [
        separator.join((q, "Q0", d, rank, score, "t") if trec else (q, d, rank)).encode()
        for q, d, rank, score in rows
    ]
    for line in draw(st.lists(st.sampled_from(LINES), max_size=2)):
        lines.insert(draw(st.integers(0, len(lines))), line)
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))
    text = b"".join(line + end for line in lines)
    if draw(st.booleans()):
        text = text.removesuffix(end)
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + text


# Each row ties under some order: as text, as float64, or only as float32.
TIED = [
    ["0", "-0.0", "1e-50", "-1e-60"],
    ["1", "1.0", "1e0", "1.00000001", "0.99999999"],
    ["0.1", "0.10000000149011612", "0.10000000000000001"],
    ["-2.5", "-25E-1", "-2.50000001"],
    ["16777216", "16777217", "1.6777216e7"],
    ["1234567890.1234567", "1234567890.1234568", "1234567890.1234569"],
    ["1e-40", "9.9999e-41", "1.00000001e-40"],
    ["3e38", "3.0000000001e38"],
]


@st.composite
def tied_runs(draw: st.DrawFn) -> list[Row]:
    """Good rows of up to four queries, full of ties, mixed up over the whole file."""
    pairs = draw(
        st.lists(
            st.tuples(st.sampled_from(QUERIES[:4]), st.sampled_from(DOCUMENTS[:-1])),
            unique=True,
            min_size=1,
            max_size=30,
        )
    )
    values = [*draw(st.sampled_from(TIED)), *draw(st.sampled_from(TIED))]
    depth: dict[str, int] = {}
    rows = []
    for query, document in pairs:
        depth[query] = depth.get(query, 0) + 1
        rows.append((query, document, depth[query], draw(st.sampled_from(values))))
    return draw(st.permutations(rows))
