// What a browser test looks at besides the words on a page.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const visible = { state: "visible", timeout: 45_000 };

/** Waits until a page is idle. A browser that draws no frames may not report that, so the wait ends after 1 s. */
export async function idle(opened) {
  await opened.evaluate(() => new Promise((done) => requestIdleCallback(() => done(), { timeout: 1000 })));
}

/** Goes to an address as a link within the application does: what is loaded stays, and is not started again. */
export async function visit(opened, address) {
  await opened.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, address);
}

/**
 * The elements that extend beyond the right edge, except text cut with an ellipsis and elements
 * that scroll sideways.
 */
export function tooWide() {
  const mayReach = (element) => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.textOverflow === "ellipsis" || style.overflowX === "auto" || style.clipPath !== "none") return true;
    }
    return false;
  };
  return [...document.querySelectorAll("#root *")]
    .filter((element) => element.getBoundingClientRect().right > window.innerWidth + 1 && !mayReach(element))
    .map((element) => element.outerHTML.slice(0, 200));
}

/** Whether the document itself could be scrolled, as a focus far below does it: the parts of a page scroll, not the page. */
export function scrollsAway() {
  const { scrollHeight, clientHeight } = document.documentElement;
  return scrollHeight > clientHeight ? [`${scrollHeight} of ${clientHeight} px`] : [];
}

/** What stands in a header and lies below something else there; a switch is drawn over its input. */
export function covered() {
  const seen = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    for (let at = element.parentElement; at; at = at.parentElement) {
      const box = at.getBoundingClientRect();
      // What is scrolled out of its line is not seen, and not covered.
      if (getComputedStyle(at).overflowX !== "visible" && (left >= box.right || right <= box.left)) return true;
    }
    // At its ends, where a neighbour begins.
    return [left + 4, right - 4].every((x) => {
      const hit = document.elementFromPoint(x, (top + bottom) / 2);
      return hit && (element.contains(hit) || hit.contains(element));
    });
  };
  return [...document.querySelectorAll('header :is(a, button, input:not([role="switch"]), select)')]
    .filter((element) => element.getBoundingClientRect().width > 8 && !seen(element))
    .map((element) => element.outerHTML.slice(0, 200));
}

const everything = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** The accessibility problems of a page by some rules. Contrast must have been among the checks. */
export async function accessibility(opened, rules = everything) {
  if (!(await opened.evaluate(() => "axe" in window))) await opened.evaluate(axe);
  const look = () => opened.evaluate(problems, rules);
  let seen = await look();
  // A page that moves while axe looks at it breaks its look at contrast.
  for (let again = 0; again < 2 && seen.moved; again++) seen = await look();
  const found = seen.violations.map(
    (v) => `${v.id}: ${v.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`,
  );
  return seen.contrast ? found : [...found, `contrast was not checked: ${seen.incomplete}`];
}

/** What axe finds. What passes is most of its report, and takes longer to be sent than to be found. */
async function problems(runOnly) {
  const { violations, passes, incomplete } = await window.axe.run({
    runOnly,
    resultTypes: ["violations", "incomplete"],
  });
  return {
    violations: violations.map(({ id, nodes }) => ({
      id,
      nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })),
    })),
    contrast: passes.some((rule) => rule.id === "color-contrast"),
    moved: JSON.stringify(incomplete).includes("error-occurred"),
    incomplete: JSON.stringify(incomplete.find((rule) => rule.id === "color-contrast")?.nodes),
  };
}

/**
 * The accessibility problems of a page in both themes; it stays in the light one. A theme changes colours and nothing else, so
 * only contrast is looked at twice.
 */
export async function inBothThemes(opened) {
  const shows = async (colorScheme) => {
    await opened.emulateMedia({ colorScheme });
    await opened.waitForFunction(
      (scheme) => document.documentElement.dataset.mantineColorScheme === scheme,
      colorScheme,
    );
    await opened.evaluate(() => {
      const ending = document
        .getAnimations()
        .filter(({ effect }) => Number.isFinite(effect.getComputedTiming().endTime));
      const ended = Promise.all(ending.map(({ finished }) => finished.catch(() => {})));
      // One that is paused does not end.
      return Promise.race([ended, new Promise((done) => setTimeout(done, 2000))]);
    });
  };
  await shows("dark");
  const dark = (await accessibility(opened, ["color-contrast"])).map((found) => `dark: ${found}`);
  await shows("light");
  return [...dark, ...(await accessibility(opened))];
}
