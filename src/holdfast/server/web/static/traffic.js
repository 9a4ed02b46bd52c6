// Keep the place, the focus and the open tables when htmx replaces the figures, and do not ask while the page is hidden.
"use strict";

(() => {
  const part = document.getElementById("traffic");
  const tables = () => part.querySelectorAll(".traffic-table");
  const known = new Map();

  part.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden) event.preventDefault();
  });
  part.addEventListener("htmx:beforeSwap", () => {
    for (const table of tables()) {
      const isOpen = table.closest("details")?.open ?? false;
      known.set(table.id, { place: table.scrollTop, isOpen, hasFocus: table === document.activeElement });
    }
  });
  part.addEventListener("htmx:afterSwap", () => {
    for (const table of tables()) {
      const { place = 0, isOpen = false, hasFocus = false } = known.get(table.id) ?? {};
      const fold = table.closest("details");
      if (fold) fold.open = isOpen;
      table.scrollTop = place;
      if (hasFocus) table.focus({ preventScroll: true });
    }
  });
})();
