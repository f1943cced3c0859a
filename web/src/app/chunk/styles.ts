/** The style sheets that could not be loaded, each with the try under way. */
const missing = new Map<string, Promise<void> | undefined>();

/**
 * Remembers each style sheet that could not be loaded. Vite requests a style sheet only once, and
 * treats it as loaded from then on: a page that is loaded at the second try would have no styles.
 * Returns a function that ends this.
 */
export function watchStyles(): () => void {
  const onError = ({ target }: Event) => {
    if (!(target instanceof HTMLLinkElement) || target.rel !== "stylesheet") return;
    missing.set(target.href, undefined);
    target.remove();
  };
  document.addEventListener("error", onError, true);
  return () => document.removeEventListener("error", onError, true);
}

/** Requests these again. It rejects if one still fails. */
export async function missingStyles(): Promise<void> {
  await Promise.all(
    [...missing].map(([href, trying]) => {
      const next = trying ?? load(href);
      missing.set(href, next);
      return next;
    }),
  );
}

function load(href: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.crossOrigin = "";
    link.href = href;
    link.addEventListener("load", () => {
      missing.delete(href);
      resolve();
    });
    link.addEventListener("error", () => {
      missing.set(href, undefined);
      link.remove();
      reject(new Error(`${href} did not load`));
    });
    document.head.append(link);
  });
}
