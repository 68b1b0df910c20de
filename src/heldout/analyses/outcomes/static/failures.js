// The list of queries: order, filters, search; a query opens both rankings side by side.
// Data come from scripts beside this one, and are only ever set as text.
"use strict";

const heldout = (() => {
  const STEP = 100;
  const SHORT = 220;
  const base = document.currentScript.src;
  const byId = (id) => document.getElementById(id);
  const [controls, note, columns, list, more] = ["controls", "note", "columns", "list", "more"].map(byId);
  const fields = { order: byId("order"), outcome: byId("outcome"), q: byId("search") };
  const empty = { order: "", outcome: "", q: "", open: "" };
  const chunks = new Map();
  const waiting = new Map();
  let data = null;
  let state = { ...empty };
  let shown = [];
  let limit = STEP;

  const count = (number) => number.toLocaleString("en-US");
  const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const decimals = (value) => value.toFixed(4).replace("-", "\u2212");
  const signed = (value) => (value > 0 ? "+" : "") + decimals(value);
  const rank = (value) => (value ? count(value) : "\u2013");

  function make(tag, classes, ...children) {
    const element = document.createElement(tag);
    if (classes) element.className = classes;
    element.append(...children);
    return element;
  }

  function makeButton(classes, ...children) {
    const button = make("button", classes, ...children);
    button.type = "button";
    return button;
  }

  // Queries

  function readQuery([id, text, a, b, difference, gain, firstA, firstB], place) {
    const outcome = firstA ? (firstB ? "both" : "A alone") : firstB ? "B alone" : "neither";
    const folded = fold(text === null ? id : `${text} ${id}`);
    return { id, text, a, b, difference, gain, firstA, firstB, outcome, folded, place };
  }

  function order(queries) {
    if (state.order === "gains") return [...queries].reverse();
    if (state.order === "size") {
      return [...queries].sort((x, y) => Math.abs(y.difference) - Math.abs(x.difference) || x.place - y.place);
    }
    return queries;
  }

  function select() {
    const words = fold(state.q).split(/\s+/).filter(Boolean);
    const fits = (query) =>
      (!state.outcome || query.outcome === state.outcome) && words.every((word) => query.folded.includes(word));
    shown = order(data.queries.filter(fits));
    const place = shown.findIndex((query) => query.id === state.open);
    if (place < 0) state.open = "";
    limit = Math.max(STEP, Math.ceil((place + 1) / STEP) * STEP);
  }

  function cell(words, value, classes) {
    return make("span", classes, make("span", "label", words, " "), value);
  }

  function drawBar(query) {
    const bar = make("span", query.gain > 0 ? "bar up" : "bar down");
    const width = data.largest ? (50 * Math.abs(query.difference)) / data.largest : 0;
    bar.style.width = `${width}%`;
    bar.style.left = query.difference < 0 ? `${50 - width}%` : "50%";
    return make("span", "track", bar);
  }

  function drawQuery(query) {
    const name = make("span", "text", query.text ?? query.id);
    name.dir = "auto";
    const head = makeButton("head-of-query", name);
    if (query.text !== null) head.append(make("small", "id", ` ${query.id}`));
    head.setAttribute("aria-expanded", "false");
    head.addEventListener("click", () => toggle(query));
    const first = make("span", "first", make("span", "label", "first relevant: "), `A ${rank(query.firstA)} · B ${rank(query.firstB)}`);
    const difference = cell("B \u2212 A", signed(query.difference), "number difference");
    difference.append(drawBar(query));
    const row = make(
      "div",
      "row",
      make("h3", "", head),
      first,
      cell("A", decimals(query.a), "number"),
      cell("B", decimals(query.b), "number"),
      difference,
    );
    const item = make("li", "query", row);
    item.dataset.query = query.id;
    query.item = item;
    query.head = head;
    return item;
  }

  function showNote() {
    const said = [];
    const all = data.queries.length;
    if (shown.length === all) said.push(`${plural(all, "query", "queries")}. `);
    else said.push(`${count(shown.length)} of ${plural(all, "query", "queries")}. `);
    if (state.q.trim() || state.outcome) {
      const clear = makeButton("", "Clear the filters");
      clear.addEventListener("click", () => update({ q: "", outcome: "" }));
      said.push(clear);
    }
    note.replaceChildren(...said);
  }

  function showList() {
    const part = shown.slice(0, limit);
    list.replaceChildren(...part.map(drawQuery));
    showMore();
    showNote();
    columns.hidden = !part.length;
    for (const [key, field] of Object.entries(fields)) if (field.value !== state[key]) field.value = state[key];
    const open = part.find((query) => query.id === state.open);
    if (open) expand(open);
  }

  function showMore() {
    const left = shown.length - limit;
    more.hidden = left <= 0;
    more.firstElementChild.textContent = `Show ${count(Math.min(STEP, left))} more of ${count(left)}`;
  }

  function addMore() {
    const part = shown.slice(limit, limit + STEP).map(drawQuery);
    limit += STEP;
    list.append(...part);
    showMore();
    part[0]?.querySelector("button").focus();
  }

  // One query

  function toggle(query) {
    const top = query.head.getBoundingClientRect().top;
    const open = state.open === query.id;
    for (const item of list.querySelectorAll(".query.open")) close(item);
    state.open = open ? "" : query.id;
    if (!open) expand(query);
    window.scrollBy(0, query.head.getBoundingClientRect().top - top);
    saveAddress();
  }

  function close(item) {
    item.classList.remove("open");
    item.querySelector(".head-of-query").setAttribute("aria-expanded", "false");
    item.querySelector(".opened")?.remove();
  }

  function expand(query) {
    const opened = make("div", "opened", make("p", "quiet-line", "Loading …"));
    query.item.classList.add("open");
    query.head.setAttribute("aria-expanded", "true");
    query.item.append(opened);
    const number = data.chunks.findLastIndex((start) => start <= query.place);
    load(number, (chunk) => {
      if (chunk) opened.replaceChildren(...drawOpened(query, chunk, chunk.queries[query.place - data.chunks[number]]));
      else opened.replaceChildren(make("p", "", "The rankings cannot be read: the folder beside this page lacks ", make("code", "", `chunk-${number}.js`), "."));
    });
  }

  function load(number, use) {
    if (chunks.has(number)) return use(chunks.get(number));
    if (waiting.has(number)) return waiting.get(number).push(use);
    waiting.set(number, [use]);
    const script = document.createElement("script");
    script.src = new URL(`chunk-${number}.js`, base);
    script.addEventListener("load", () => settle(number));
    script.addEventListener("error", () => settle(number));
    document.head.append(script);
  }

  function settle(number) {
    const uses = waiting.get(number) ?? [];
    waiting.delete(number);
    for (const use of uses) use(chunks.get(number));
  }

  function drawOpened(query, chunk, found) {
    const both = found.a.filter(([document]) => found.b.some(([other]) => other === document)).length;
    const unjudged = (side) => found[side].filter(([, grade]) => grade === null).length;
    const said = `Of the first ${data.depth} documents ${plural(both, "is", "are")} in both lists. Unjudged: ${unjudged("a")} in A, ${unjudged("b")} in B.`;
    const parts = [
      make("p", "quiet-line", said),
      make("div", "lists", drawList("A", "B", data.a, found.a, found.listed[0], chunk), drawList("B", "A", data.b, found.b, found.listed[1], chunk)),
    ];
    if (found.missed.length) parts.push(...drawMissed(found, chunk));
    return parts;
  }

  function drawList(side, other, name, documents, listed, chunk) {
    const title = make("h4", "", `${side} `, make("small", "", name));
    const rows = documents.map((document, index) => drawDocument(document, index + 1, other, chunk));
    if (data.cutoff && data.cutoff < rows.length) {
      rows.splice(data.cutoff, 0, make("li", "limit", `${data.measure} does not look at the documents below`));
    }
    const list = make("ol", "documents", ...rows);
    const part = make("section", "ranking", title);
    part.append(rows.length ? list : make("p", "quiet-line", "This run does not answer the query."));
    if (listed > documents.length) part.append(make("p", "quiet-line", `${count(listed)} documents in all.`));
    return part;
  }

  function gradeOf(grade) {
    if (grade === null) return make("span", "grade none", "unjudged");
    return make("span", grade > 0 ? "grade relevant" : "grade", `grade ${grade}`);
  }

  function drawDocument([number, grade, otherRank], place, other, chunk) {
    const [id, text] = chunk.documents[number];
    const elsewhere =
      otherRank === null ? `not in ${other}'s first ${data.depth}` : otherRank ? `${other}: ${count(otherRank)}` : `not in ${other}`;
    const line = make("p", "line", make("span", "place", count(place)), gradeOf(grade), make("code", "", id), make("span", "elsewhere", elsewhere));
    const item = make("li", grade === null ? "document unjudged" : grade > 0 ? "document relevant" : "document", line);
    if (text !== null) item.append(drawText(text));
    return item;
  }

  function drawText(text) {
    const passage = make("p", "passage", text);
    passage.dir = "auto";
    const box = make("div", "", passage);
    if (text.length <= SHORT) return box;
    passage.classList.add("clamped");
    const button = makeButton("whole", "Whole text");
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const clamped = passage.classList.toggle("clamped");
      button.textContent = clamped ? "Whole text" : "Less";
      button.setAttribute("aria-expanded", String(!clamped));
    });
    box.append(button);
    return box;
  }

  function drawMissed(found, chunk) {
    const rows = found.missed.map(([number, grade, a, b]) => {
      const [id, text] = chunk.documents[number];
      const name = make("td", "", make("code", "", id));
      if (text !== null) name.append(drawText(text));
      const place = (side, value) => make("td", "score", make("span", "label", `${side} `), value ? count(value) : "not listed");
      return make("tr", "", make("td", "", gradeOf(grade)), place("A", a), place("B", b), name);
    });
    const heads = ["Label", "Rank in A", "Rank in B", "Document"].map((words) => {
      const head = make("th", words.startsWith("Rank") ? "score" : "", words);
      head.scope = "col";
      return head;
    });
    const table = make("table", "missed", make("thead", "", make("tr", "", ...heads)), make("tbody", "", ...rows));
    keepRoles(table);
    const parts = [make("h4", "", `Relevant documents that are not among the first ${data.depth} of both`), table];
    if (found.more) parts.push(make("p", "quiet-line", `and ${count(found.more)} more`));
    return parts;
  }

  // A phone shows the rows of a table as blocks, and a browser then forgets that it is one.
  function keepRoles(table) {
    const roles = { table: [table], rowgroup: table.children, row: table.rows, cell: table.querySelectorAll("td"), columnheader: table.querySelectorAll("th") };
    for (const [role, elements] of Object.entries(roles)) for (const one of elements) one.setAttribute("role", role);
  }

  // State

  function saveAddress() {
    const kept = Object.entries(state).filter(([, value]) => value);
    const hash = new URLSearchParams(kept).toString();
    history.replaceState(null, "", hash ? `#${hash}` : "#");
  }

  function update(changes) {
    state = { ...state, ...changes };
    select();
    saveAddress();
    showList();
  }

  function readAddress() {
    const hash = location.hash.slice(1);
    if (hash && !hash.includes("=") && shown.length) return; // a link within the page
    const given = new URLSearchParams(hash);
    for (const key of Object.keys(empty)) state[key] = given.get(key) ?? "";
    for (const key of ["order", "outcome"]) {
      if (![...fields[key].options].some((option) => option.value === state[key])) state[key] = "";
    }
    select();
    showList();
    const open = shown.find((query) => query.id === state.open);
    if (open) open.item.scrollIntoView();
  }

  function begin(document) {
    data = { ...document, queries: document.queries.map(readQuery) };
    data.largest = Math.max(0, ...data.queries.map((query) => Math.abs(query.difference)));
    byId("still").remove();
    controls.hidden = false;
    for (const [key, field] of Object.entries(fields)) {
      field.addEventListener("input", () => update({ [key]: field.value }));
    }
    more.firstElementChild.addEventListener("click", addMore);
    window.addEventListener("hashchange", readAddress);
    readAddress();
  }

  return {
    take(name, document) {
      if (name === "queries") begin(document);
      else chunks.set(name, document);
    },
  };
})();
