"use strict";
// Conveniences only: the page reads the same without them.
(() => {
  const root = document.documentElement;
  const tools = document.getElementById("tools");

  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  try { theme = localStorage.getItem("isochrone-theme") || "auto"; } catch { /* no storage for this page */ }
  const button = document.createElement("button");
  button.type = "button";
  const show = () => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("isochrone-theme", theme); } catch { /* not kept, then */ }
    show();
  });
  show();
  if (tools) tools.append(button);

  const data = document.getElementById("data");
  if (tools && data) {
    const link = document.createElement("a");
    link.textContent = "Save the numbers (JSON)";
    link.download = "isochrone.json";
    link.href = URL.createObjectURL(new Blob([data.textContent], { type: "application/json" }));
    tools.append(link);
  }

  const key = (row, column) => {
    const cell = row.cells[column];
    if (!cell || cell.classList.contains("none")) return null;
    const text = cell.dataset.v === undefined ? cell.textContent : cell.dataset.v;
    return cell.classList.contains("n") ? Number(text) : text;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const sort = document.createElement("button");
      sort.type = "button";
      sort.append(...head.childNodes);
      head.append(sort);
      sort.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [key(row, column), row]);
        // Missing numbers stay last in both directions.
        rows.sort(([a], [b]) => (down && a !== null && b !== null ? compare(b, a) : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  const links = new Map([...document.querySelectorAll("nav ol a")].map((a) => [a.hash.slice(1), a]));
  if (links.size > 0 && "IntersectionObserver" in window) {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    }, { rootMargin: "0px 0px -75% 0px" });
    document.querySelectorAll("main section").forEach((section) => seen.observe(section));
  }

  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
})();
