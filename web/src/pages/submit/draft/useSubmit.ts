import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { api, dataOf } from "@/api/client";
import { ApiError } from "@/api/problem";
import { submissionQuery } from "@/api/queries";
import type { SubmissionRequest } from "@/api/types";
import { toast } from "@/app/toasts";
import { randomKey } from "@/lib/keys";
import { isRequestError } from "../quote/useQuote";
import { clearDraft } from "./draftStorage";
import type { RequestError } from "./fieldErrors";

export interface Submission {
  submit(): void;
  pending: boolean;
  /** Why the request was rejected; null once the form changes. */
  error: Error | null;
  /** Field errors of the rejected request. */
  fieldErrors: readonly RequestError[] | null;
}

/** Submit `request`, identified by `key`. Retrying after a lost response does not create a second submission. */
export function useSubmit(request: SubmissionRequest, key: string): Submission {
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
      clearDraft();
      client.setQueryData(submissionQuery(made.id).queryKey, made);
      void client.invalidateQueries({ queryKey: ["submissions"] });
      toast({ text: `Submission ${made.id} created.` });
      void navigate({ to: "/submissions/$id", params: { id: made.id } });
    },
  });
  const error = sending.variables?.key === key ? sending.error : null;
  const fieldErrors = error instanceof ApiError ? (error.problem.errors ?? []).filter(isRequestError) : null;
  return {
    submit: () => sending.mutate({ request, key }),
    pending: sending.isPending,
    error,
    fieldErrors: fieldErrors && fieldErrors.length > 0 ? fieldErrors : null,
  };
}
