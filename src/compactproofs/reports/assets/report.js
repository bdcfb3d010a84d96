"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

  function styled(layout) {
    const style = getComputedStyle(document.documentElement);
    const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
    const axis = { gridcolor: line, zerolinecolor: line, automargin: true };
    return {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 12 },
      xaxis: { ...axis, ...layout.xaxis },
      yaxis: { ...axis, ...layout.yaxis },
    };
  }

  function draw(element, figure) {
    return Plotly.react(element, figure.data, styled(figure.layout), options);
  }

  // Figures are drawn when they come near the window, so that the page opens at once.
  const drawn = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) {
        drawn.add(entry.target);
        draw(entry.target, data.figures[entry.target.dataset.figure]);
      }
    }
  }, { rootMargin: "300px" });
  document.querySelectorAll("[data-figure]").forEach((element) => seen.observe(element));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("[data-figure]").forEach((element) => draw(element, data.figures[element.dataset.figure]));
  });

  const explorer = data.explorer && new Explorer(data.explorer);
  dark.addEventListener("change", () => {
    drawn.forEach((element) => draw(element, data.figures[element.dataset.figure]));
    if (explorer) explorer.show();
  });

  function Explorer(found) {
    const [map, harm, details] = ["map", "harm", "details"].map((id) => document.getElementById(id));
    const [strategy, label, query] = ["strategy", "label", "query"].map((id) => document.getElementById(id));
    const size = found.harms.length;

    function drawMap() {
      const certified = found.strategies[strategy.value].certified;
      const z = certified.map((row) => [...row, ...Array(size - row.length).fill(null)]);
      const data = [{
        type: "heatmap", z, zmin: 0, zmax: 1, colorscale: "Cividis", colorbar: { thickness: 12 }, hoverongaps: false,
        hovertemplate: "label %{y}, query %{x}<br>%{z:.6f} of its sequences are proven<extra></extra>",
      }];
      const mark = { type: "rect", x0: +query.value - 0.5, x1: +query.value + 0.5, y0: +label.value - 0.5, y1: +label.value + 0.5 };
      const layout = {
        xaxis: { title: { text: "query: last token" } }, yaxis: { title: { text: "label: largest token" } },
        margin: { l: 60, r: 10, t: 10, b: 50 }, shapes: [{ ...mark, line: { color: "#e41a1c", width: 2 } }],
      };
      Plotly.react(map, data, styled(layout), options);
    }

    function drawHarms(m, q) {
      const harms = found.harms[m][q];
      const data = [{
        type: "bar", x: harms.map((_, t) => t), y: harms, marker: { color: harms.map((x) => (x > 0 ? "#b2182b" : "#2166ac")) },
        hovertemplate: "token %{x}<br>harm %{y}<extra></extra>",
      }];
      const layout = { xaxis: { title: { text: "token" } }, yaxis: { title: { text: "harm" } }, margin: { l: 60, r: 10, t: 10, b: 50 } };
      Plotly.react(harm, data, styled(layout), options);
    }

    function item(term, text) {
      return `<dt>${term}</dt><dd>${text}</dd>`;
    }

    function describe(m, q) {
      const share = found.strategies[strategy.value].certified[m][q];
      const harms = found.harms[m][q];
      const worst = harms.map((x, t) => [x, t]).filter(([, t]) => t !== m).sort((a, b) => b[0] - a[0]).slice(0, 5);
      const chosen = found.strategies[strategy.value];
      const sequences = [
        ["hardest sequence", found.examples[m][q], found.examples_right[m][q]],
        ["not proven, for example", chosen.examples ? chosen.examples[m][q] : [], chosen.examples ? chosen.examples_right[m][q] : -1],
      ];
      const rows = [
        item("proven", `${(100 * share).toFixed(4)} % of the sequences with label ${m} and query ${q}`),
        item("most harmful", worst.length ? worst.map(([x, t]) => `${t} (${x})`).join(", ") : "no other token can occur"),
        item("the label", `takes off ${harms.length ? -harms[m] : "-"} a copy, at its worst position`),
        item("budget", `${found.budget[m][q]}: the harms of the other ${found.n_ctx - 1} tokens must add up to less`),
        item("nearest rival", found.output[m][q] < 0 ? "none" : `output ${found.output[m][q]}`),
      ];
      for (const [term, sequence, right] of sequences) {
        if (right >= 0) rows.push(item(term, `${sequence.join(" ")}: the model gets it ${right ? "right" : "wrong"}`));
      }
      details.innerHTML = `<dl>${rows.join("")}</dl>`;
    }

    this.show = () => {
      const m = Math.min(Math.max(Math.round(+label.value) || 0, 0), size - 1);
      const q = Math.min(Math.max(Math.round(+query.value) || 0, 0), m);
      label.value = m;
      query.value = q;
      drawMap();
      drawHarms(m, q);
      describe(m, q);
    };
    function worstCell() {
      let worst = [size - 1, Math.floor(size / 2), 0];
      found.strategies[strategy.value].lost.forEach((row, m) => row.forEach((x, q) => { if (x > worst[2]) worst = [m, q, x]; }));
      [label.value, query.value] = worst;
    }

    worstCell();
    [strategy, label, query].forEach((input) => input.addEventListener("change", this.show));
    this.show();
    map.on("plotly_click", (event) => {
      label.value = event.points[0].y;
      query.value = event.points[0].x;
      this.show();
    });
  }
})();
