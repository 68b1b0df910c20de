// Keys, and an answer that outlives a lost connection.
// Without this script the page is a plain form that says and stores the same.
"use strict";

(() => {
  const form = document.getElementById("question");
  if (!form) return;

  const PATIENCE = 20000; // milliseconds to wait for the server
  const LOST = "Not saved yet: the connection is lost. Your answer is kept here. " +
    "Press the button again, or wait: it is sent when the connection is back.";
  const BUSY = "Not saved yet: the server can't save just now. Your answer is kept here. " +
    "Press the button again in a moment.";
  const KEPT = "This answer is from before and not saved yet. Press the button to save it.";

  const status = document.getElementById("status");
  const button = form.querySelector("button");
  const choices = [...form.elements.choice];
  const passages = [...form.querySelectorAll('input[name="passage"]')];
  const note = form.elements.note;
  const place = `heldout ${form.dataset.place}`;

  // Storage may be switched off; then nothing outlives the page, and nothing else changes.
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* as above */ } },
    remove(key) { try { localStorage.removeItem(key); } catch { /* as above */ } },
  };

  // The answer, until it is saved

  function said() {
    return {
      choice: form.elements.choice.value,
      passages: passages.filter((one) => one.checked).map((one) => one.value),
      note: note.value,
      replaces: form.dataset.replaces,
    };
  }

  const asShown = JSON.stringify(said());

  function keep() {
    store.set(place, JSON.stringify(said()));
    status.textContent = "";
  }

  function restore() {
    const text = store.get(place);
    const kept = JSON.parse(text ?? "null");
    if (!kept || text === asShown) return;
    if (kept.replaces !== form.dataset.replaces) return store.remove(place);
    for (const one of choices) one.checked = one.value === kept.choice;
    for (const one of passages) one.checked = kept.passages.includes(one.value);
    note.value = kept.note;
    status.textContent = KEPT;
  }

  form.addEventListener("input", (event) => { if (event.target !== useKeys) keep(); });

  // Keys, which can be switched off

  const useKeys = document.getElementById("use-keys");
  document.getElementById("keys").hidden = false;
  useKeys.checked = store.get("heldout keys") !== "off";
  useKeys.addEventListener("change", () => store.set("heldout keys", useKeys.checked ? "on" : "off"));

  document.addEventListener("keydown", (event) => {
    const modified = event.ctrlKey || event.altKey || event.metaKey || event.isComposing;
    if (!useKeys.checked || modified || event.repeat) return;
    if (event.target.closest?.("textarea")) return;
    if (event.key === "Enter" && !event.target.closest?.("a, button")) {
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    const choice = choices[Number(event.key) - 1];
    if (!choice) return;
    event.preventDefault();
    choice.checked = true;
    choice.focus();
    keep();
  }, true);

  // Sending: the page is left only once the server has the answer

  let sending = false;

  async function send() {
    if (sending) return;
    sending = true;
    button.setAttribute("aria-disabled", "true");
    const answer = await post();
    sending = false;
    button.removeAttribute("aria-disabled");
    if (answer === "saved") {
      store.remove(place);
      location.assign(form.dataset.next);
    } else if (answer === "refused") {
      store.remove(place);
      form.submit(); // the server's own page says why, and has all that was sent
    } else {
      keep();
      status.textContent = answer === "lost" ? LOST : BUSY;
    }
  }

  async function post() {
    try {
      const response = await fetch(form.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        redirect: "manual",
        signal: AbortSignal.timeout(PATIENCE),
      });
      if (response.type === "opaqueredirect") return "saved";
      return response.status === 503 ? "busy" : "refused";
    } catch {
      return "lost";
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  addEventListener("online", () => { if (status.textContent === LOST) send(); });
  restore();
})();
