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
  for (const tools of document.querySelectorAll(".tools")) {
    const rows = [...document.querySelectorAll(tools.dataset.filter)];
    if (rows.length < 2) continue;
    const shown = make("output", "");
    const search = make("input", "");
    search.type = "search";
    search.placeholder = "Filter";
    search.setAttribute("aria-label", "Filter");
    let mark = "all";
    const apply = () => {
      const wanted = search.value.toLowerCase();
      let count = 0;
      for (const row of rows) {
        const marks = (row.dataset.mark || "").split(" ");
        const fits = (mark === "all" || marks.includes(mark)) && row.textContent.toLowerCase().includes(wanted);
        row.hidden = !fits;
        if (fits) count += 1;
        // What was asked for is not left folded.
        if (fits && wanted) row.closest("details.folded")?.setAttribute("open", "");
      }
      shown.textContent = count === rows.length ? "" : `${count} of ${rows.length}`;
    };
    const buttons = (tools.dataset.marks || "").split(" ").filter(Boolean).map((name) =>
      make("button", name, (event) => {
        mark = name;
        for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        apply();
      }));
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === "all"));
    search.addEventListener("input", apply);
    tools.append(...buttons, search, shown);
  }
  // A link into something closed opens it.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  addEventListener("beforeprint", () => {
    for (const closed of document.querySelectorAll("details:not(.page):not([open])")) closed.open = true;
  });
})();
