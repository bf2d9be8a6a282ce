import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { api, dataOf } from "@/api/client";
import { ApiError } from "@/api/problem";
import { submissionQuery } from "@/api/queries";
import type { SubmissionRequest } from "@/api/types";
import { toast } from "@/app/toasts";
import { isMistake } from "../quote/useQuote";
import type { Mistake } from "./faults";
import { forgetDraft } from "./keep";

export interface Sending {
  submit(): void;
  pending: boolean;
  /** Why it was refused; null once the form is another one. */
  error: Error | null;
  /** The fields' mistakes of that refusal. */
  mistakes: readonly Mistake[] | null;
}

/** Submits `request`, which `key` names. Pressing again after a lost answer makes no second submission. */
export function useSend(request: SubmissionRequest, key: string): Sending {
  const client = useQueryClient();
  const navigate = useNavigate();
  const attempt = useRef({ key: "", idempotency: "" });
  const sending = useMutation({
    mutationFn: (sent: { request: SubmissionRequest; key: string }) => {
      if (attempt.current.key !== sent.key) attempt.current = { key: sent.key, idempotency: randomKey() };
      return dataOf(
        api.POST("/api/v1/submissions", {
          body: sent.request,
          params: { header: { "idempotency-key": attempt.current.idempotency } },
        }),
      );
    },
    onSuccess: made => {
      attempt.current = { key: "", idempotency: "" };
      forgetDraft();
      client.setQueryData(submissionQuery(made.id).queryKey, made);
      void client.invalidateQueries({ queryKey: ["submissions"] });
      toast({ text: `Submission ${made.id} is made.` });
      void navigate({ to: "/submissions/$id", params: { id: made.id } });
    },
  });
  const error = sending.variables?.key === key ? sending.error : null;
  const mistakes = error instanceof ApiError ? (error.problem.errors ?? []).filter(isMistake) : null;
  return {
    submit: () => sending.mutate({ request, key }),
    pending: sending.isPending,
    error,
    mistakes: mistakes && mistakes.length > 0 ? mistakes : null,
  };
}

/** Not `crypto.randomUUID`, which browsers give to pages served with TLS only. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
