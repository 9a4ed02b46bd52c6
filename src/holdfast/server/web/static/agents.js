// Copy the token that this page shows; without scripts it can be selected and copied.
"use strict";

(() => {
  const button = document.querySelector("button[data-copy]");
  if (!button) return;
  const field = document.getElementById(button.dataset.copy);
  const said = document.querySelector("[data-copied]");
  button.hidden = false;
  field.addEventListener("focus", () => field.select());
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "Selected: copy it with Ctrl-C.";
    }
  });
})();
