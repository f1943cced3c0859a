import { Link } from "@tanstack/react-router";
import type { Silence } from "../api/client";
import { counted } from "../ui/words";

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
