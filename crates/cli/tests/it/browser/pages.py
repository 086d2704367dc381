"""Drives the reports of a directory in Chromium, as a reader does: argument 1 is the directory.

Each page is loaded once and everything is tried on it; what does not hold is printed, a line each,
and the exit code is 1. The last line counts what was tried, so that a test can ask whether it was.
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

from playwright.sync_api import sync_playwright

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
# A4 without the margins of the page, in CSS pixels.
PAPER = {"width": 703, "height": 1017}
# Two lines of small letters and their padding: what of a phone's screen the head may take.
HEAD_MAX = 64
# WCAG's level AA for text.
CONTRAST_MIN = 4.5
# Of a page with more links or stops these many are tried; that links have a target is asked of all.
LINKS_TRIED = 12
STOPS_TRIED = 25
TABLES_TRIED = 3

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "min": 60, "ms": 1e-3}

LINKS_WITHOUT_TARGET = """() => [...document.querySelectorAll('a[href^="#"]')]
  .map((link) => link.getAttribute("href").slice(1))
  .filter((place) => !document.getElementById(decodeURIComponent(place)))"""

TWICE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((own) => own.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at);
}"""

# Goes where the link leads, and says what of the target is not in sight below the head.
FOLLOW = """async (link) => {
  for (const own of document.querySelectorAll("details")) own.open = false;
  scrollTo(0, 0);
  history.replaceState(null, "", location.pathname);
  await new Promise((done) => { addEventListener("hashchange", () => requestAnimationFrame(() => requestAnimationFrame(done)), { once: true }); location.hash = link; });
  const target = document.getElementById(decodeURIComponent(link.slice(1)));
  const box = target.getBoundingClientRect();
  const head = document.querySelector(".top").getBoundingClientRect().bottom;
  if (!target.checkVisibility()) return "is not visible";
  if (box.bottom <= head - 1) return `ends at ${box.bottom}, under the head, which ends at ${head}`;
  if (box.top < head - 1 && box.height > 0) return `begins at ${box.top}, under the head, which ends at ${head}`;
  if (box.top > innerHeight) return `begins at ${box.top}, below the screen`;
  return null;
}"""

FOCUSED = """() => {
  const own = document.activeElement;
  if (!own || own === document.body) return null;
  const box = own.getBoundingClientRect();
  const head = document.querySelector(".top");
  const under = head && !head.contains(own) ? head.getBoundingClientRect().bottom : 0;
  const style = getComputedStyle(own);
  const wrong = [];
  if (!own.checkVisibility({ visibilityProperty: true, opacityProperty: true })) wrong.push("is not visible");
  if (box.width === 0 || box.height === 0) wrong.push("has no size");
  if (box.bottom <= under || box.top >= innerHeight) wrong.push(`is out of sight, from ${box.top} to ${box.bottom}`);
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) === 0) wrong.push("shows no focus");
  return { name: `${own.tagName.toLowerCase()} ${(own.textContent || own.getAttribute("aria-label") || "").trim().slice(0, 40)}`, wrong };
}"""

# Whatever reaches beyond the page, apart from what scrolls in itself.
TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = (own) => { for (let at = own.parentElement; at; at = at.parentElement) if (["auto", "scroll", "hidden"].includes(getComputedStyle(at).overflowX)) return true; return false; };
  const wide = [...document.querySelectorAll("body *")].filter((own) => own.getBoundingClientRect().right > width + 1 && !scrolls(own));
  const deepest = wide.filter((own) => !wide.some((other) => other !== own && own.contains(other))).slice(0, 3);
  const names = deepest.map((own) => `${own.tagName.toLowerCase()}.${own.getAttribute("class") || ""} ${own.textContent.trim().slice(0, 50)}`);
  return names.length > 0 ? names : [`the page has ${document.documentElement.scrollWidth} of ${width} pixels`];
}"""

# Words whose colour is too close to that of their ground.
TOO_FAINT = """(least) => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const seen = new Map();
  const rgba = (colour) => {
    if (!seen.has(colour)) {
      paint.clearRect(0, 0, 1, 1);
      paint.fillStyle = colour;
      paint.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
      seen.set(colour, [r, g, b, a / 255]);
    }
    return seen.get(colour);
  };
  const over = (top, ground) => [0, 1, 2].map((at) => top[at] * top[3] + ground[at] * (1 - top[3]));
  const light = (colour) => {
    const [r, g, b] = colour.map((own) => { const part = own / 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const grounds = new Map();
  const ground = (own) => {
    if (!own) return rgba(getComputedStyle(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#ffffff").slice(0, 3);
    if (!grounds.has(own)) {
      const colour = rgba(getComputedStyle(own).backgroundColor);
      grounds.set(own, colour[3] === 1 ? colour.slice(0, 3) : over(colour, ground(own.parentElement)));
    }
    return grounds.get(own);
  };
  const faint = new Map();
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const own = words.currentNode.parentElement;
    if (!words.currentNode.textContent.trim() || own.closest("svg, script, style, .here") || !own.checkVisibility()) continue;
    const below = ground(own);
    const [one, other] = [light(over(rgba(getComputedStyle(own).color), below)), light(below)];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < least) faint.set(`${own.tagName.toLowerCase()}.${own.getAttribute("class") || ""}`, `${contrast.toFixed(2)}: ${words.currentNode.textContent.trim().slice(0, 40)}`);
  }
  return [...faint].map(([name, words]) => `${name} has a contrast of ${words}`);
}"""

# The cells of a column as they stand, and after each of two presses, with the order announced.
SORT_TWICE = """([table, column]) => {
  const own = document.querySelectorAll("table")[table];
  const head = own.tHead.rows[0].cells[column];
  const cells = () => [...own.tBodies[0].rows].map((row) => (row.cells[column]?.textContent || "").trim());
  const press = () => { head.querySelector("button").click(); return [head.getAttribute("aria-sort"), cells()]; };
  return [cells(), press(), press()];
}"""

SORTED_TABLES = """() => [...document.querySelectorAll("table")].flatMap((table, at) =>
  table.tHead?.rows[0].querySelector("th button") ? [[at, [...table.tHead.rows[0].cells].map((cell) => cell.classList.contains("n"))]] : [])"""

# Which rows a filter leaves, and what each says.
SHOWN = """(tools) => {
  const own = document.querySelectorAll(".tools")[tools];
  const rows = own.dataset.filter ? [...document.querySelectorAll(own.dataset.filter)] : [...own.nextElementSibling.querySelectorAll("tbody tr")];
  // A row of an overview has the words of the card that it leads to, and cards are not counted then.
  const card = (row) => row.cells && document.querySelector(`.relation[id="${row.querySelector("a[href^='#']")?.hash.slice(1)}"]`);
  const text = (row) => (row.textContent + (card(row)?.textContent || "")).toLowerCase();
  return rows.map((row) => [!row.hidden, text(row), row.dataset.mark || "", row.tagName === rows[0].tagName]);
}"""


class Ward:
    """What was tried, and what did not hold."""

    def __init__(self):
        self.wrong = []
        self.tried = dict.fromkeys(
            ["pages", "links", "reports", "sorts", "filters", "folds", "stops", "widths", "colours"], 0
        )

    def hold(self, holds, page, words):
        if not holds:
            self.wrong.append(f"{page}: {words}")

    def count(self, what, number=1):
        self.tried[what] += number


def number(cell):
    """The number that a cell begins with, in the smallest of its units."""
    found = re.match(r"([-+]?[\d,]*\.?\d+)\s*([A-Za-z]*)", cell)
    if not found:
        return float("-inf")
    return float(found[1].replace(",", "")) * UNITS.get(found[2], 1)


def follow_links(page, name, ward):
    for place in page.evaluate(LINKS_WITHOUT_TARGET):
        ward.hold(False, name, f"a link leads to {place}, which is nowhere")
    for place in page.evaluate(TWICE):
        ward.hold(False, name, f"{place} is the place of two things")
    links = page.evaluate(
        """() => [...new Set([...document.querySelectorAll('a[href^="#"]')].map((link) => link.getAttribute("href")))]"""
    )
    step = max(1, len(links) // LINKS_TRIED)
    for link in links[::step][: LINKS_TRIED + 1]:
        wrong = page.evaluate(FOLLOW, link)
        ward.hold(wrong is None, name, f"{link} {wrong}")
        ward.count("links")


def sort_tables(page, name, ward):
    for table, numeric in page.evaluate(SORTED_TABLES)[:TABLES_TRIED]:
        for column, is_number in enumerate(numeric):
            before, *sorts = page.evaluate(SORT_TWICE, [table, column])
            for order, cells in sorts:
                place = f"table {table}, column {column}, {order}"
                ward.hold(order in ("ascending", "descending"), name, f"{place}: no order is announced")
                ward.hold(sorted(cells) == sorted(before), name, f"{place}: rows were lost")
                if is_number:
                    keys = [number(cell) for cell in cells]
                    ward.hold(keys == sorted(keys, reverse=order == "descending"), name, f"{place}: {cells[:8]}")
                ward.count("sorts")
            ward.hold(sorts[0][0] != sorts[1][0], name, f"table {table}, column {column}: always {sorts[0][0]}")


# What is one click away is opened first.
OPEN = """(own) => {
  for (let at = own.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
}"""


def use_filters(page, name, ward):
    for at in range(page.locator(".tools").count()):
        tools = page.locator(".tools").nth(at)
        if tools.locator("input[type=search]").count() == 0:
            continue
        field = tools.locator("input[type=search]")
        tools.evaluate(OPEN)
        everything = page.evaluate(SHOWN, at)
        words = re.findall(r"[a-z_0-9.]{4,}", everything[-1][1]) or ["zzzz"]
        for wanted in (words[0], "no row says this"):
            field.fill(wanted)
            left = page.evaluate(SHOWN, at)
            for shown, text, _, _ in left:
                ward.hold(shown == (wanted in text), name, f"filter {at}, {wanted}: {shown} for {text[:60]}")
            said = tools.locator("output").text_content()
            counted = [shown for shown, _, _, is_counted in left if is_counted]
            whole = all(counted)
            ward.hold(said == ("" if whole else f"{sum(counted)} of {len(counted)}"), name, f"filter {at} says {said}")
            ward.count("filters")
        field.fill("")
        for button in tools.locator("button").all():
            mark = button.text_content()
            button.click()
            for shown, text, marks, _ in page.evaluate(SHOWN, at):
                fits = mark == "all" or mark in marks.split()
                ward.hold(fits or not shown, name, f"button {mark} leaves {text[:60]}")
            ward.hold(button.get_attribute("aria-pressed") == "true", name, f"{mark} is not pressed")
            ward.count("filters")
        for button in tools.locator("button").all()[:1]:
            button.click()


def use_the_keyboard(page, name, ward):
    page.evaluate("() => { for (const own of document.querySelectorAll('details')) own.open = false; scrollTo(0, 0); document.activeElement.blur(); }")
    for at in range(STOPS_TRIED):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop is None:
            break
        for wrong in stop["wrong"]:
            ward.hold(False, name, f"stop {at}, {stop['name']}, {wrong}")
        ward.count("stops")
    folds = page.locator("summary")
    for at in range(min(folds.count(), 5)):
        fold = folds.nth(at)
        if not fold.is_visible():
            continue
        is_open = "(own) => own.parentElement.open"
        before = fold.evaluate(is_open)
        fold.focus()
        page.keyboard.press("Enter")
        ward.hold(fold.evaluate(is_open) != before, name, f"Enter does not move {fold.text_content()[:40]}")
        ward.count("folds")
    if page.locator("input[type=search]").count() > 0:
        page.evaluate("() => document.activeElement.blur()")
        page.keyboard.press("/")
        focused = page.evaluate("() => document.activeElement.type")
        ward.hold(focused == "search", name, f"/ leads to {focused}, not to the filter")


def press_copy(page, name, ward):
    button = page.locator("pre.command button").first
    if button.count() > 0:
        button.click()
        page.wait_for_function("(own) => own.textContent !== 'Copy'", arg=button.element_handle())
        ward.hold(button.text_content() in ("Copied", "Selected"), name, "nothing was copied")


def look_at_widths(page, name, ward):
    for size, words in ((PHONE, "on a phone"), (PAPER, "on paper")):
        page.set_viewport_size(size)
        page.emulate_media(media="print" if size is PAPER else "screen")
        for folds in ("false", "true"):
            page.evaluate(f"() => {{ for (const own of document.querySelectorAll('details')) own.open = {folds}; }}")
            for wide in page.evaluate(TOO_WIDE):
                ward.hold(False, name, f"wider than the page {words}: {wide}")
            ward.count("widths")
        if size is PHONE:
            head = page.evaluate("() => document.querySelector('.top').getBoundingClientRect().height")
            ward.hold(head <= HEAD_MAX, name, f"the head takes {head} pixels of a phone")
    page.set_viewport_size(DESK)
    page.emulate_media(media="screen")


def look_at_colours(page, name, ward):
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for faint in page.evaluate(TOO_FAINT, CONTRAST_MIN):
            ward.hold(False, name, f"{scheme}: {faint}")
        ward.count("colours")


def to_other_reports(page, name, ward):
    links = page.locator("main a[href$='.html']")
    leads = page.evaluate("() => [...document.querySelectorAll('main a[href$=\".html\"]')].map((link) => link.getAttribute('href'))")
    for lead in leads:
        target = page_path(page).parent / unquote(lead)
        ward.hold(target.is_file(), name, f"a link leads to {lead}, which is no file")
    for at in range(min(links.count(), 1)):
        link = links.nth(at)
        title = link.evaluate("(own) => own.parentElement.textContent")
        link.click()
        ward.hold(page.title() in title, name, f"{title} leads to {page.title()}")
        ward.hold(page.locator("h1").count() >= 1, name, f"{title} leads to no report")
        page.go_back()
        ward.count("reports")


def page_path(page):
    return Path(unquote(urlparse(page.url).path))


def without_script(page, path, name, ward):
    page.goto(path.as_uri())
    ward.hold(page.locator("h1").first.is_visible(), name, "without its script it answers nothing")
    ward.hold(page.locator(".tools input").count() == 0, name, "a filter without its script")


def try_page(browser, plain, path, ward):
    name = path.name
    context = browser.new_context(viewport=DESK)
    page = context.new_page()
    page.on("console", lambda message: ward.hold(False, name, f"console: {message.text}"))
    page.on("pageerror", lambda error: ward.hold(False, name, f"error: {error}"))
    page.on("request", lambda request: ward.hold(request.url.startswith("file://") and request.is_navigation_request(), name, f"it asks for {request.url}"))
    page.goto(path.as_uri())
    for step in (follow_links, sort_tables, use_filters, use_the_keyboard, press_copy, look_at_widths, look_at_colours):
        step(page, name, ward)
    to_other_reports(page, name, ward)
    context.close()
    without_script(plain, path, name, ward)
    ward.count("pages")


def main():
    ward = Ward()
    chromium = next((path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if os.access(path, os.X_OK)), None)
    with sync_playwright() as playwright:
        # The pages are ours, and root has no sandbox.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        plain = browser.new_context(viewport=DESK, java_script_enabled=False).new_page()
        for path in sorted(Path(sys.argv[1]).resolve().glob("**/*.html")):
            try_page(browser, plain, path, ward)
        browser.close()
    for line in ward.wrong:
        print(line)
    print("tried: " + ", ".join(f"{number} {what}" for what, number in ward.tried.items()))
    sys.exit(1 if ward.wrong else 0)


main()
