"use strict";
// The page is whole without this: it only adds buttons.
(() => {
  const make = (tag, words, press) => {
    const made = document.createElement(tag);
    made.textContent = words;
    if (press) { made.type = "button"; made.addEventListener("click", press); }
    return made;
  };
  for (const command of document.querySelectorAll("pre.command")) {
    const code = command.querySelector("code");
    const button = make("button", "Copy", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent.trimEnd());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    command.append(button);
  }
  // Of a long table the first rows are shown, in whatever order they stand; on paper all of them are.
  const FOLDED_FROM = 40;
  const SHOWN_FIRST = 20;
  const folds = new Map();
  const fold = (table) => {
    const rest = make("p", "");
    rest.className = "rest";
    let open = false;
    const apply = () => {
      const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      for (const [at, row] of rows.entries()) row.classList.toggle("over", !open && at >= SHOWN_FIRST);
      rest.hidden = rows.length <= SHOWN_FIRST;
      button.textContent = open ? `Show the first ${SHOWN_FIRST} rows` : `Show all ${rows.length} rows`;
      button.setAttribute("aria-expanded", String(open));
    };
    const show = (wanted) => { open = wanted; apply(); };
    const button = make("button", "", () => show(!open));
    rest.append(button);
    table.closest(".wide").after(rest);
    folds.set(table, { apply, show });
    apply();
  };
  // A row of an overview fits where the card fits that it leads to.
  const words = (row) => {
    const link = row.cells && row.querySelector("a[href^='#']");
    const card = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return (row.textContent + (card?.matches(".relation") ? card.textContent : "")).toLowerCase();
  };
  // A field, and buttons for marks, that leave of some rows those in which the words stand.
  const filter = (tools, rows, names) => {
    const shown = make("output", "");
    const search = make("input", "");
    search.type = "search";
    search.placeholder = "Filter";
    search.setAttribute("aria-label", "Filter");
    let mark = "all";
    const apply = () => {
      const wanted = search.value.toLowerCase();
      for (const row of rows) {
        const marks = (row.dataset.mark || "").split(" ");
        const fits = (mark === "all" || marks.includes(mark)) && words(row).includes(wanted);
        row.hidden = !fits;
        // What was asked for is not left folded.
        if (fits && wanted) row.closest("details.folded")?.setAttribute("open", "");
      }
      for (const { apply } of folds.values()) apply();
      // Cards that stand under a table are those of its rows.
      const counted = rows.filter((row) => row.tagName === rows[0].tagName);
      const left = counted.filter((row) => !row.hidden).length;
      shown.textContent = left === counted.length ? "" : `${left} of ${counted.length}`;
    };
    const buttons = names.map((name) =>
      make("button", name, (event) => {
        mark = name;
        for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        apply();
      }));
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === "all"));
    search.addEventListener("input", apply);
    tools.append(...buttons, search, shown);
  };
  const filtered = new Set();
  for (const tools of document.querySelectorAll(".tools")) {
    const rows = [...document.querySelectorAll(tools.dataset.filter)];
    if (rows.length < 2) continue;
    for (const row of rows) filtered.add(row);
    filter(tools, rows, (tools.dataset.marks || "").split(" ").filter(Boolean));
  }
  // What a cell is sorted by: its number, in the smallest of its units, or its words.
  const UNITS = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50, min: 60, ms: 1e-3 };
  const key = (row, column) => {
    const words = (row.cells[column]?.textContent || "").trim();
    const found = /^([-+]?[\d,]*\.?\d+)\s*([A-Za-z]*)/.exec(words);
    const number = found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] || 1) : -Infinity;
    return { words, number };
  };
  const sort = (table, column, falls) => {
    const head = table.tHead.rows[0].cells;
    const numbers = head[column].classList.contains("n");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
    rows.sort(([one], [other]) => {
      const order = numbers ? one.number - other.number : one.words.localeCompare(other.words, undefined, { numeric: true });
      return falls ? -order : order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
    folds.get(table)?.apply();
    for (const cell of head) cell.removeAttribute("aria-sort");
    head[column].setAttribute("aria-sort", falls ? "descending" : "ascending");
  };
  const SORTED_FROM = 3;
  const FILTERED_FROM = 12;
  for (const table of document.querySelectorAll("table")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length >= FOLDED_FROM) fold(table);
    // Where an empty name means the one above it, the order of rows is a part of what they say.
    if (!table.tHead || rows.length < SORTED_FROM || rows.some((row) => row.cells[0].textContent.trim() === "")) continue;
    const head = [...table.tHead.rows[0].cells];
    const choice = make("select", "");
    choice.setAttribute("aria-label", "Sort by");
    choice.className = "by";
    choice.append(make("option", "Sort by"));
    head.forEach((cell, column) => {
      choice.append(make("option", cell.textContent));
      const button = make("button", cell.textContent, () => {
        const now = cell.getAttribute("aria-sort");
        sort(table, column, now ? now === "ascending" : cell.classList.contains("n"));
      });
      cell.replaceChildren(button);
    });
    choice.addEventListener("change", () => {
      const column = choice.selectedIndex - 1;
      if (column >= 0) sort(table, column, head[column].classList.contains("n"));
    });
    const tools = document.createElement("div");
    tools.className = "tools";
    const beside = table.closest("section")?.querySelector(":scope > .tools");
    if (rows.length >= FILTERED_FROM && !beside && !rows.some((row) => filtered.has(row))) filter(tools, rows, []);
    tools.append(choice);
    table.closest(".wide").before(tools);
  }
  // A table that is wider than the page is scrolled with the keyboard too.
  for (const wide of document.querySelectorAll(".wide")) if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
  document.addEventListener("keydown", (event) => {
    const all = [...document.querySelectorAll("input[type=search]")];
    const search = all.find((own) => own.checkVisibility()) ?? all[0];
    if (event.key !== "/" || !search || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    for (let at = search; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    search.focus();
  });
  // A link into something closed opens it.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target.closest("tr.over")) folds.get(target.closest("table"))?.show(true);
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  // A page that is served is new after a while; nobody who reads an open fold is disturbed.
  const fresh = Number(document.querySelector("meta[name=refresh]")?.content);
  const left = [...document.querySelectorAll("details[open]")];
  const renew = () => {
    const busy = [...document.querySelectorAll("details[open]")].some((own) => !left.includes(own));
    const typing = document.activeElement?.matches("input, select, textarea");
    if (!busy && !typing && !document.hidden) location.reload();
  };
  if (fresh > 0) setInterval(renew, fresh * 1000);
  // Nobody opens a fold on paper. Bytes and long lists stay as they were left.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")]
      .filter((own) => own.matches(".card") || own.textContent.length < 20000);
    for (const aside of opened) aside.open = true;
  });
  addEventListener("afterprint", () => { for (const aside of opened) aside.open = false; });
})();
