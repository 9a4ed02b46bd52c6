// The console's own script: everything it does also works without it, by plain links and forms.
"use strict";

(() => {
  // A one-time link signs in with a form, so that the browser keeps the session as one that this site began.
  document.querySelector("form[data-send-at-once]")?.submit();

  // On a phone the navigation is a row that scrolls: show the current page in it.
  const current = document.querySelector(".bar nav [aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.offsetLeft - 40;

  const form = document.querySelector("form[data-keyboard-list]");
  if (!form) return;
  const field = form.querySelector("input[type=search]");
  const list = document.querySelector(form.dataset.keyboardList);
  const links = () => [...list.querySelectorAll("a[data-hit]")];

  const move = (step) => {
    const all = links();
    if (!all.length) return;
    const next = all.indexOf(document.activeElement) + step;
    if (next < 0) field.focus();
    else all[Math.min(next, all.length - 1)].focus();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const active = document.activeElement;
    const inList = active === field || links().includes(active);
    if (event.key === "ArrowDown" && inList) move(1);
    else if (event.key === "ArrowUp" && inList && active !== field) move(-1);
    else if (event.key === "/" && !active.matches("input, textarea, select")) field.focus();
    else if (event.key === "Escape" && inList && active !== field) field.focus();
    else return;
    event.preventDefault();
  });
})();
