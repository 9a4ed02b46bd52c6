// Keep the place in a table when htmx replaces it, and do not ask while the page is hidden.
"use strict";

(() => {
  const part = document.getElementById("traffic");
  const places = new Map();

  part.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden) event.preventDefault();
  });
  part.addEventListener("htmx:beforeSwap", () => {
    for (const table of part.querySelectorAll(".traffic-table")) places.set(table.id, table.scrollTop);
  });
  part.addEventListener("htmx:afterSwap", () => {
    for (const table of part.querySelectorAll(".traffic-table")) table.scrollTop = places.get(table.id) ?? 0;
  });
})();
