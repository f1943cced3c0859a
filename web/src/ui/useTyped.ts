import { useCallback, useEffect, useRef, useState } from "react";

/**
 * The text of a field whose value is in the address, and how to report it. The address changes some time after a report:
 * until then, what was typed stays. Another address, by the browser's back button or by a link, replaces it.
 */
export function useTyped(value: string, onChange: (text: string) => void) {
  const [typed, setTyped] = useState(value);
  const [before, setBefore] = useState(value);
  /** What was reported, and may still become the value. */
  const sent = useRef<readonly string[]>([]);
  const latest = useRef({ value, onChange });
  useEffect(() => {
    latest.current = { value, onChange };
  });
  if (value !== before) {
    setBefore(value);
    if (!sent.current.includes(value)) setTyped(value);
  }
  useEffect(() => {
    const own = sent.current.lastIndexOf(value);
    sent.current = own < 0 ? [] : sent.current.slice(own + 1);
  }, [value]);
  const report = useCallback((text: string) => {
    if (text === (sent.current.at(-1) ?? latest.current.value)) return;
    sent.current = [...sent.current, text];
    latest.current.onChange(text);
  }, []);
  return { typed, setTyped, report };
}
