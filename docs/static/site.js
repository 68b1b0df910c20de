// Regions that scroll can be reached with the keyboard, side bars have names, and commands can be
// copied without their prompts and output.
"use strict";

const PROMPT = /^(\$|>>>|\.\.\.) /;

/** What a reader would type: lines with a prompt and those they go on in, or all if none has one. */
function typed(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  if (!lines.some((line) => PROMPT.test(line))) return lines.join("\n");
  const chosen = [];
  let goesOn = false;
  for (const line of lines) {
    if (goesOn || PROMPT.test(line)) {
      chosen.push(line.replace(PROMPT, ""));
      goesOn = line.endsWith("\\");
    }
  }
  return chosen.join("\n");
}

function addCopyButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(typed(block.querySelector("pre").textContent));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.append(button);
}

document.addEventListener("DOMContentLoaded", () => {
  for (const region of document.querySelectorAll(".highlight pre, .table-wrapper")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Site");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "This page");
  if (navigator.clipboard) document.querySelectorAll("div.highlight").forEach(addCopyButton);
});
