import { type QueryClient, useQuery } from "@tanstack/react-query";
import { type ComponentType, useEffect, useRef, useSyncExternalStore } from "react";
import { isAway } from "../../api/errors";
import { systemStatus } from "../../api/status";
import { Page } from "../../frame/Page";
import { reloadByItself } from "../../ui/reload";
import { Failed, SkeletonRows } from "../../ui/states";
import { Chunk, Outdated } from "./chunk";

/**
 * A page whose code is loaded when it is first needed. The router waits for `preload` before it
 * leaves another page.
 */
export interface LazyPage {
  (): React.ReactNode;
  preload: () => Promise<void>;
  chunk: Chunk<ComponentType>;
  /** Requests the page's data from the API, so that the request is under way when the page begins. */
  ask?: Ask;
}

type Ask = (cache: QueryClient, params: Readonly<Record<string, string>>) => Promise<unknown>;

interface Options {
  /** Shown below the title until the code is loaded. */
  Coming?: Coming;
  /** The title is only for screen readers, as on the page. */
  titleHidden?: boolean;
  ask?: Ask;
}

/**
 * Makes such a page. Its title is shown until its code has been loaded. If the code cannot be
 * loaded, the page says so within the frame, and tries again when Tocsin answers.
 */
export function lazyPage(
  title: string,
  load: () => Promise<ComponentType>,
  { Coming = Rows, titleHidden = false, ask }: Options = {},
): LazyPage {
  const chunk = new Chunk(load);
  const shown = () => <Shown title={title} titleHidden={titleHidden} chunk={chunk} Coming={Coming} />;
  return Object.assign(shown, { preload: chunk.load, chunk, ...(ask ? { ask } : {}) });
}

type Coming = ComponentType<{ label: string }>;

const Rows: Coming = ({ label }) => <SkeletonRows count={5} height={64} label={label} />;

interface ShownProps {
  title: string;
  titleHidden: boolean;
  chunk: Chunk<ComponentType>;
  Coming: Coming;
}

function Shown({ title, titleHidden, chunk, Coming }: ShownProps) {
  const { part: Part, failure } = useSyncExternalStore(chunk.subscribe, chunk.current);
  const idle = !Part && !failure;
  useEffect(() => {
    if (idle) void chunk.load();
  }, [chunk, idle]);
  if (Part) return <Part />;
  return (
    <Page title={title} titleHidden={titleHidden && !failure} scrolls>
      {failure ? (
        <NotLoaded title={title} failure={failure} onRetry={chunk.load} />
      ) : (
        <Coming label="Loading the page" />
      )}
    </Page>
  );
}

function NotLoaded({ title, failure, onRetry }: { title: string; failure: Error; onRetry: () => void }) {
  useEffect(() => {
    document.title = `${title} · Tocsin`;
  }, [title]);
  useOnAnswer(onRetry);
  const outdated = failure instanceof Outdated;
  useEffect(() => {
    // A person who comes here has left the previous page, and was asked there about unsaved
    // changes.
    if (outdated) reloadByItself();
  }, [outdated]);
  if (outdated) return <Failed error={failure} again="Reload" onRetry={() => globalThis.location.reload()} />;
  return <Failed error={failure} onRetry={onRetry} />;
}

/** Calls back each time that Tocsin has answered, whatever the answer, since the caller is on the page. */
function useOnAnswer(call: () => void) {
  const { error, dataUpdatedAt, errorUpdatedAt } = useQuery(systemStatus());
  const answers = isAway(error) ? 0 : Math.max(dataUpdatedAt, errorUpdatedAt);
  const seen = useRef(answers);
  useEffect(() => {
    if (answers === 0 || answers === seen.current) return;
    seen.current = answers;
    call();
  }, [answers, call]);
}
