// Shows the page anew every five seconds, unless somebody is about to press a button.
"use strict";
setInterval(async () => {
  if (document.hidden || document.activeElement.tagName === "BUTTON") return;
  try {
    const answer = await fetch(location.pathname, { credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = page.title;
    document.querySelector("main").replaceWith(page.querySelector("main"));
  } catch {
    document.title = "No answer";
  }
}, 5000);
