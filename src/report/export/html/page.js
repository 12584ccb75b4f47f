(() => {
  "use strict";
  for (const table of document.querySelectorAll("table.rows")) {
    const body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach((th, at) => {
      th.dataset.sort = "";
      th.addEventListener("click", () => {
        const up = th.getAttribute("aria-sort") !== "ascending";
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => row.cells[at].dataset.v ?? row.cells[at].textContent;
        const compare = (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true });
        body.append(...[...body.rows].sort((a, b) => (up ? compare(a, b) : compare(b, a))));
      });
    });
  }
  const tools = document.querySelector(".tools");
  if (tools) {
    const input = tools.querySelector("input");
    const buttons = [...tools.querySelectorAll("button")];
    const intents = [...document.querySelectorAll("details.intent")];
    const shown = document.querySelector("#shown");
    const update = () => {
      const wanted = input.value.trim().toLowerCase();
      const outcome = buttons.find((b) => b.getAttribute("aria-pressed") === "true")?.dataset.outcome;
      let n = 0;
      for (const intent of intents) {
        const fits = (!outcome || intent.dataset.outcome === outcome)
          && (!wanted || intent.textContent.toLowerCase().includes(wanted));
        intent.hidden = !fits;
        n += fits ? 1 : 0;
      }
      shown.textContent = n;
    };
    tools.hidden = false;
    input.addEventListener("input", update);
    for (const button of buttons) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        buttons.forEach((b) => b.setAttribute("aria-pressed", "false"));
        button.setAttribute("aria-pressed", String(on));
        update();
      });
    }
  }
  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.intent:not([open])")];
    folded.forEach((d) => { d.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((d) => { d.open = false; }));
})();
