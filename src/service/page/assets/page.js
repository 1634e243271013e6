// Keeps the page as the collector sends it: replaces the parts that have changed, and keeps the ages.
import { formatDuration } from "/assets/duration.js";

const main = document.getElementById("main");
const live = document.getElementById("live");

/** Where the focus is inside of an element, so that it stays there when that is replaced. */
function focusIn(element) {
  const active = document.activeElement;
  if (!active || active === document.body || !element.contains(active)) return undefined;
  const all = [...element.querySelectorAll("a, button, input, summary")];
  return { id: active.id, index: all.indexOf(active), isSelf: active === element };
}

function restoreFocus(element, focus) {
  if (!focus) return;
  const all = [...element.querySelectorAll("a, button, input, summary")];
  const target = (focus.id && document.getElementById(focus.id)) || (focus.isSelf ? element : all[focus.index]);
  target?.focus({ preventScroll: true });
}

/** What a person has opened, typed or ticked stays as it is. */
function keepInputs(before, after) {
  const opened = [...before.querySelectorAll("details")].map((one) => one.open);
  for (const [i, one] of [...after.querySelectorAll("details")].entries()) one.open = opened[i] ?? false;
  for (const input of before.querySelectorAll("input[id], input[name]")) {
    const same = after.querySelector(`input[name="${CSS.escape(input.name)}"]`);
    if (same && input.type === "checkbox") same.checked = input.checked;
    else if (same) same.value = input.value;
  }
}

function replacePart(id, text) {
  const element = id === "main" ? main : document.getElementById(id);
  if (!element) return;
  const template = document.createElement("template");
  template.innerHTML = text;
  const focus = focusIn(element);
  keepInputs(element, template.content);
  if (id === "main") {
    element.replaceChildren(template.content);
    restoreFocus(element, focus);
    return;
  }
  const next = template.content.firstElementChild;
  if (!next) return;
  element.replaceWith(next);
  restoreFocus(next, focus);
}

function showAges() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    const ms = Date.now() + clockAheadMs - Date.parse(time.dateTime);
    const words = Number.isNaN(ms) ? "?" : formatDuration(ms < 1000 ? Math.max(0, ms) : Math.floor(ms / 1000) * 1000);
    if (time.textContent !== words) time.textContent = words;
  }
}

/** How far the collector's clock is ahead of this one's. */
let clockAheadMs = 0;
const events = new EventSource(`/events?path=${encodeURIComponent(main.dataset.path)}&version=${encodeURIComponent(main.dataset.version)}`);
events.addEventListener("parts", (event) => {
  const { title, at, parts } = JSON.parse(event.data);
  clockAheadMs = Date.parse(at) - Date.now();
  for (const [id, text] of Object.entries(parts)) replacePart(id, text);
  if (document.title !== title) document.title = title;
  live.dataset.state = "live";
  live.textContent = "Live";
  showAges();
});
events.addEventListener("login", () => location.reload());
events.onopen = () => {
  live.dataset.state = "live";
  live.textContent = "Live";
};
events.onerror = () => {
  live.dataset.state = "away";
  live.textContent = "The collector does not answer; the page shows its last state and goes on trying.";
};
setInterval(showAges, 1000);
addEventListener("pagehide", () => events.close());
