// Sorting of tables, and charts where their library is on the page; without scripts both are there as they stand.
for (const table of document.querySelectorAll("table")) {
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("n");
      const key = (row) => (numeric ? row.cells[column].dataset.value : row.cells[column].textContent);
      const body = table.tBodies[0];
      const [known, unknown] = [[], []];
      for (const row of body.rows) (key(row) === undefined ? unknown : known).push(row);
      const order = (a, b) => (numeric ? key(a) - key(b) : key(a).localeCompare(key(b), undefined, { numeric: true }));
      known.sort(down ? (a, b) => order(b, a) : order);
      body.append(...known, ...unknown);
    });
  });
}
if (window.vegaEmbed) {
  for (const plot of document.querySelectorAll(".plot")) {
    const spec = JSON.parse(plot.nextElementSibling.textContent);
    const drawn = document.createElement("div");
    window.vegaEmbed(drawn, spec, { renderer: "svg", actions: false }).then(() => {
      plot.replaceChildren(drawn);
      window.dispatchEvent(new Event("resize"));
    }, console.error);
  }
}
