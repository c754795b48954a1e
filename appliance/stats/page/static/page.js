// Shows the page anew every three seconds, unless somebody reads a selection or is about to press a button.
"use strict";
const home = location.origin + document.querySelector("link[rel=canonical]").getAttribute("href");
const silence = document.getElementById("silence");
let heard = new Date();

function busy() {
  return document.hidden || !getSelection().isCollapsed || document.querySelector("button:focus, details.confirm[open]");
}

function show(page) {
  const open = [...document.querySelectorAll("details[open]")].map((each) => each.id);
  const main = page.querySelector("main");
  for (const id of open) {
    const details = page.getElementById(id);
    if (details) details.open = true;
  }
  document.title = page.title;
  document.querySelector("main").replaceWith(main);
}

async function refresh() {
  if (busy()) return;
  try {
    const answer = await fetch(home, { credentials: "same-origin", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (busy()) return;
    show(page);
    heard = new Date();
    silence.hidden = true;
  } catch {
    silence.querySelector("span").textContent = heard.toLocaleTimeString();
    silence.hidden = false;
    document.title = "No answer";
  }
}

setInterval(refresh, 3000);
