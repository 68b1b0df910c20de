// Sorting and filtering of the board, copying of hashes, and embargoes that ended since the page was
// made. Without this script the page says the same, in the order of the ranks.
"use strict";

(() => {
  const today = new Date().toISOString().slice(0, 10);
  const reveal = (part) => {
    for (const element of part.querySelectorAll("[data-embargo-until]")) {
      if (today >= element.dataset.embargoUntil) element.textContent = element.dataset.after;
    }
  };
  reveal(document);

  function button(words, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.addEventListener("click", action);
    return made;
  }

  async function copy(element, pressed) {
    try {
      await navigator.clipboard.writeText(element.textContent);
    } catch {
      getSelection().selectAllChildren(element);
      document.execCommand("copy");
    }
    pressed.textContent = "Copied";
  }

  for (const element of document.querySelectorAll(".hash")) {
    const made = button("Copy", () => copy(element, made));
    made.className = "copy";
    made.setAttribute("aria-label", `Copy ${element.textContent.slice(0, 8)}…`);
    element.after(made);
  }

  const table = document.getElementById("board");
  const filter = document.getElementById("filter");
  if (!table || !filter) return;

  // What has no room in a cell is shown in full while the pointer is on it.
  table.addEventListener("pointerover", ({ target }) => {
    const cell = target.closest(".name, .team, td.type");
    if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent;
  });

  const body = table.tBodies[0];
  const first = [...document.querySelectorAll("#board tbody tr, .unranked > li")];
  const total = Number(table.dataset.total);
  const leaves = Number(table.dataset.leaves ?? 1);
  const heads = [...table.tHead.rows[0].cells];
  const sortable = heads.filter((head) => head.dataset.key);
  const note = document.getElementById("note");
  const type = document.getElementById("type");
  const sort = document.getElementById("sort");
  const pages = document.getElementById("pages");
  const without = document.getElementById("without-rank");
  const choices = [...document.querySelectorAll("input[name=columns]")];
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const empty = { q: "", type: "", columns: "", sort: "", order: "" };
  let state = { ...empty };
  let rows = [...first];
  let whole = leaves === 1 ? "all" : "some";

  const opposite = (order) => (order === "ascending" ? "descending" : "ascending");
  const headOf = (key) => sortable.find((head) => head.dataset.key === key);
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const texts = new Map();

  function textOf(row) {
    if (!texts.has(row)) {
      const who = row.querySelector(".system") ?? row;
      texts.set(row, fold(`${who.textContent} ${row.dataset.id}`));
    }
    return texts.get(row);
  }

  // The rows of the other pages, asked for when something is filtered or sorted.

  function parse(kind, html) {
    const holder = document.createElement(kind);
    holder.innerHTML = html; // a file of this page's own, written by the same templates
    reveal(holder);
    return [...holder.children];
  }

  function load() {
    whole = "coming";
    const parts = [];
    const arrived = (number, ranked, unranked) => {
      parts[number] = [parse("tbody", ranked), parse("ul", unranked)];
      if (Object.keys(parts).length < leaves - 1) return;
      rows = [...first, ...parts.flatMap((part) => part[0]), ...parts.flatMap((part) => part[1])];
      whole = "all";
      show();
    };
    window.heldoutRows = arrived;
    for (let number = 2; number <= leaves; number += 1) {
      const script = document.createElement("script");
      script.src = `rows-${number}.js`;
      script.addEventListener("error", () => {
        whole = "failed";
        show();
      });
      document.head.append(script);
    }
  }

  function compare(head, order) {
    const column = heads.indexOf(head);
    const sign = order === "ascending" ? 1 : -1;
    const numeric = "numeric" in head.dataset || head.dataset.key === "rank";
    return (a, b) => {
      const x = a.cells[column].dataset.value;
      const y = b.cells[column].dataset.value;
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (numeric ? Number(x) - Number(y) : collator.compare(x, y));
    };
  }

  function matches(row) {
    const words = fold(state.q).split(/\s+/).filter(Boolean);
    const typed = !state.type || row.dataset.type === state.type;
    return typed && words.every((word) => textOf(row).includes(word));
  }

  function describeFilter() {
    const parts = [];
    if (state.q.trim()) parts.push(`“${state.q.trim()}”`);
    if (state.type) parts.push(`type ${state.type}`);
    return parts.join(" and ");
  }

  function describeOrder(head, order) {
    const words = { rank: ["best first", "worst first"], date: ["oldest first", "newest first"] };
    const [up, down] =
      words[head.dataset.key] ??
      ("numeric" in head.dataset ? ["lowest first", "highest first"] : ["A to Z", "Z to A"]);
    return order === "ascending" ? up : down;
  }

  function showNote(shown) {
    const said = [];
    if (whole === "coming") said.push(`Loading all ${total} rows… `);
    if (whole === "failed") said.push("The rows of the other pages could not be loaded. ");
    if (state.q.trim() || state.type) {
      const clear = button("Clear the filter", () => update({ q: "", type: "" }));
      const found = shown
        ? `${shown} of ${total} rows match ${describeFilter()}; ranks are those of the whole board. `
        : `No row matches ${describeFilter()}. `;
      said.push(found, clear, " ");
    }
    const head = headOf(state.sort);
    if (head) {
      const ranked = table.dataset.rankedBy;
      const words = `Sorted by ${head.dataset.words}, ${describeOrder(head, state.order)}; ranks follow ${ranked}. `;
      said.push(words, button("Back to rank order", () => update({ sort: "", order: "" })));
    }
    note.replaceChildren(...said);
  }

  // The marks of the charts whose entries match the filter stand out.

  const marks = [...document.querySelectorAll(".figure [data-entry]")];

  function showMarks(pool) {
    const filtered = Boolean(state.q.trim() || state.type);
    const found = new Set(pool.filter(matches).map((row) => row.dataset.id));
    for (const mark of marks) {
      mark.classList.toggle("match", filtered && found.has(mark.dataset.entry));
      mark.classList.toggle("no-match", filtered && !found.has(mark.dataset.entry));
    }
    for (const key of document.querySelectorAll(".match-key")) {
      key.hidden = !filtered || !key.closest(".figure").querySelector("[data-entry]");
      key.lastChild.textContent = ` matches ${describeFilter()}`;
    }
  }

  function show() {
    const head = headOf(state.sort);
    const asked = Boolean(state.q.trim() || state.type || head);
    if (asked && whole === "some") load();
    const pool = asked ? rows : first;
    const ranked = pool.filter((row) => row.cells);
    body.replaceChildren(...(head ? ranked.sort(compare(head, state.order)) : ranked));
    if (without) {
      const others = pool.filter((row) => !row.cells);
      without.querySelector("ul").replaceChildren(...others);
      without.hidden = !others.some(matches);
    }
    let shown = 0;
    for (const row of pool) {
      row.hidden = !matches(row);
      shown += !row.hidden;
    }
    showMarks(pool);
    if (pages) pages.hidden = asked && whole === "all";
    for (const other of sortable) {
      if (other === head) other.setAttribute("aria-sort", state.order);
      else other.removeAttribute("aria-sort");
    }
    if (filter.value !== state.q) filter.value = state.q;
    type.value = state.type;
    for (const choice of choices) choice.checked = choice.value === (state.columns || "overview");
    sort.value = head ? `${state.sort} ${state.order}` : "";
    showNote(shown);
  }

  function update(changes) {
    state = { ...state, ...changes };
    if ("sort" in changes) state.columns = groupOf(headOf(state.sort)) || state.columns;
    const kept = Object.entries(state).filter(([, value]) => value);
    const hash = new URLSearchParams(kept).toString();
    history.replaceState(null, "", hash ? `#${hash}` : "#");
    show();
  }

  function groupOf(head) {
    if (head?.classList.contains("cost")) return "costs";
    return head?.classList.contains("further") ? "further" : "";
  }

  function readAddress() {
    const hash = location.hash.slice(1);
    const moved = hash.startsWith("entry-") && whole === "some" && !document.getElementById(hash);
    if (hash && !hash.includes("=") && !moved) return;
    // A link to a row that stands on another page by now.
    const given = new URLSearchParams(moved ? `q=${hash.slice("entry-".length)}` : hash);
    const next = { ...empty };
    for (const key of Object.keys(empty)) next[key] = given.get(key) ?? "";
    const head = headOf(next.sort);
    if (!head) next.sort = next.order = "";
    else if (next.order !== opposite(head.dataset.first)) next.order = head.dataset.first;
    if (groupOf(head)) next.columns = groupOf(head);
    if (!choices.some((choice) => choice.value === next.columns)) next.columns = "";
    if (![...type.options].some((option) => option.value === next.type)) next.type = "";
    state = next;
    show();
  }

  function clickHead(head) {
    const { key, first: order } = head.dataset;
    if (state.sort !== key) update({ sort: key, order });
    else if (state.order === order) update({ order: opposite(order) });
    else update({ sort: "", order: "" });
  }

  sort.append(new Option("rank", ""));
  for (const head of sortable) {
    const made = button("", () => clickHead(head));
    made.append(...head.childNodes);
    head.append(made);
    for (const order of [head.dataset.first, opposite(head.dataset.first)]) {
      const words = `${head.dataset.words}, ${describeOrder(head, order)}`;
      sort.append(new Option(words, `${head.dataset.key} ${order}`));
    }
  }

  filter.addEventListener("input", () => update({ q: filter.value }));
  for (const choice of choices) {
    choice.addEventListener("change", () =>
      update({ columns: choice.value === "overview" ? "" : choice.value }),
    );
  }
  type.addEventListener("change", () => update({ type: type.value }));
  sort.addEventListener("change", () => {
    const [key, order] = sort.value.split(" ");
    update({ sort: key, order: order ?? "" });
  });
  window.addEventListener("hashchange", readAddress);
  document.getElementById("controls").hidden = total < 2;
  readAddress();
})();
