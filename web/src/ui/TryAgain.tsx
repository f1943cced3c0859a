import { type ComponentProps, useState } from "react";
import { Button } from "./Button";

interface Props {
  onRetry: () => unknown;
  look?: ComponentProps<typeof Button>["look"];
  children?: string;
}

/** Long enough to be seen, because a server that is away refuses at once. */
const seenMs = 500;

/** Tries again what failed, and says so until the result is known. */
export function TryAgain({ onRetry, look, children = "Try again" }: Props) {
  const [trying, setTrying] = useState(false);
  const run = async () => {
    setTrying(true);
    await Promise.allSettled([onRetry(), new Promise((done) => setTimeout(done, seenMs))]);
    setTrying(false);
  };
  return (
    <Button {...(look ? { look } : {})} busy={trying} onClick={() => void run()}>
      {trying ? "Trying…" : children}
    </Button>
  );
}
