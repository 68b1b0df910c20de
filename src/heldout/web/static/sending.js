// What judges' and annotators' pages share: what outlives a page, the switch of the keys, and
// an answer that is sent once and kept here while the server cannot save it.

const PATIENCE = 20000; // milliseconds to wait for the server

// Storage may be switched off; then nothing outlives the page, and nothing else changes.
export const store = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, value); } catch { /* as above */ } },
  remove(key) { try { localStorage.removeItem(key); } catch { /* as above */ } },
};

// The switch of the keys: on, unless somebody switched it off.
export function keySwitch() {
  const useKeys = document.getElementById("use-keys");
  document.getElementById("keys").hidden = false;
  useKeys.checked = store.get("heldout keys") !== "off";
  useKeys.addEventListener("change", () => store.set("heldout keys", useKeys.checked ? "on" : "off"));
  return useKeys;
}

async function post(form) {
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

// Sends the form: its page is left only once the server has the answer. `what` names the answer;
// `ready` says whether there is one; `keep` keeps it, `forget` lets go of it once it is saved, and
// `refused` is called before the server's own page says why it was not.
export function sendBySelf(form, { what, ready, keep, forget, refused }) {
  const lost = `Not saved yet: the connection is lost. Your ${what} is kept here. ` +
    "Press the button again, or wait: it is sent when the connection is back.";
  const busy = `Not saved yet: the server can't save just now. Your ${what} is kept here. ` +
    "Press the button again in a moment.";
  const status = document.getElementById("status");
  const button = form.querySelector("button");
  let sending = false;

  async function send() {
    if (sending || !ready()) return;
    sending = true;
    button.setAttribute("aria-disabled", "true");
    const answer = await post(form);
    sending = false;
    button.removeAttribute("aria-disabled");
    if (answer === "saved") {
      forget();
      location.assign(form.dataset.next);
    } else if (answer === "refused") {
      refused();
      form.submit();
    } else {
      keep();
      status.textContent = answer === "lost" ? lost : busy;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  addEventListener("online", () => { if (status.textContent === lost) send(); });
}
