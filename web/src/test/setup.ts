import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterAll, afterEach, vi } from "vitest";

// The simulated page has no layout. A size for every element, that never changes, is enough for the list to show its
// first rows.
const size = { configurable: true, get: () => 800 };
Object.defineProperties(HTMLElement.prototype, {
  offsetHeight: size,
  offsetWidth: size,
  clientHeight: size,
  clientWidth: size,
});
HTMLElement.prototype.getBoundingClientRect = () => new DOMRect(0, 0, 800, 800);

// As long as a busy machine needs; what is there sooner is found sooner.
configure({ asyncUtilTimeout: 10_000 });

class StillObserver implements ResizeObserver {
  observe() {}
  unobserve() {}
  disconnect() {}
}
globalThis.ResizeObserver = StillObserver;

// The next file may run in the same worker.
afterAll(() => void vi.unstubAllGlobals());

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  localStorage.clear();
  sessionStorage.clear();
});
