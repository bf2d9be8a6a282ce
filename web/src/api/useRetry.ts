import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { onReconnect } from "./connection";
import { Unreachable } from "./problem";

/**
 * Return a function that requests failed data again and then renders with `reset`. The error stays in view while its
 * data are requested and if they fail again. It is also called when the lab answers again.
 */
export function useRetry(error: unknown, reset: () => void | Promise<void>): () => Promise<void> {
  const client = useQueryClient();
  const [failed] = useState(() =>
    client.getQueryCache().findAll({ predicate: query => query.state.error === error }),
  );
  const retry = async () => {
    await client.refetchQueries({ predicate: query => query.state.status !== "success" });
    if (failed.some(query => query.state.status !== "success")) return;
    await reset();
  };
  useEffect(() => (error instanceof Unreachable ? onReconnect(() => void retry()) : undefined));
  return retry;
}
