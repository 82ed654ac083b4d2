// What pages do beyond links and forms: numbers that move, times in the reader's own language, a theme
// that is remembered. Everything works without it.
"use strict";

(() => {
  const refreshEveryMs = 1000;
  // A page that is slow to make is asked for less often.
  const shareOfTime = 4;
  const root = document.documentElement;

  // ---- The reader's language -------------------------------------------------------------------

  const numbers = new Map();
  function numberText(value) {
    const places = (value.split(".")[1] || "").length;
    if (!numbers.has(places)) {
      numbers.set(places, new Intl.NumberFormat(undefined, { minimumFractionDigits: places, maximumFractionDigits: places }));
    }
    // Whole numbers go beyond what a double can hold.
    return numbers.get(places).format(places === 0 ? BigInt(value) : Number(value));
  }
  const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

  function speak(within) {
    for (const element of within.querySelectorAll("data[value]")) {
      if (/^-?\d+(\.\d+)?$/.test(element.value)) element.textContent = numberText(element.value);
    }
    for (const element of within.querySelectorAll("time[datetime]")) {
      const at = new Date(element.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      if (element.dataset.as === "title") element.title = moments.format(at);
      else element.textContent = moments.format(at);
    }
  }

  // ---- Times that run down ---------------------------------------------------------------------

  const begun = new WeakMap();
  function spanText(seconds) {
    if (seconds < 1) return "now";
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
    return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
  }
  function countDown() {
    for (const element of document.querySelectorAll("[data-seconds-left]")) {
      const told = element.dataset.secondsLeft;
      const known = begun.get(element);
      if (!known || known.told !== told) {
        begun.set(element, { told, at: performance.now() });
        continue;
      }
      const left = Number(told) - Math.floor((performance.now() - known.at) / 1000);
      element.textContent = spanText(Math.max(0, left));
    }
  }

  // ---- Numbers that move -----------------------------------------------------------------------

  // Makes an element like another one of the same kind, and leaves alone what the reader has done:
  // what is open, what is written, where the focus is.
  function become(now, next) {
    if (now.isEqualNode(next)) return;
    if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName || now.id !== next.id) {
      now.replaceWith(document.importNode(next, true));
      return;
    }
    if (now.nodeType !== Node.ELEMENT_NODE) {
      if (now.nodeValue !== next.nodeValue) now.nodeValue = next.nodeValue;
      return;
    }
    const isKept = (name) => name === "open" || (name === "aria-busy" && now === document.activeElement);
    for (const { name } of [...now.attributes]) {
      if (!next.hasAttribute(name) && !isKept(name)) now.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (now.getAttribute(name) !== value && !isKept(name)) now.setAttribute(name, value);
    }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(now.nodeName)) return;
    const before = [...now.childNodes];
    const after = [...next.childNodes];
    after.forEach((child, place) => {
      if (before[place]) become(before[place], child);
      else now.append(document.importNode(child, true));
    });
    for (const child of before.slice(after.length)) child.remove();
  }

  let isBusy = false;
  let isWanted = false;
  let isQuietUntil = 0;
  async function refresh() {
    isWanted = true;
    const from = document.body.dataset.refresh;
    // Nobody sees a page behind others, but what waits for another page goes on meanwhile.
    const isSeen = !document.hidden || document.querySelector("[data-refresh-ms]");
    if (isBusy || !from || !isSeen || performance.now() < isQuietUntil) return;
    isBusy = true;
    isWanted = false;
    const started = performance.now();
    try {
      const answer = await fetch(from, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (answer.status === 401 || answer.redirected) { location.reload(); return; }
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        speak(page);
        for (const next of page.querySelectorAll("[data-live][id]")) {
          const now = document.getElementById(next.id);
          if (now) become(now, next);
        }
        countDown();
      }
      root.classList.toggle("lost", !answer.ok);
    } catch {
      root.classList.add("lost");
    } finally {
      const took = performance.now() - started;
      isQuietUntil = performance.now() + Math.max(refreshEveryMs, took * shareOfTime);
      isBusy = false;
    }
  }

  function listen() {
    if (!document.body.dataset.refresh) return;
    const live = new EventSource("/api/live");
    const told = () => { root.classList.remove("lost"); refresh(); };
    for (const kind of ["message", "standing"]) live.addEventListener(kind, told);
    live.addEventListener("error", () => root.classList.add("lost"));
    // What waits for somebody else is looked at now and then, too.
    let waited = 0;
    setInterval(() => {
      const every = Number(document.querySelector("[data-refresh-ms]")?.dataset.refreshMs || 0);
      waited += 250;
      if (isWanted || (every && waited >= every)) { waited = 0; refresh(); }
    }, 250);
    document.addEventListener("visibilitychange", refresh);
  }

  // ---- Buttons that do not leave the page ------------------------------------------------------

  function say(text, kind) {
    const place = document.getElementById("said");
    if (!place) return;
    place.className = `said ${kind}`;
    place.textContent = text;
  }

  async function send(form, button) {
    button?.setAttribute("aria-busy", "true");
    try {
      const body = new URLSearchParams(new FormData(form, button));
      const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" }, credentials: "same-origin" });
      const told = await answer.json().catch(() => ({}));
      if (answer.ok) say(told.said || "Done.", "good");
      else say(told.detail || told.title || `That did not work (${answer.status}).`, "bad");
      isQuietUntil = 0;
      await refresh();
    } catch {
      say("The program could not be reached. Is it still running?", "bad");
    } finally {
      button?.removeAttribute("aria-busy");
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sure && !confirm(form.dataset.sure)) { event.preventDefault(); return; }
    if (form.hasAttribute("data-stay")) {
      event.preventDefault();
      send(form, event.submitter);
    } else {
      event.submitter?.setAttribute("aria-busy", "true");
    }
  });

  // ---- The theme -------------------------------------------------------------------------------

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function nameTheme(button) {
    button.hidden = false;
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Change to light colours" : "Change to dark colours");
  }
  function theme() {
    const button = document.getElementById("theme");
    if (!button) return;
    nameTheme(button);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; SameSite=Strict`;
      nameTheme(button);
    });
  }

  // ---- The picture of who is connected ---------------------------------------------------------

  function picture() {
    const drawing = document.querySelector(".graph svg");
    if (!drawing) return;
    const point = (event) => {
      const node = event.target.closest?.("a[data-node]");
      drawing.classList.toggle("pointing", Boolean(node));
      for (const edge of drawing.querySelectorAll(".edge")) {
        const ends = [edge.dataset.from, edge.dataset.to];
        edge.classList.toggle("near", Boolean(node) && ends.includes(node.dataset.node));
      }
    };
    for (const kind of ["pointerover", "focusin", "focusout"]) drawing.addEventListener(kind, point);
    drawing.addEventListener("pointerleave", point);
  }

  // ---- Begin -----------------------------------------------------------------------------------

  speak(document);
  theme();
  picture();
  countDown();
  setInterval(countDown, 1000);
  listen();
  root.classList.add("scripted");
})();
