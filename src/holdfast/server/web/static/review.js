// Keys of the review page. Each presses a button or follows a link that is on the page, so everything works without this script.
"use strict";

(() => {
  const list = document.querySelector("[data-review]");
  const undo = document.querySelector("[data-undo]");
  const cards = list ? [...list.querySelectorAll("[data-note]")] : [];
  let current = -1;

  const show = (position) => {
    if (!cards.length) return;
    current = Math.max(0, Math.min(position, cards.length - 1));
    cards[current].focus();
  };
  // Before a note has the focus, a key only shows which note it would decide.
  const press = (selector) => {
    if (current < 0) show(0);
    else cards[current]?.querySelector(selector)?.click();
  };
  const box = (card) => card.querySelector("input[type=checkbox]");

  const countSelected = () => {
    const count = cards.filter((card) => box(card)?.checked).length;
    const place = document.querySelector("[data-selected]");
    if (place) place.textContent = count ? `${count} selected` : "";
    return count;
  };
  const decideSelected = (decision) => {
    if (countSelected()) document.querySelector(`[data-bulk=${decision}]`)?.click();
  };
  const toggleHelp = () => {
    const help = document.getElementById("keys");
    if (help) help.open = !help.open;
  };

  const actions = {
    j: () => show(current + 1),
    k: () => show(current - 1),
    ArrowDown: () => show(current + 1),
    ArrowUp: () => show(current - 1),
    a: () => press("button[value=approve]"),
    r: () => press("button[value=reject]"),
    e: () => press("[data-edit]"),
    x: () => press("input[type=checkbox]"),
    A: () => decideSelected("approve"),
    R: () => decideSelected("reject"),
    u: () => undo?.click(),
    "?": toggleHelp,
  };

  document.addEventListener("focusin", (event) => {
    const card = event.target.closest("[data-note]");
    if (card) current = cards.indexOf(card);
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    const active = document.activeElement;
    if (active.matches("input:not([type=checkbox]), textarea, select") || active.isContentEditable) return;
    // An arrow scrolls a text that has the focus; it moves between notes from anywhere else.
    if (event.key.startsWith("Arrow") && active.matches("[tabindex='0']")) return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  });

  document.addEventListener("change", countSelected);
  const selectAll = document.querySelector("[data-select-all]");
  if (selectAll) {
    selectAll.hidden = false;
    selectAll.addEventListener("click", () => {
      const all = cards.every((card) => box(card).checked);
      for (const card of cards) box(card).checked = !all;
      countSelected();
    });
  }
  if (list?.dataset.review) show(Number(list.dataset.review));
})();
