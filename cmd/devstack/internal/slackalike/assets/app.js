// Keeps the page live: new messages, counts and faults by server-sent events.
"use strict";

const byId = (id) => document.getElementById(id);
const view = document.body.dataset.view;
const scroller = byId("scroll");
const below = byId("below");
const shown = 500; // messages kept on the page

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

// The parts of a date that a message may ask for.
const parts = {
  date_num: { year: "numeric", month: "2-digit", day: "2-digit" },
  date: { dateStyle: "long" },
  date_short: { dateStyle: "medium" },
  date_long: { dateStyle: "full" },
  time: { timeStyle: "short" },
  time_secs: { timeStyle: "medium" },
};

function inWords(format, at) {
  return format.replace(/\{(\w+)\}/g, (token, name) => {
    const options = parts[name] ?? parts[name.replace("_pretty", "")];
    return options ? new Intl.DateTimeFormat(undefined, options).format(at) : token;
  });
}

function localTimes(root) {
  for (const time of root.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    time.textContent = time.dataset.format ? inWords(time.dataset.format, at) : clock.format(at);
    time.title = exact.format(at) + " · " + time.dateTime;
  }
}

const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
function toEnd() {
  scroller.scrollTop = scroller.scrollHeight;
  below.hidden = true;
}

function add(messages) {
  if (messages.length === 0) return;
  const follow = atEnd();
  const list = byId("messages");
  for (const html of messages) {
    const holder = document.createElement("template");
    holder.innerHTML = html; // rendered and escaped by the server
    const message = holder.content.firstElementChild;
    localTimes(message);
    const known = byId(message.id);
    if (known) {
      known.replaceWith(message); // it was changed, or comes again after a reconnection
      continue;
    }
    message.classList.add("fresh");
    list.append(message);
  }
  byId("empty").hidden = true;
  if (follow) {
    while (list.childElementCount > shown) list.firstElementChild.remove();
    toEnd();
  } else {
    below.hidden = false;
  }
}

function count(counts) {
  let refused = 0;
  let duplicates = 0;
  for (const c of Object.values(counts)) {
    refused += c.refused;
    duplicates += c.duplicates;
  }
  for (const link of document.querySelectorAll("[data-channel]")) {
    link.querySelector("[data-count]").textContent = counts[link.dataset.channel]?.accepted ?? 0;
  }
  byId("refused").textContent = refused;
  byId("duplicates").hidden = duplicates === 0;
  byId("duplicates").textContent = duplicates === 1 ? "1 duplicate" : `${duplicates} duplicates`;
}

function describe(fault) {
  const words = {
    error: `answers ${fault.status}`,
    slow: `waits ${fault.seconds} s`,
    rate_limited: `answers 429, Retry-After ${Math.ceil(fault.seconds)} s`,
    hang: "never answers",
    drop: "drops the connection",
    lose_answer: "posts, but loses the answer",
  };
  const who = fault.hook === "" ? "Every webhook" : fault.hook;
  const until = fault.count ? `for ${fault.count} more request${fault.count === 1 ? "" : "s"}` : "until reset";
  return `${who} ${words[fault.kind] ?? "answers " + fault.kind} ${until}`;
}

function showFaults(faults) {
  const bar = byId("faults");
  bar.hidden = faults.length === 0;
  bar.replaceChildren(
    ...faults.map((fault) => {
      const line = document.createElement("div");
      const text = document.createElement("span");
      text.textContent = describe(fault);
      const reset = document.createElement("button");
      reset.type = "button";
      reset.textContent = "Reset";
      reset.addEventListener("click", () => control("DELETE", "?hook=" + encodeURIComponent(fault.hook)));
      line.append(text, reset);
      return line;
    }),
  );
}

const hint = byId("control-note").textContent;
async function control(method, query, body) {
  const note = byId("control-note");
  try {
    const answer = await fetch("/control/faults" + query, { method, body: body && JSON.stringify(body) });
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.error);
    showFaults(value);
    note.textContent = hint;
  } catch (error) {
    note.textContent = "That did not work: " + error.message;
  }
}

const form = byId("fault-form");
function fitForm() {
  const timed = ["slow", "rate_limited"].includes(form.elements.kind.value);
  form.querySelector(".seconds").hidden = !timed;
}
form.addEventListener("change", fitForm);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { hook, kind, seconds, count } = form.elements;
  const fault = { hook: hook.value, kind: kind.value, count: Number(count.value) };
  if (!form.querySelector(".seconds").hidden) fault.seconds = Number(seconds.value);
  control("POST", "", fault);
});
byId("open-control").addEventListener("click", (event) => {
  const panel = byId("control");
  panel.hidden = !panel.hidden;
  event.currentTarget.setAttribute("aria-expanded", String(!panel.hidden));
});

// A press is sent to the app. What comes of it comes as a change of the message; what the app tells
// the person alone is shown below the message.
async function press(control, value) {
  const article = control.closest("article");
  const id = article.id;
  control.disabled = true;
  let trouble = "";
  try {
    const body = JSON.stringify({ message: Number(article.dataset.id), action: control.dataset.action, value });
    const answer = await fetch("/control/press", { method: "POST", body });
    const { ephemerals, error } = await answer.json();
    if (!answer.ok) trouble = error;
    else for (const { text } of ephemerals) whisper(id, text);
  } catch (error) {
    trouble = error.message;
  }
  control.disabled = false;
  control.title = trouble;
  control.classList.toggle("failed", trouble !== "");
}
function whisper(id, text) {
  const line = document.createElement("div");
  line.className = "whisper";
  line.setAttribute("role", "status");
  line.textContent = `Only visible to you: ${text}`;
  byId(id)?.after(line);
}
byId("messages").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-action]");
  if (button) void press(button, "");
});
byId("messages").addEventListener("change", (event) => {
  const menu = event.target.closest("select[data-action]");
  if (!menu || menu.value === "") return;
  const { value } = menu;
  menu.value = "";
  void press(menu, value);
});

scroller.addEventListener("scroll", () => {
  if (atEnd()) below.hidden = true;
});
below.addEventListener("click", toEnd);

localTimes(document);
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
fitForm();
if (location.hash) byId(location.hash.slice(1))?.scrollIntoView();
else toEnd();

const past = new URLSearchParams(location.search).has("before");
const live = byId("live");
const events = new EventSource(`/events?view=${encodeURIComponent(past ? "" : view)}&after=${document.body.dataset.newest}`);
events.onopen = () => {
  live.textContent = past ? "history" : "live";
  live.className = "live on";
};
events.onerror = () => {
  live.textContent = "reconnecting";
  live.className = "live";
};
events.onmessage = (event) => {
  const update = JSON.parse(event.data);
  add(update.messages);
  count(update.counts);
  showFaults(update.faults);
};
