import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "@/api/client";
import type { DeviceTrial } from "@/api/types";

/** Seconds for which the server holds a request until something has changed. */
const WAIT_S = 15;

/** A trial; while it runs, each request waits on the server for the next change. */
export const trialQuery = (id: number) =>
  queryOptions({
    queryKey: ["device-trials", id],
    queryFn: ({ signal, client, queryKey }) => {
      const known = client.getQueryData<DeviceTrial>(queryKey);
      const query = known ? { seen: known.changes, wait_s: WAIT_S } : {};
      return dataOf(
        api.GET("/api/v1/device-trials/{trial_id}", { params: { path: { trial_id: id }, query }, signal }),
      );
    },
    refetchInterval: ({ state }) => (state.data?.finished_at ? false : 200),
  });
