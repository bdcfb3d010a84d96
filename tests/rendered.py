"""What a browser made of a page's figures: elements of the SVG and where they are, not what their source says."""

_FIGURES = """
() => {
  const problems = [];
  const box = (element) => element.getBoundingClientRect();
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    const name = plot.dataset.figure || plot.id;
    const area = box(plot.querySelector(".nsewdrag"));
    const whole = box(plot);
    const fail = (what) => problems.push(`${name}: ${what}`);
    if (area.width < 100 || area.height < 80) fail(`the axes are ${area.width} x ${area.height} px`);
    if (!plot._fullData.length) fail("no traces");
    for (const trace of plot._fullData) {
      if (trace.visible !== true) continue;
      const mine = [...plot.querySelectorAll(`[class*="${trace.uid}"]`)];
      const marks = mine.flatMap((group) => [...group.querySelectorAll("path, image")]).filter((mark) => {
        const style = getComputedStyle(mark);
        return style.display !== "none" && style.opacity !== "0" && (mark.tagName === "image" || mark.getAttribute("d"));
      });
      const layers = { heatmap: ".heatmaplayer image", bar: ".barlayer path", box: ".boxlayer path" };  // one such trace to a figure
      const others = layers[trace.type] ? [...plot.querySelectorAll(layers[trace.type])] : [];
      const shown = [...marks, ...others].map(box).filter((b) => b.width > 0 || b.height > 0);
      const drawn = shown.filter((b) => b.width >= 1 || b.height >= 1);
      if (!drawn.length) { fail(`the trace ${trace.name} (${trace.type}) draws nothing`); continue; }
      for (const b of shown) {
        if (b.right < area.left - 1 || b.left > area.right + 1 || b.bottom < area.top - 1 || b.top > area.bottom + 1) {
          fail(`the trace ${trace.name} is outside the axes`);
          break;
        }
      }
      if (trace.type === "bar") {
        const across = trace.orientation === "h";
        const longest = Math.max(...drawn.map((b) => (across ? b.width / area.width : b.height / area.height)));
        if (longest < 0.3) fail(`the longest bar is ${longest.toFixed(3)} of the axes`);
      }
    }
    const marks = [...plot.querySelectorAll("path.point")].map(box);
    if (plot._fullData.some((trace) => trace.mode === "markers") && marks.length > 2) {
      const spread = (Math.max(...marks.map((b) => b.bottom)) - Math.min(...marks.map((b) => b.top))) / area.height;
      const values = new Set(plot._fullData.filter((t) => t.visible === true).flatMap((t) => [...(t.y || [])]));
      if (values.size > 1 && spread < 0.4) fail(`all marks are squeezed into ${spread.toFixed(2)} of the height`);
    }
    const bar = plot.querySelector(".modebar-group") && box(plot.querySelector(".modebar"));
    if (bar && bar.height && bar.bottom > area.top + 1) fail("the mode bar covers the axes");
    if (whole.right > innerWidth + 1) fail("wider than the window");
  }
  return problems;
}
"""

_WIDTHS = """
() => {
  const problems = [];
  if (document.documentElement.scrollWidth > innerWidth) problems.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  for (const table of document.querySelectorAll(".scroll")) {
    if (table.scrollWidth > table.clientWidth + 1) problems.push(`cut off: the table "${table.getAttribute("aria-label")}"`);
  }
  return problems;
}
"""


def faults_of_figures(tab):
    """Traces that draw nothing or outside their axes, bars that cannot be seen, marks squeezed together, a mode bar over the marks."""
    return tab.evaluate(_FIGURES)


def faults_of_width(tab):
    """What is wider than the window, and tables that are cut off."""
    return tab.evaluate(_WIDTHS)
