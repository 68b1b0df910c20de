"""Tasks as Mechanical Turk takes them: a CSV file with a row for each task, and an HTML template.

The template is a fragment without forms or anything from elsewhere: the platform (or Turkle, with
which it can be tried offline) puts it into its own form and replaces `${left_1}` by the cell of
that name. It does so without escaping, so cells are HTML already: whatever a passage holds, it is
shown as text, starts no formula in a spreadsheet and names no further variable. Its script shows
one question at a time and lets a worker stop; without it all questions stand below each other.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from html import escape
from importlib.resources import files
from string import Template
from typing import Literal, cast, get_args

from heldout.errors import Problem, quote
from heldout.files.csv import CsvRow, defuse, format_csv, parse_csv
from heldout.judging.campaign.judgments import REASONS, Judgment, Reason, failed_tests
from heldout.judging.campaign.pools import Texts, missing_texts
from heldout.judging.campaign.rows import Task, amount_owed, raise_problems
from heldout.judging.campaign.settings import Settings, format_money

_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_ACTIVE = re.compile(r"[=+\-@$%{}\t\r\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HitFiles:
    """The files for tasks of one size: a project of its own on the platform.

    Attributes:
        items: pairs and tests in each task.
        tasks: how many rows there are.
        rows: the CSV file.
        template: the HTML.
    """

    items: int
    tasks: int
    rows: bytes
    template: bytes


def hit_files(tasks: Iterable[Task], texts: Texts, settings: Settings) -> tuple[HitFiles, ...]:
    """CSV and template for each size of task, the largest first.

    Args:
        tasks: in the order of the rows.
        texts: of all that they show.
        settings: what workers read.

    Raises:
        InputError: code `text-missing`: a task shows a query or passage without a text.
    """
    sizes: defaultdict[int, list[Task]] = defaultdict(list)
    for task in tasks:
        sizes[len(task.items)].append(task)
    shown = (item for found in sizes.values() for task in found for item in task.items)
    raise_problems(missing_texts(shown, texts))
    return tuple(
        HitFiles(
            items=size,
            tasks=len(found),
            rows=format_csv(
                _header(size), (list(hit_cells(task, texts).values()) for task in found)
            ),
            template=_template(size, settings),
        )
        for size, found in sorted(sizes.items(), reverse=True)
    )


def qualifications(settings: Settings) -> bytes:
    """Return which workers may see a task, for Mechanical Turk; or nothing.

    Source: Arabzadeh et al. 2021, §3.1; the types are the platform's own, by their ids.
    """
    countries = [{"Country": country} for country in settings.countries]
    wanted: list[tuple[str, str, dict[str, object]]] = []
    if countries:
        comparator = "EqualTo" if len(countries) == 1 else "In"
        wanted.append(("00000000000000000071", comparator, {"LocaleValues": countries}))
    if settings.approved_tasks:
        values = {"IntegerValues": [settings.approved_tasks]}
        wanted.append(("00000000000000000040", "GreaterThan", {**values}))
    if settings.approval_rate:
        values = {"IntegerValues": [settings.approval_rate]}
        wanted.append(("000000000000000000L0", "GreaterThanOrEqualTo", {**values}))
    rows = [
        {"QualificationTypeId": kind, "Comparator": comparator, **values}
        | {"ActionsGuarded": "DiscoverPreviewAndAccept"}
        for kind, comparator, values in wanted
    ]
    return json.dumps(rows, indent=2).encode() + b"\n" if rows else b""


def hit_cells(task: Task, texts: Texts) -> dict[str, str]:
    """The row of a task: `task`, then `query_1`, `left_1`, `right_1` and so on.

    A text that is not there is empty.
    """
    cells = [task.task]
    for item in task.items:
        cells.append(cell_html(texts.queries.get(item.query, "")))
        cells += (cell_html(texts.docs.get(doc, "")) for doc in (item.left, item.right))
    return dict(zip(_header(len(task.items)), cells, strict=True))


def cell_html(text: str) -> str:
    """A text as HTML in ASCII on one line, in which no character means anything to anybody else.

    Control characters, which no page shows, become U+FFFD; a line's end is kept.
    """
    plain = _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))
    safe = _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", escape(plain))
    return safe.encode("ascii", "xmlcharrefreplace").decode()


def _header(items: int) -> list[str]:
    names = ("query", "left", "right")
    return ["task", *(f"{name}_{position}" for position in range(1, items + 1) for name in names)]


def _template(items: int, settings: Settings) -> bytes:
    page = _read("mturk.html")
    paragraphs = (part.strip() for part in settings.consent.split("\n\n"))
    closing = [f"Approval: {settings.ethics}"] if settings.ethics else []
    closing += [f"Questions about the study: {settings.contact}"] if settings.contact else []
    consent = "\n".join(f"<p>{cell_html(part)}</p>" for part in (*paragraphs, *closing) if part)
    return page.substitute(
        task="${task}",
        name=cell_html(settings.name),
        consent=consent,
        items="\n".join(_sections(items, settings)),
        owed="|".join(_owed_words(items, settings)),
    ).encode()


def _owed_words(items: int, settings: Settings) -> Iterator[str]:
    """Yield what is said to a worker who stops after each number of answers."""
    for answered in range(1, items):
        words = f"{answered} of {items} answered"
        if settings.reward:
            owed = amount_owed(reward=settings.reward, answered=answered, items=items)
            words += f": {format_money(owed, settings.currency)} is yours"
        yield cell_html(f"{words}.")


def _sections(items: int, settings: Settings) -> Iterator[str]:
    section = _read("mturk-item.html")
    reasons = "\n".join(
        f'<option value="{reason}">{cell_html(REASONS[reason])}</option>'
        for reason in get_args(Reason)
    )
    for position in range(1, items + 1):
        yield section.substitute(
            position=position,
            items=items,
            query=f"${{query_{position}}}",
            left=f"${{left_{position}}}",
            right=f"${{right_{position}}}",
            question=cell_html(settings.question),
            language=cell_html(settings.language),
            reasons=reasons,
        ).rstrip("\n")


def _read(name: str) -> Template:
    path = files("heldout.judging.campaign") / "templates" / name
    return Template(path.read_text("utf-8"))


# Results as Mechanical Turk gives them out: read into judgments, and reviewed.
#
# A row is what one worker did with one task, which its id names. The texts beside the answers have
# to be those of that task: the results of another campaign are refused.

_NEEDED = ("HITId", "AssignmentId", "WorkerId", "Input.task")
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,255}")
_ZONES: Mapping[str, int] = {"UTC": 0, "GMT": 0, "PST": -8, "PDT": -7}
_TIME = re.compile(r"(\w{3} \w{3} \d{1,2} \d\d:\d\d:\d\d) (\w+) (\d{4})")
_REWARD = re.compile(r"\$?(\d{1,6})\.(\d\d)")
_DECIDED = ("Approved", "Rejected")
_FAILED = "Passages that plainly do not answer the question were preferred in too many questions."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResult:
    """What one worker did with one task.

    Attributes:
        row: of the file.
        worker: the platform's id of the worker.
        task: the task's id.
        items: how many questions it has.
        judgments: one for each question that has an answer.
        failed: tests whose answer is not the known one.
    """

    row: CsvRow
    worker: str
    task: str
    items: int
    judgments: tuple[Judgment, ...]
    failed: int

    @property
    def complete(self) -> bool:
        """Whether each question has an answer."""
        return len(self.judgments) == self.items

    def is_refused(self, settings: Settings) -> bool:
        """Check whether the task is not paid: tests were failed, and the settings say so."""
        return self.failed >= settings.failures and not settings.pay_failed


Taken = Literal["new", "before", "repeated", "surplus"]
"""`new`: taken in, failed ones too: they do not count. `before`: taken in earlier. Left out are
`repeated`: the worker had judged one of the pairs before, in another task; `surplus`: somebody else
had done the task, and it counts."""


def read_results(
    data: bytes,
    *,
    path: str,
    tasks: Mapping[str, Task],
    texts: Texts,
    pseudonym: Callable[[str], str],
) -> tuple[WorkerResult, ...]:
    """Read a file of results.

    Args:
        data: CSV with a header: `HITId`, `AssignmentId`, `WorkerId`, `Input.*`, `Answer.*`.
        path: its name, for errors.
        tasks: of the campaign, by id.
        texts: of all that they show.
        pseudonym: of a worker, from the platform's id: the same for the same worker.

    Raises:
        InputError: those of `parse_csv`; `mturk-task`: a task that the campaign does not have, or
            shown with other texts; `mturk-row`: an id or an answer that the form cannot send, or
            the same assignment twice.
    """
    rows = parse_csv(data, path=path, needed=_NEEDED)
    problems: list[Problem] = []
    results, seen = [], set()
    for row in rows:
        found = list(_find_problems(row, path, tasks, texts))
        assignment = row.cells["AssignmentId"]
        if assignment in seen:
            found.append(_problem("mturk-row", row, path, f"{quote(assignment)} again", "once"))
        seen.add(assignment)
        problems += found
        if not found:
            task = tasks[row.cells["Input.task"]]
            results.append(_make_result(row, task, pseudonym(row.cells["WorkerId"])))
    raise_problems(problems)
    return tuple(results)


def take_results(
    results: Iterable[WorkerResult], earlier: Iterable[Judgment], settings: Settings
) -> Mapping[Taken, Sequence[WorkerResult]]:
    """Return which results are new, and may be taken in.

    Args:
        results: of a file, or of several.
        earlier: all judgments that the campaign has.
        settings: what a failed test excludes.
    """
    assignments, done = set[tuple[str, str]](), set[str]()
    pairs = set[tuple[str, tuple[str, str, str]]]()

    def learn(given: Sequence[Judgment]) -> None:
        failed = failed_tests(given)
        for one in given:
            assignments.add((one.worker, one.task))
            if one.answer is None:
                pairs.add((one.worker, one.pair))
            if one.submitted and failed[one.worker, one.task] < settings.failures:
                done.add(one.task)

    learn(tuple(earlier))
    found: dict[Taken, list[WorkerResult]] = {one: [] for one in get_args(Taken)}
    for result in results:
        which: Taken = "new"
        given = result.judgments
        if given and (given[0].worker, result.task) in assignments:
            which = "before"
        elif any((one.worker, one.pair) in pairs for one in given if one.answer is None):
            which = "repeated"
        elif result.task in done:
            which = "surplus"
        else:
            learn(given)
        found[which].append(result)
    return found


def format_bonuses(results: Sequence[WorkerResult], settings: Settings) -> bytes:
    """Return what is owed beyond the reward of the platform, which an approved task is paid whole.

    Each row is a call of `SendBonus`: the token keeps it from being paid twice. A file without the
    column `Reward`, and a task that is not paid, have no bonus.
    """
    header = ("WorkerId", "AssignmentId", "BonusAmount", "Reason", "UniqueRequestToken")
    rows = []
    for result in results:
        answered, items = len(result.judgments), result.items
        owed = amount_owed(reward=settings.reward, answered=answered, items=items)
        paid = _REWARD.fullmatch(result.row.cells.get("Reward", ""))
        bonus = owed - int(f"{paid[1]}{paid[2]}") if paid else 0
        if bonus > 0 and not result.is_refused(settings):
            assignment = result.row.cells["AssignmentId"]
            amount, words = f"{bonus // 100}.{bonus % 100:02}", f"{answered} of {items} answered"
            rows.append([result.worker, assignment, amount, words, assignment])
    return format_csv(header, rows) if rows else b""


def format_review(results: Sequence[WorkerResult], settings: Settings) -> bytes:
    """The file of results with its columns `Approve` and `Reject` filled, to be uploaded.

    Every task is approved, unless tests were failed and the settings say that such a task is not
    paid. What is decided already stays undecided here.
    """
    if not results:
        return format_csv([*_NEEDED, "Approve", "Reject"], [])
    names = [name for name in results[0].row.cells if name not in ("Approve", "Reject")]
    rows = []
    for result in results:
        cells = result.row.cells
        decided = cells.get("AssignmentStatus") in _DECIDED
        verdict = (
            ("", "") if decided else ("", _FAILED) if result.is_refused(settings) else ("x", "")
        )
        rows.append([*(defuse(cells[name]) for name in names), *(("", "") if decided else verdict)])
    return format_csv([*map(defuse, names), "Approve", "Reject"], rows)


_CHOICES = ("left", "right", "none", "")


def _find_problems(
    row: CsvRow, path: str, tasks: Mapping[str, Task], texts: Texts
) -> Iterator[Problem]:
    for name in ("HITId", "AssignmentId", "WorkerId"):
        if not _ID.fullmatch(row.cells[name]):
            found = f"{name} {quote(row.cells[name])}"
            yield _problem("mturk-row", row, path, found, "letters and digits")
    task = tasks.get(row.cells["Input.task"])
    if task is None:
        found = f"task {quote(row.cells['Input.task'])}"
        yield _problem("mturk-task", row, path, found, "a task of this campaign")
        return
    for name, shown in hit_cells(task, texts).items():
        if row.cells.get(f"Input.{name}", shown) != shown:
            found = f"another text in Input.{name} than task {task.task} shows"
            yield _problem("mturk-task", row, path, found, "the results of this campaign's tasks")
            return
    for position in range(1, len(task.items) + 1):
        choice, reason = _answer(row, position)
        if choice not in _CHOICES:
            found = f"Answer.choice_{position} {quote(choice)}"
            yield _problem("mturk-row", row, path, found, "left, right, none, or nothing")
        if reason not in ("", *get_args(Reason)):
            found = f"Answer.reason_{position} {quote(reason)}"
            expected = "a reason that the form offers, or nothing"
            yield _problem("mturk-row", row, path, found, expected)


def _answer(row: CsvRow, position: int) -> tuple[str, str]:
    cells = row.cells
    return cells.get(f"Answer.choice_{position}", ""), cells.get(f"Answer.reason_{position}", "")


def _make_result(row: CsvRow, task: Task, worker: str) -> WorkerResult:
    answers = [(at, item, *_answer(row, at)) for at, item in enumerate(task.items, 1)]
    complete = all(choice for _, _, choice, _ in answers)
    shown_at, answered_at = (
        _read_time(row.cells.get(name, "")) for name in ("AcceptTime", "SubmitTime")
    )
    judgments = tuple(
        Judgment(
            query=item.query,
            left=item.left,
            right=item.right,
            preferred={"left": item.left, "right": item.right}.get(choice),
            reason=cast("Reason", reason or "other") if choice == "none" else None,
            worker=worker,
            task=task.task,
            position=at,
            answer=item.answer,
            why=task.why,
            shown_at=shown_at,
            answered_at=answered_at,
            by="form",
            submitted=complete,
            submitted_at=answered_at if complete else "",
        )
        for at, item, choice, reason in answers
        if choice
    )
    return WorkerResult(
        row=row,
        worker=row.cells["WorkerId"],
        task=task.task,
        items=len(task.items),
        judgments=judgments,
        failed=failed_tests(judgments).get((worker, task.task), 0),
    )


def _read_time(text: str) -> str:
    """`Sat Nov 21 04:00:00 PST 2026` as ISO 8601 in UTC; empty where it cannot be read."""
    found = _TIME.fullmatch(text.strip())
    if found is None or found.group(2) not in _ZONES:
        return ""
    plain = f"{found.group(1)} {found.group(3)}"
    try:
        local = datetime.strptime(plain, "%a %b %d %H:%M:%S %Y")  # noqa: DTZ007 - its zone follows
    except ValueError:
        return ""
    if local.strftime("%a") != found.group(1)[:3]:
        return ""
    zone = timezone(timedelta(hours=_ZONES[found.group(2)]))
    utc = local.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def _problem(code: str, row: CsvRow, path: str, found: str, expected: str) -> Problem:
    return Problem.of(code=code, path=path, line=row.line, found=found, expected=expected)
