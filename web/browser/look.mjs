// What a browser test looks at besides the words on a page.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const visible = { state: "visible", timeout: 15_000 };

/** Waits until a page is idle. A browser that draws no frames may not report that, so the wait ends after 1 s. */
export async function idle(opened) {
  await opened.evaluate(() => new Promise((done) => requestIdleCallback(() => done(), { timeout: 1000 })));
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

function unchecked(incomplete) {
  const contrast = incomplete.find((rule) => rule.id === "color-contrast");
  return `contrast was not checked: ${JSON.stringify(contrast?.nodes.map((node) => [node.html, node.any, node.none]))}`;
}

/** The accessibility problems of a page. Contrast must have been among the checks. */
export async function accessibility(opened) {
  await opened.evaluate(axe);
  const look = () =>
    opened.evaluate(() =>
      window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
    );
  let seen = await look();
  // A page that moves while axe looks at it breaks its look at contrast.
  for (let again = 0; again < 2 && JSON.stringify(seen.incomplete).includes("error-occurred"); again++)
    seen = await look();
  const { violations, passes, incomplete } = seen;
  const found = violations.map(
    (v) => `${v.id}: ${v.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`,
  );
  return passes.some((rule) => rule.id === "color-contrast") ? found : [...found, unchecked(incomplete)];
}
