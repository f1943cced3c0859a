import { useQuery, useQueryClient } from "@tanstack/react-query";
import { firstVersionKey } from "../api/status";
import { isOutdated } from "../api/version";

const againMs = 60_000;

/**
 * Whether the server has another version of this application than the one that runs here. This is
 * checked when the server reports another version than at first. Replicas may be updated one after
 * another, so the check is repeated until the answer is yes.
 */
export function useOutdated(version: string | undefined): boolean {
  const first = useQueryClient().getQueryData<string>(firstVersionKey);
  const { data } = useQuery({
    queryKey: ["outdated", version],
    queryFn: isOutdated,
    enabled: version !== undefined && first !== undefined && version !== first,
    refetchInterval: ({ state }) => (state.data ? false : againMs),
    refetchIntervalInBackground: true,
    retry: false,
  });
  return data === true;
}
