// Charts are whole without this: it adds quick tooltips and zoom by dragging.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const words = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(1);
    return String(Number(value.toPrecision(4)));
  };
  const round = (low, high, count) => {
    const rough = (high - low) / count;
    const magnitude = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((by) => by * magnitude).find((by) => by >= rough);
    const ticks = [];
    for (let at = Math.ceil(low / step); at * step <= high * (1 + 1e-12) && ticks.length < 40; at += 1) ticks.push(at * step);
    return ticks;
  };
  const tips = (figure) => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    figure.append(tip);
    for (const title of figure.querySelectorAll(".plot title")) {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    }
    figure.addEventListener("pointermove", (event) => {
      const shown = event.target.closest("[data-tip]");
      tip.hidden = !shown;
      if (!shown) return;
      tip.textContent = shown.dataset.tip;
      const box = figure.getBoundingClientRect();
      const left = Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth);
      tip.style.left = `${Math.max(0, left)}px`;
      tip.style.top = `${event.clientY - box.top + 16}px`;
    });
    figure.addEventListener("pointerleave", () => { tip.hidden = true; });
  };
  const zoom = (figure, svg) => {
    const plot = svg.querySelector(".plot");
    const moved = svg.querySelector(".moved");
    const width = Number(plot.getAttribute("width"));
    const height = Number(plot.getAttribute("height"));
    const [kind, low, high] = svg.dataset.y.split(" ");
    const plain = kind === "log" ? Math.log : (value) => value;
    const back = kind === "log" ? Math.exp : (value) => value;
    const [bottom, top] = [plain(Number(low)), plain(Number(high))];
    const first = [...svg.querySelectorAll(".y > .tick")];
    const places = [...svg.querySelectorAll(".x > .tick")].map((tick) => [tick, Number(/translate\(([-\d.]+)/.exec(tick.getAttribute("transform"))[1])]);
    const marks = [...moved.querySelectorAll(".mark, .dot")].map((mark) => [mark, mark.getAttribute("transform")]);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "back";
    button.textContent = "Whole chart";
    button.hidden = true;
    figure.append(button);
    svg.classList.add("zoomable");
    // The part of the plot that fills it: x, y, width, height.
    const show = ([x, y, w, h]) => {
      const [kx, ky] = [width / w, height / h];
      const whole = w === width && h === height;
      moved.setAttribute("transform", whole ? "" : `scale(${kx} ${ky}) translate(${-x} ${-y})`);
      for (const [mark, at] of marks) mark.setAttribute("transform", whole ? at : `${at} scale(${1 / kx} ${1 / ky})`);
      for (const [tick, at] of places) {
        const now = (at - x) * kx;
        tick.setAttribute("transform", `translate(${now} 0)`);
        tick.toggleAttribute("hidden", now < -1 || now > width + 1);
      }
      for (const tick of svg.querySelectorAll(".y > .fine")) tick.remove();
      for (const tick of first) tick.toggleAttribute("hidden", !whole);
      button.hidden = whole;
      if (whole) return;
      const value = (pixels) => back(top - (pixels / height) * (top - bottom));
      for (const tick of round(value(y + h), value(y), 6)) {
        const at = (height * (top - plain(tick)) / (top - bottom) - y) * ky;
        const made = first[0].cloneNode(true);
        made.removeAttribute("hidden");
        made.classList.add("fine");
        made.setAttribute("transform", `translate(0 ${at})`);
        made.querySelector("text").textContent = words(tick);
        svg.querySelector(".y").append(made);
      }
    };
    let view = [0, 0, width, height];
    let from = null;
    const choice = document.createElementNS(NS, "rect");
    choice.setAttribute("class", "choice");
    const at = (event) => {
      const box = plot.querySelector(".ground").getBoundingClientRect();
      const inside = (share, size) => Math.max(0, Math.min(1, share)) * size;
      return [inside((event.clientX - box.left) / box.width, width), inside((event.clientY - box.top) / box.height, height)];
    };
    const between = (one, other) => [Math.min(one[0], other[0]), Math.min(one[1], other[1]), Math.abs(one[0] - other[0]), Math.abs(one[1] - other[1])];
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch" || event.target.closest("a")) return;
      from = at(event);
      event.preventDefault();
    });
    addEventListener("pointermove", (event) => {
      if (!from) return;
      const [x, y, w, h] = between(from, at(event));
      for (const [name, number] of Object.entries({ x, y, width: w, height: h })) choice.setAttribute(name, number);
      plot.append(choice);
    });
    addEventListener("pointerup", (event) => {
      if (!from) return;
      const [x, y, w, h] = between(from, at(event));
      from = null;
      choice.remove();
      if (w < 6 || h < 6) return;
      const [left, over, wide, tall] = view;
      view = [left + x * wide / width, over + y * tall / height, w * wide / width, h * tall / height];
      show(view);
    });
    button.addEventListener("click", () => { view = [0, 0, width, height]; show(view); });
    addEventListener("beforeprint", () => { view = [0, 0, width, height]; show(view); });
  };
  for (const figure of document.querySelectorAll("figure.chart")) {
    tips(figure);
    for (const svg of figure.querySelectorAll(":scope > svg")) zoom(figure, svg);
  }
})();
