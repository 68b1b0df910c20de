// Keys, the time a question was looked at, and a choice that outlives a lost connection.
// Without this script the page is a plain form that says and stores the same.
import { keySwitch, sendBySelf, store } from "./sending.js";

const form = document.getElementById("item");
if (form) judging(form);

function judging(form) {
  const WARNING = 300; // seconds before the place is given away
  const ENDING = "This task goes to another person in a few minutes. Press “I need more time” to go on.";
  const KEPT = "This earlier choice is not saved yet. Press the button to save it.";

  const status = document.getElementById("status");
  const choices = [...form.elements.choice];
  const reason = form.elements.reason ?? { value: "" }; // questions about many passages ask none
  const ticks = [...form.querySelectorAll('input[name^="tick-"]')];
  const place = `heldout ${form.dataset.place}`;
  const useKeys = keySwitch();

  // The choice, until it is posted

  const chosen = () => form.elements.choice.value;

  function keep() {
    store.set(place, JSON.stringify({ ...said(), replaces: form.dataset.replaces }));
  }

  function said() {
    const ticked = ticks.filter((one) => one.checked).map((one) => one.name);
    return { choice: chosen(), reason: reason.value, ticked };
  }

  function restore() {
    const kept = JSON.parse(store.get(place) ?? "null");
    if (!kept) return;
    if (kept.replaces !== form.dataset.replaces) return store.remove(place);
    const { replaces, ...answer } = kept;
    if (JSON.stringify(answer) === JSON.stringify(said())) return;
    for (const one of choices) one.checked = one.value === answer.choice;
    for (const one of ticks) one.checked = answer.ticked.includes(one.name);
    reason.value = answer.reason;
    status.textContent = KEPT;
  }

  // How it was chosen, and how long the page was looked at

  let hand = "pointer";
  let looked = 0;
  let since = null;

  function look() {
    const sees = document.visibilityState === "visible" && document.hasFocus();
    const now = performance.now();
    if (since !== null) looked += now - since;
    since = sees ? now : null;
  }

  function choose(by) {
    form.elements.by.value = by;
    status.textContent = "";
    keep();
  }

  form.addEventListener("change", (event) => {
    if (event.target === reason && reason.value) {
      choices.find((one) => one.value === "none").checked = true;
    }
    choose(hand);
  });
  document.addEventListener("pointerdown", () => { hand = "pointer"; }, true);

  // Keys, which can be switched off

  function press(key) {
    const choice = choices.filter((one) => one.value !== "none")[Number(key) - 1];
    if (choice) {
      choice.checked = true;
      choice.focus();
      choose("key");
    } else if (key === "Enter") {
      form.requestSubmit();
    }
    return Boolean(choice) || key === "Enter";
  }

  document.addEventListener("keydown", (event) => {
    hand = "key";
    const modified = event.ctrlKey || event.altKey || event.metaKey || event.isComposing;
    if (!useKeys.checked || modified || event.repeat) return;
    const own = event.key === "Enter" ? "a, button, select, input" : "select";
    if (!event.target.closest?.(own) && press(event.key)) event.preventDefault();
  }, true);

  // Sending: not without a choice, and with the time that it took

  // As the server would say it, on this page: one that refused would stay behind the next.
  function ask(words) {
    let alert = document.getElementById("problem");
    if (!alert) {
      alert = document.createElement("p");
      Object.assign(alert, { id: "problem", className: "alert", role: "alert", tabIndex: -1 });
      document.querySelector("h1").before(alert);
      form.querySelector("fieldset").setAttribute("aria-describedby", "problem");
    }
    alert.textContent = words;
    alert.focus();
  }

  function missing() {
    if (!chosen()) return form.dataset.unchosen;
    return chosen() === "none" && !reason.value ? form.dataset.unreasoned : "";
  }

  function ready() {
    if (missing()) {
      ask(missing());
      return false;
    }
    look();
    form.elements.active_ms.value = Math.round(looked);
    return true;
  }

  sendBySelf(form, {
    what: "choice",
    ready,
    keep,
    forget: () => store.remove(place),
    refused: () => {}, // what the server has already it does not save twice
  });

  // A warning before the place is given to somebody else

  const left = Number(form.dataset.left);
  setTimeout(() => { status.textContent = ENDING; }, 1000 * Math.max(left - WARNING, left / 2));

  for (const name of ["focus", "blur", "pageshow"]) addEventListener(name, look);
  document.addEventListener("visibilitychange", look);
  restore();
  look();
}
