import { useMutation, useQueryClient } from "@tanstack/react-query";
import { signOut } from "../api/access";
import { reasonOf } from "../api/errors";
import { useToast } from "../ui/toast";

/** Ends the session and reloads the page, so that nothing of the session is left. */
export function useSignOut() {
  const cache = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: signOut,
    onSuccess: () => {
      cache.clear();
      globalThis.location.assign("/");
    },
    onError: (error) => toast(reasonOf(error), "failed"),
  });
}
