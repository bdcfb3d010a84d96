"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"] };

  function styled(layout) {
    const style = getComputedStyle(document.documentElement);
    const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
    const axis = { gridcolor: line, zerolinecolor: line, automargin: true, exponentformat: "power" };
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
        draw(entry.target, data.figures[entry.target.dataset.figure]).then(linked);
      }
    }
  }, { rootMargin: "300px" });
  document.querySelectorAll("[data-figure]").forEach((element) => seen.observe(element));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("[data-figure]").forEach((element) => draw(element, data.figures[element.dataset.figure]));
  });

  // A point of a model leads to its row.
  const rows = data.rows || {};
  function linked(element) {
    element.on("plotly_click", (event) => {
      const row = rows[event.points[0].text] && document.getElementById(rows[event.points[0].text]);
      if (row) row.scrollIntoView({ block: "center" });
      if (row) row.focus({ preventScroll: true });
    });
  }

  const explorer = data.explorer && new Explorer(data.explorer);
  const ledger = data.ledger && new Ledger(data.ledger);
  dark.addEventListener("change", () => {
    if (ledger) ledger.show();
    drawn.forEach((element) => draw(element, data.figures[element.dataset.figure]));
    if (explorer) explorer.show();
  });

  // The blocks of the best threshold proof. All that is written here is numbers and words of our own.
  function Ledger(found) {
    const [map, block, details] = ["blocks", "block", "block-details"].map((id) => document.getElementById(id));
    const share = (x) => (x ? `${(100 * x).toPrecision(3)} %` : "nothing");
    const some = (xs, number) => xs.join(", ") + (number > xs.length ? ` and ${number - xs.length} more` : "");
    const name = (b) => `label ${b.label}, ${b.queries.length > 1 ? "queries" : "query"} ${some(b.queries.slice(0, 6), b.queries.length)}`;
    found.blocks.forEach((b, number) => block.add(new Option(`${name(b)}: ${share(b.left)} left`, number)));

    function drawMap() {
      const chosen = found.blocks[+block.value];
      const cells = found.blocks.flatMap((b, number) => b.queries.map((q) => ({ q, b, number })));
      const height = (b) => (b.left ? Math.log10(b.left) : null);
      const least = Math.min(...cells.map(({ b }) => height(b) ?? 0), -1);
      const most = Math.max(...cells.map(({ b }) => height(b) ?? least), least);
      const data = [{
        type: "scatter", mode: "markers", x: cells.map(({ q }) => q), y: cells.map(({ b }) => b.label),
        customdata: cells.map(({ number }) => number), text: cells.map(({ b }) => `${name(b)}<br>${share(b.left)} of all left`),
        hovertemplate: "%{text}<extra></extra>",
        marker: {
          symbol: "square", size: 5, color: cells.map(({ b }) => height(b) ?? least - 1), cmin: least - 1, cmax: most, colorscale: "YlOrRd",
          reversescale: true, colorbar: { thickness: 12, title: { text: "10^" } },
        },
      }, {
        type: "scatter", mode: "markers", x: chosen.queries, y: chosen.queries.map(() => chosen.label), hoverinfo: "skip", showlegend: false,
        marker: { symbol: "square-open", size: 12, color: "#0072b2", line: { width: 2 } },
      }];
      const layout = {
        xaxis: { title: { text: "query: last token" } }, yaxis: { title: { text: "label: right output" } }, hovermode: "closest",
        margin: { l: 60, r: 10, t: 36, b: 50 }, showlegend: false,
      };
      return Plotly.react(map, data, styled(layout), options);
    }

    function term(t) {
      const about = t.kind === "factored" ? "every output" : `output${t.number > 1 ? "s" : ""} ${some(t.outputs, t.number)}`;
      const harmful = t.harmful.map(([token, harm]) => `${token} (${harm})`).join(", ") || "none";
      return `<li>${t.kind}, covers ${about}: counts ${share(t.counted)} of all; tokens that harm, the worst first: ${harmful}</li>`;
    }

    function leaf(l) {
      const when = l.when.map(([token, copies, more]) => (
        more ? `${token} occurs${copies > 1 ? ` at least ${copies} times` : ""}` : copies > 1 ? `${token} occurs fewer than ${copies} times` : `no ${token}`
      )).join(", ") || "all its sequences";
      const rest = found.outputs - 1 - l.covered;
      const fate = {
        "given up": "<li>given up: all of it counts as failing</li>",
        refused: "<li>an output is neither covered nor harmless: all of it counts as failing</li>",
        counted: `<li>${rest} other output${rest === 1 ? "" : "s"} shown harmless</li>`,
      }[l.fate] || "";
      const listed = l.listed ? `<li>${l.listed} sequence${l.listed === 1 ? "" : "s"} that the terms count decided one by one, and taken off if right</li>` : "";
      const answer = ["the model gets it wrong", "the model gets it right", "not decided here"][l.answer < 0 ? 2 : l.answer];
      const hardest = l.hardest ? `<li>${l.answer === 0 ? "a failing input" : "hardest input"}: ${l.hardest.join(" ")} (${answer})</li>` : "";
      return `<h4>${when}</h4><ul><li>${share(l.mass)} of all sequences; left: ${share(l.left)}</li>${fate}${l.terms.map(term).join("")}${listed}${hardest}</ul>`;
    }

    this.show = () => {
      const b = found.blocks[+block.value];
      const hidden = b.number - b.leaves.length;
      const more = hidden > 0 ? `<p>${hidden} classes that leave less are not shown.</p>` : "";
      details.innerHTML = `<h3>${name(b)}</h3><p>${share(b.mass)} of all sequences, in ${b.number} class${b.number === 1 ? "" : "es"}; `
        + `left: ${share(b.left)} of all.</p>${b.leaves.map(leaf).join("")}${more}`;
      return drawMap();
    };
    block.addEventListener("change", this.show);
    this.show();
    map.on("plotly_click", (event) => {
      const number = event.points[0].customdata;
      if (number === undefined) return;
      block.value = number;
      this.show();
    });
  }

  function Explorer(found) {
    const [map, harm, details] = ["map", "harm", "details"].map((id) => document.getElementById(id));
    const [strategy, label, query] = ["strategy", "label", "query"].map((id) => document.getElementById(id));
    const corrected = document.getElementById("corrected");
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
        margin: { l: 60, r: 10, t: 36, b: 50 }, shapes: [{ ...mark, line: { color: "#e41a1c", width: 2 } }],
      };
      Plotly.react(map, data, styled(layout), options);
    }

    function drawHarms(m, q) {
      const harms = found.harms[m][q];
      const data = [{
        type: "bar", x: harms.map((_, t) => t), y: harms, marker: { color: harms.map((x) => (x > 0 ? "#b2182b" : "#2166ac")) },
        hovertemplate: "token %{x}<br>harm %{y}<extra></extra>",
      }];
      const layout = { xaxis: { title: { text: "token" } }, yaxis: { title: { text: "harm" } }, margin: { l: 60, r: 10, t: 36, b: 50 } };
      Plotly.react(harm, data, styled(layout), options);
    }

    function item(term, text) {
      return `<dt>${term}</dt><dd>${text}</dd>`;
    }

    // A sequence is right if the harms of its tokens add up to less than zero; the last token's is known.
    function room(budget, q, m) {
      const others = found.n_ctx === 2 ? "the other token" : `the other ${found.n_ctx - 1} tokens together`;
      const label = q === m ? "" : ` (one of them is ${m})`;
      return budget > 0
        ? `with ${q} last, the model is right as long as ${others}${label} harm by less than ${budget}`
        : `${q} as the last token harms by ${-budget} itself: the model is right only if ${others}${label} take off more than that`;
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
        item("the label", harms.length ? `a copy of ${m} takes off ${-harms[m]} where it helps least` : "-"),
        item("room for harm", room(found.budget[m][q], q, m)),
        item("nearest rival", found.output[m][q] < 0 ? "none" : `output ${found.output[m][q]}`),
      ];
      for (const [term, sequence, right] of sequences) {
        if (right >= 0) rows.push(item(term, `${sequence.join(" ")}: the model gets it ${right ? "right" : "wrong"}`));
      }
      details.innerHTML = `<dl>${rows.join("")}</dl>`;
    }

    function notes(m, q) {
      const said = [];
      if (label.value === "" || +label.value !== m) said.push(`Labels are whole numbers from 0 to ${size - 1}: shown is ${m}.`);
      if (+query.value > m) said.push(`The label is the largest token, so no sequence of label ${m} ends in ${query.value}: shown is query ${q}.`);
      else if (query.value === "" || +query.value !== q) said.push(`Queries are whole numbers from 0 to the label: shown is ${q}.`);
      return said;
    }

    this.show = () => {
      const m = Math.min(Math.max(Math.round(+label.value) || 0, 0), size - 1);
      const q = Math.min(Math.max(Math.round(+query.value) || 0, 0), m);
      corrected.textContent = notes(m, q).join(" ");
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
