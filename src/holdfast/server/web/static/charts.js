// Draw every <table data-chart> with uPlot and fold the table, which is the data, into a <details> below the chart.
// The first column is the time: <td data-x="SECONDS SINCE 1970">, in UTC. Each other column is a series, named by its <th>.
"use strict";

(() => {
  const COLORS = ["--accent", "--warn", "--good", "--bad", "--muted"];
  const DASHES = [[], [6, 4], [2, 3], [10, 4, 2, 4], [1, 2]];
  const HEIGHT = 240;
  let drawn = [];
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const read = (table) => {
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells]);
    rows.sort((one, other) => one[0].dataset.x - other[0].dataset.x);
    const number = (cell) => {
      const text = cell.textContent.replaceAll(",", "").trim();
      return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
    };
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const columns = names.map((_, at) => rows.map((row) => (at ? number(row[at]) : Number(row[0].dataset.x))));
    return { names, columns };
  };

  // Times as elsewhere in the console: days as 11-18, hours as 19:20, and seconds only where they differ.
  const formatTimes = (all) => {
    const step = all.length > 1 ? all[1] - all[0] : 86400;
    const [from, to] = step >= 86400 ? [5, 10] : [11, step >= 60 ? 16 : 19];
    return all.map((one) => new Date(one * 1e3).toISOString().slice(from, to));
  };

  const options = (table, names, width) => {
    const unit = table.dataset.unit ? ` ${table.dataset.unit}` : "";
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
    return {
      width, height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.1)] } },
      axes: [{ ...axis, values: (_, all) => formatTimes(all) }, { ...axis, size: 60, values: (_, all) => all.map((one) => one.toLocaleString("en")) }],
      series: [
        { label: names[0], value: (_, x) => (x === null ? "–" : new Date(x * 1e3).toISOString().slice(0, 19).replace("T", " ").replace(" 00:00:00", "")) },
        ...names.slice(1).map((label, at) => ({
          label, stroke: color(COLORS[at % COLORS.length]), dash: DASHES[at % DASHES.length], width: 2,
          value: (_, y) => (y === null ? "–" : `${y.toLocaleString("en")}${unit}`),
        })),
      ],
    };
  };

  const draw = (table) => {
    const { names, columns } = read(table);
    if (!columns[0].length) return;
    const box = document.createElement("div");
    box.className = "chart";
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `Chart: ${table.caption?.textContent.trim() || names.join(", ")}. The table below has the numbers.`);
    const fold = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Show the numbers";
    const place = table.closest(".scroll") ?? table;
    place.before(box, fold);
    fold.append(summary, place);
    let chart = null;
    const paint = () => {
      chart?.destroy();
      chart = new uPlot(options(table, names, box.clientWidth), columns, box);
    };
    paint();
    new ResizeObserver(() => {
      if (box.clientWidth && chart.width !== box.clientWidth) chart.setSize({ width: box.clientWidth, height: HEIGHT });
    }).observe(box);
    drawn.push({ box, paint, destroy: () => chart.destroy() });
  };

  const drawAll = () => document.querySelectorAll("table[data-chart]").forEach(draw);
  const removeOld = () => {
    for (const one of drawn) if (!one.box.isConnected) one.destroy();
    drawn = drawn.filter((one) => one.box.isConnected);
  };

  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((one) => one.paint()));
  // While the event is captured: scripts that listen at the part itself find the charts drawn.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!event.target.querySelector("table[data-chart]")) return;
    removeOld();
    drawAll();
  }, true);
})();
