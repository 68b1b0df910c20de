// Keys, and an answer that outlives a lost connection.
// Without this script the page is a plain form that says and stores the same.
import { keySwitch, sendBySelf, store } from "./sending.js";

const form = document.getElementById("question");
if (form) answering(form);

function answering(form) {
  const KEPT = "This earlier answer is not saved yet. Press the button to save it.";

  const status = document.getElementById("status");
  const choices = [...form.elements.choice];
  const passages = [...form.querySelectorAll('input[name="passage"]')];
  const note = form.elements.note;
  const place = `heldout ${form.dataset.place}`;
  const useKeys = keySwitch();

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

  sendBySelf(form, {
    what: "answer",
    ready: () => true,
    keep,
    forget: () => store.remove(place),
    refused: () => store.remove(place), // the server's own page has all that was sent
  });
  restore();
}
