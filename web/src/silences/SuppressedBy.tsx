import { Link } from "@tanstack/react-router";
import type { Silence } from "../api/client";
import { counted } from "../ui/words";

/** The digests that a silence has sent, with a link to them, or that it will. */
export function Digests({ silence: { id, digest, digests, state } }: { silence: Silence }) {
  if (digests > 0) {
    return (
      <Link to="/deliveries" search={{ digestsOf: [id] }}>
        {counted(digests, "digest")}
      </Link>
    );
  }
  if (!digest) return null;
  return state === "PAST" ? "no digest" : "digest at the end";
}

/** How many messages a silence has suppressed, with a link to them. */
export function SuppressedBy({ silence: { id, suppressed } }: { silence: Silence }) {
  const words = counted(suppressed, "message");
  if (suppressed === 0) return words;
  return (
    <Link to="/deliveries" search={{ silence: [id] }}>
      {words}
    </Link>
  );
}
