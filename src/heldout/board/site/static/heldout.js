// Sorting and filtering of the board, and embargoes that ended since the page was made.
// Without this script the page says the same, in the order of the ranks.
"use strict";

(() => {
  const today = new Date().toISOString().slice(0, 10);
  for (const element of document.querySelectorAll("[data-embargo-until]")) {
    if (today >= element.dataset.embargoUntil) element.textContent = element.dataset.after;
  }

  const table = document.getElementById("board");
  if (!table) return;

  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const sortable = heads.filter((head) => head.dataset.key);
  const note = document.getElementById("note");
  const filter = document.getElementById("filter");
  const type = document.getElementById("type");
  const sort = document.getElementById("sort");
  const costs = document.getElementById("costs");
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const empty = { q: "", type: "", costs: "", sort: "", order: "" };
  let state = { ...empty };

  const opposite = (order) => (order === "ascending" ? "descending" : "ascending");
  const headOf = (key) => sortable.find((head) => head.dataset.key === key);
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const texts = new Map(
    rows.map((row) => [row, fold(`${row.querySelector(".system").textContent} ${row.dataset.id}`)]),
  );

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
    return typed && words.every((word) => texts.get(row).includes(word));
  }

  function button(words, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.addEventListener("click", action);
    return made;
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
    if (state.q.trim() || state.type) {
      const clear = button("Clear the filter", () => update({ q: "", type: "" }));
      const found = shown
        ? `${shown} of ${rows.length} rows match ${describeFilter()}; ranks are those of the whole board. `
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

  function show() {
    const head = headOf(state.sort);
    const ordered = head ? [...rows].sort(compare(head, state.order)) : rows;
    body.append(...ordered);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !matches(row);
      shown += !row.hidden;
    }
    for (const other of sortable) {
      if (other === head) other.setAttribute("aria-sort", state.order);
      else other.removeAttribute("aria-sort");
    }
    if (filter.value !== state.q) filter.value = state.q;
    type.value = state.type;
    if (costs) costs.checked = Boolean(state.costs);
    sort.value = head ? `${state.sort} ${state.order}` : "";
    showNote(shown);
  }

  function update(changes) {
    state = { ...state, ...changes };
    if (headOf(state.sort)?.classList.contains("cost") && "sort" in changes) state.costs = "shown";
    const kept = Object.entries(state).filter(([, value]) => value);
    const hash = new URLSearchParams(kept).toString();
    history.replaceState(null, "", hash ? `#${hash}` : "#");
    show();
  }

  function readAddress() {
    const hash = location.hash.slice(1);
    if (hash && !hash.includes("=")) return;
    const given = new URLSearchParams(hash);
    const next = { ...empty };
    for (const key of Object.keys(empty)) next[key] = given.get(key) ?? "";
    const head = headOf(next.sort);
    if (!head) next.sort = next.order = "";
    else if (next.order !== opposite(head.dataset.first)) next.order = head.dataset.first;
    if (head?.classList.contains("cost") || (costs && next.costs)) next.costs = "shown";
    else next.costs = "";
    if (![...type.options].some((option) => option.value === next.type)) next.type = "";
    state = next;
    show();
  }

  function clickHead(head) {
    const { key, first } = head.dataset;
    if (state.sort !== key) update({ sort: key, order: first });
    else if (state.order === first) update({ order: opposite(first) });
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
  costs?.addEventListener("change", () => update({ costs: costs.checked ? "shown" : "" }));
  type.addEventListener("change", () => update({ type: type.value }));
  sort.addEventListener("change", () => {
    const [key, order] = sort.value.split(" ");
    update({ sort: key, order: order ?? "" });
  });
  window.addEventListener("hashchange", readAddress);
  document.getElementById("controls").hidden = rows.length < 2;
  readAddress();
})();
