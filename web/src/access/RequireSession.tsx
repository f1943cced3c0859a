import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { accessKeys, type Me, me, type SessionState, session, whoIsIn } from "../api/access";
import { beginSession, onSignedOut } from "../api/client";
import { CameIn } from "../frame/cameIn";
import { PageShown } from "../ui/pageShown";
import { SetUpPage } from "./SetUpPage";
import { SignInPage, signInProblem } from "./SignInPage";

/**
 * Shows the application to people who are signed in, and the sign-in to others. The address does
 * not change, so that people get to the page that they wanted. When a session ends, the page stays
 * behind the sign-in: nothing typed is lost.
 */
export function RequireSession({ children }: { children: ReactNode }) {
  const cache = useQueryClient();
  const state = useQuery(session());
  const [entered, setEntered] = useState(false);
  const [visit, setVisit] = useState(0);
  const [signsIn, setSignsIn] = useState(() => signInProblem() !== undefined);
  const last = useRef<string>(undefined);
  useEffect(
    () =>
      onSignedOut(() => {
        const known = cache.getQueryData<SessionState>(accessKeys.session);
        last.current ??= cache.getQueryData<Me>(accessKeys.me)?.id;
        if (known?.signedIn) cache.setQueryData<SessionState>(accessKeys.session, { ...known, signedIn: false });
        // It could not be requested before.
        else if (!known) void cache.invalidateQueries({ queryKey: accessKeys.session });
      }),
    [cache],
  );
  const inside = state.data ? state.data.signedIn : state.isError;
  const asked = useRef(false);
  const asks = !inside && state.data !== undefined;
  useEffect(() => {
    if (asks) asked.current = true;
    if (!inside) return;
    setEntered(true);
    // The page that has waited behind the sign-in. A page that is still to come takes the focus
    // itself.
    if (asked.current && document.activeElement === document.body)
      document.querySelector<HTMLElement>("main h1")?.focus();
  }, [inside, asks]);

  const enter = (who: Me) => {
    beginSession();
    const known = cache.getQueryData<SessionState>(accessKeys.session);
    if (last.current !== undefined && last.current !== who.id) {
      // This person must not see another person's data, or what was on screen.
      cache.clear();
      setVisit((count) => count + 1);
    } else {
      void cache.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== accessKeys.session[0] });
    }
    last.current = who.id;
    cache.setQueryData<Me>(accessKeys.me, who);
    cache.setQueryData<SessionState>(accessKeys.session, {
      open: false,
      setupNeeded: false,
      ...known,
      signedIn: true,
    });
  };
  useInElsewhere(asks, enter);
  // Somebody else has signed in in another tab: the session is that of the browser.
  const { data: present } = useQuery({ ...me(), enabled: false });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another person matters.
  useEffect(() => {
    if (!inside || present?.id === undefined) return;
    if (last.current !== undefined && last.current !== present.id) enter(present);
    last.current = present.id;
  }, [inside, present?.id]);

  if (state.isPending) return null;
  return (
    <>
      {(inside || entered) && (
        <div key={visit} style={{ height: "100%", display: inside ? "contents" : "none" }} inert={!inside}>
          <PageShown value={inside}>
            <CameIn value={asked}>{children}</CameIn>
          </PageShown>
        </div>
      )}
      {!inside &&
        state.data &&
        (state.data.setupNeeded && !signsIn && state.data.problem === undefined ? (
          <SetUpPage onEnter={enter} onSignIn={() => setSignsIn(true)} />
        ) : (
          <SignInPage state={state.data} ended={entered} onEnter={enter} />
        ))}
    </>
  );
}

/** While it asks: enters when the reader comes back to this tab and has signed in in another one. */
function useInElsewhere(asks: boolean, enter: (who: Me) => void) {
  const latest = useRef(enter);
  useEffect(() => {
    latest.current = enter;
  });
  useEffect(() => {
    if (!asks) return;
    let wanted = true;
    const look = () => {
      if (document.hidden) return;
      whoIsIn().then(
        (who) => wanted && who && latest.current(who),
        () => undefined,
      );
    };
    window.addEventListener("focus", look);
    document.addEventListener("visibilitychange", look);
    return () => {
      wanted = false;
      window.removeEventListener("focus", look);
      document.removeEventListener("visibilitychange", look);
    };
  }, [asks]);
}
