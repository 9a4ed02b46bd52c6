// Draws the links of the graph's table with Cytoscape, and moves the day with a slider. The page works without it.
"use strict";

(() => {
  const form = document.getElementById("graph-form");
  const graph = document.getElementById("graph");
  if (!form || !graph || typeof cytoscape === "undefined") return;
  const slider = document.getElementById("time");
  const shownDay = document.getElementById("time-day");
  const field = document.getElementById("as_of");
  const day = 86400000;
  let drawing = null;

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const style = () => [
    { selector: "node", style: {
      "label": "data(name)", "background-color": color("--muted"), "color": color("--ink"), "font-size": 13, "width": 22,
      "height": 22, "text-valign": "bottom", "text-margin-y": 5, "text-wrap": "ellipsis", "text-max-width": 150,
      "text-background-color": color("--card"), "text-background-opacity": 0.85, "text-background-padding": 2,
      "font-family": "system-ui, sans-serif",
    } },
    { selector: "node[distance = 0]", style: { "background-color": color("--accent"), "width": 34, "height": 34, "font-weight": "bold" } },
    { selector: "node[distance = 1]", style: { "background-color": color("--accent"), "background-opacity": 0.6 } },
    { selector: "edge", style: {
      "label": "data(label)", "width": 1.5, "line-color": color("--muted"), "line-opacity": 0.55, "target-arrow-color": color("--muted"),
      "target-arrow-shape": "triangle", "curve-style": "bezier", "font-size": 11, "color": color("--muted"),
      "text-rotation": "autorotate", "text-background-color": color("--card"), "text-background-opacity": 0.85,
      "text-background-padding": 2, "text-wrap": "ellipsis", "text-max-width": 120, "font-family": "system-ui, sans-serif",
    } },
  ];

  const elements = () => [
    ...[...graph.querySelectorAll("[data-node]")].map((item, number, all) => {
      const distance = Number(item.dataset.distance);
      const angle = (2 * Math.PI * number) / all.length; // where the layout begins: the same graph is drawn in the same way
      return {
        data: {
          id: `n${item.dataset.node}`, name: item.dataset.name, distance,
          url: item.querySelector("a[data-centre]").getAttribute("href"),
        },
        position: { x: 180 * distance * Math.cos(angle), y: 120 * distance * Math.sin(angle) },
      };
    }),
    ...[...graph.querySelectorAll("tr[data-source]")].map((row, number) => ({ data: {
      id: `e${number}`, source: `n${row.dataset.source}`, target: `n${row.dataset.target}`, label: row.dataset.label,
    } })),
  ];

  const draw = () => {
    if (drawing) drawing.destroy();
    drawing = null;
    const box = graph.querySelector(".drawing");
    if (!box) return;
    box.hidden = false;
    document.getElementById("drawing-help").hidden = false;
    const few = graph.querySelectorAll("[data-node]").length <= 60;
    drawing = cytoscape({
      container: box, elements: elements(), style: style(), minZoom: 0.2, maxZoom: 3,
      layout: few
        ? { name: "cose", animate: false, randomize: false, nodeRepulsion: () => 20000, idealEdgeLength: () => 110, padding: 30, nodeDimensionsIncludeLabels: true }
        : { name: "concentric", animate: false, padding: 30, concentric: (node) => 10 - node.data("distance"), levelWidth: () => 1, nodeDimensionsIncludeLabels: true },
    });
    drawing.on("tap", "node", (event) => { window.location.assign(event.target.data("url")); });
    drawing.on("mouseover", "node", () => { box.classList.add("on-node"); });
    drawing.on("mouseout", "node", () => { box.classList.remove("on-node"); });
    document.getElementById("fit").addEventListener("click", () => drawing.fit(undefined, 30));
    box.addEventListener("pointerenter", () => drawing.resize()); // the box may have moved since
    box.dataset.nodes = drawing.nodes().length;
    window.holdfastGraph = drawing; // for tests
  };

  const toDay = (number) => new Date(number * day).toISOString().slice(0, 10);
  const toNumber = (text) => Math.round(Date.parse(`${text}T00:00:00Z`) / day);

  const setSlider = () => {
    const range = graph.querySelector("[data-first-day]");
    document.getElementById("slider").hidden = !range;
    if (!range) return;
    const last = toNumber(range.dataset.today);
    const first = Math.min(toNumber(range.dataset.firstDay), last - 1);
    const shown = field.value ? toNumber(field.value) : last;
    // The slider keeps an earlier beginning: the graph of another day may know fewer days.
    const isKept = slider.dataset.entity === form.elements.entity.value && slider.min !== "";
    slider.min = isKept ? Math.min(first, Number(slider.min)) : first;
    slider.max = Math.max(last, shown);
    slider.dataset.entity = form.elements.entity.value;
    slider.value = shown;
    showDay();
  };

  const showDay = () => {
    const text = toDay(Number(slider.value));
    shownDay.value = field.value ? text : `${text} (now)`;
    slider.setAttribute("aria-valuetext", text);
  };

  slider.addEventListener("input", () => {
    field.value = toDay(Number(slider.value));
    showDay();
  });
  document.getElementById("time-now").addEventListener("click", () => {
    field.value = "";
    form.requestSubmit();
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === graph) { setSlider(); draw(); }
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawing && drawing.style(style()));

  setSlider();
  draw();
})();
