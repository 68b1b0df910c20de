"""Breaks the scanner in one place at a time and says whether the harness notices.

    python fuzz/mutants.py INPUTS...

INPUTS are files of inputs.py. A harness that lets a broken scanner pass is no evidence for a
whole one; the figures are in README.md.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["MUTANTS"]

HERE = Path(__file__).resolve().parent
CORE = HERE.parent / "src" / "heldout" / "trec" / "scanning" / "_scan_core.h"
FLAGS = ["-std=c11", "-O1", "-w", "-DSTANDALONE", "-DMOST_SEGMENTS=9"]
FLAGS += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

MUTANTS = [
    ("end - text >= 8 ? load_word(text)", "1 ? load_word(text)"),
    ("while (text_end - at >= 8) {", "while (text_end - at >= 7) {"),
    ("for (; length && text_end - at >= 8;", "for (; length && text_end - at >= 1;"),
    ("if (length < 8) return !(differ << (64 - 8 * length));", "if (length < 8) return 1;"),
    ("!token_class(at[before->query_length])", "1"),
    ("parts->tag_unicode = before->tag_unicode;", ""),
    ("&parts->tag_unicode);", "&parts->unicode);"),
    ("*unicode |= class >> 1;", ""),
    ("if (*at == '#') return 0;", ""),
    ("if (at == token) return 0;", ""),
    ("return *parts->end == '\\n';", "return 1;"),
    ("byte > 0x20 && byte != 0x7F", "byte > 0x20"),
    ("at - start < 18", "at - start < 19"),
    ("at - start < 18", "at - start < 20"),
    ("return at > start && !token_class(*at) ? at : NULL;", "return at > start ? at : NULL;"),
    ("if (++count > 19) return NULL;\n            digits", "digits"),
    ("if (exponent > 19) return NULL;", "if (exponent > 20) return NULL;"),
    ("if (exponent < -22) return NULL;", "if (exponent < -23) return NULL;"),
    ("digits >> 53 || FLT_EVAL_METHOD", "digits >> 54 || FLT_EVAL_METHOD"),
    ("rest > half ||", "rest >= half ||"),
    ("(quotient * divisor != numerator || (mantissa & 1))", "(mantissa & 1)"),
    ("(quotient * divisor != numerator || (mantissa & 1))", "(quotient * divisor != numerator)"),
    ("if (negative) *score = -*score;", ""),
    ("if (!is_digit(*at)) return NULL;", ""),
    ("if (!any) return NULL;", ""),
    ("if (token_class(*at)) return NULL;", ""),
    ("if (written > 400) return NULL;", ""),
    ("!(row->key < row[-1].key)", "!(row->key <= row[-1].key)"),
    ("row->key > row[-1].key", "row->key >= row[-1].key"),
    ("row->key > row[-1].key", "0"),
    ("if (row->rank != current->rows + 1) current->flags |= UNRANKED;", ""),
    ("if (!parts->numbers) current->flags |= BROKEN;", ""),
    ("current->flags |= CLOSE;", ";"),
    ("own->order == ORDER_TREC && (float)", "(float)"),
    ("row->key < row[-1].key && rises", "rises"),
    ("rises(text, row))", "1)"),
    ("differ ? differ > 0 : row->length > before->length", "differ > 0"),
    ("(double)(float)parts->score", "parts->score"),
    ("current->flags |= BROKEN; /* the same document twice */", ""),
    ("found->place = place;\n    return 1;", "return 1;"),
    ("(size_t)current->rows < own->depth", "(size_t)current->rows <= own->depth"),
    ("found->hash == hash && same_id", "found->hash == hash || same_id"),
    ("if (found->hash == hash && same_id(own, text, found, id, length)) return found;",
     "if (found->hash == hash) return found;"),
    ("query->hash == hash && query->length == length &&\n            !memcmp", "!memcmp"),
    ("slots[at] = old[from];", "slots[at] = old[from], slots[at].epoch++;"),
    ("if (!own->slots || own->epoch == UINT32_MAX) {", "if (!own->slots) {"),
    ("own->used = 0;\n    own->probes = 0;", "own->used = 0;"),
    ("own->used * 2 <= own->n_slots ||", "own->used * 2 <= own->n_slots + 99999 ||"),
    ("free(old);\n    own->slots = slots;", "own->slots = slots;"),
    ("if (!more) return 0;\n", ""),
    ("if (!slots) return 0;\n", ""),
    ("own->segments[own->n_segments - 1].flags |= BROKEN;", ""),
    ("own->n_hits = (size_t)own->segments[own->n_segments].hit;", ""),
    ("line -= own->segments[own->n_segments].lines;", ""),
    ("last = 0;\n            line++;", "last = 0;"),
    ("last = 0;\n            line++;", "line++;"),
    ("if (!now->same_query && !open_segment", "if (!before && !open_segment"),
    ("current->lines++;", ""),
    ("before = now;\n", ""),
]  # fmt: skip
"""What stands in _scan_core.h, and what is put in its place."""


def _notices(core: str, folder: Path, inputs: list[str]) -> bool:
    (folder / "_scan_core.h").write_text(core)
    program = folder / "scan_core"
    command = ["cc", *FLAGS, f"-I{HERE}", f"-I{folder}", str(HERE / "scan_core.c"), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True)
    try:
        ran = subprocess.run([program, *inputs], capture_output=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode != 0


def main() -> None:
    """Print each mutant that passes, and how many do not."""
    core = CORE.read_text()
    noticed = tried = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if _notices(core, folder, sys.argv[1:]):
            raise SystemExit("the scanner as it is does not pass")
        for old, new in MUTANTS:
            if old not in core:
                raise SystemExit(f"no such place: {old!r}")
            tried += 1
            if _notices(core.replace(old, new), folder, sys.argv[1:]):
                noticed += 1
            else:
                print(f"not noticed: {old!r} -> {new!r}", flush=True)
    print(f"{noticed} of {tried} noticed")


if __name__ == "__main__":
    main()
