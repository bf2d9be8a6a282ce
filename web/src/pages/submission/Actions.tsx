import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { submissionsQuery } from "@/api/queries";
import { useMay, useSession } from "@/api/session";
import type { SubmissionSteps } from "@/api/types";
import { toast } from "@/app/toasts";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import classes from "./SubmissionPage.module.css";

/** The report once there is one; cancel and retry for the owner and for maintainers. */
export function Actions({ steps }: { steps: SubmissionSteps }) {
  const { submission, cancel_requested_at } = steps;
  const session = useSession();
  const may = useMay();
  const [asked, ask] = useState<"cancel" | "retry" | null>(null);
  const finished = submission.state === "finished";
  const own = may("submit") && (session?.user?.name === submission.owner || may("maintain"));
  const close = () => ask(null);
  return (
    <>
      {finished && (
        <Link to="/submissions/$id/report" params={{ id: submission.id }} className={classes.primary}>
          Read the report
        </Link>
      )}
      {own && finished && (
        <button type="button" className={classes.button} onClick={() => ask("retry")}>
          Retry
        </button>
      )}
      {own && !finished && (
        <button
          type="button"
          className={classes.button}
          disabled={cancel_requested_at !== null}
          onClick={() => ask("cancel")}
        >
          {cancel_requested_at === null ? "Cancel" : "Canceling"}
        </button>
      )}
      <Cancel id={submission.id} open={asked === "cancel" && !finished} close={close} />
      <Retry id={submission.id} open={asked === "retry"} close={close} />
    </>
  );
}

interface DialogProps {
  id: number;
  open: boolean;
  close(): void;
}

function Cancel({ id, open, close }: DialogProps) {
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/submissions/{submission_id}/cancel", { params: { path: { submission_id: id } } }),
      ),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["submission", id] });
      void client.invalidateQueries({ queryKey: submissionsQuery({}).queryKey.slice(0, 1) });
      toast({ text: `Submission ${id} is being canceled.` });
      close();
    },
  });
  return (
    <ConfirmDialog
      open={open}
      title={`Cancel submission ${id}?`}
      confirm="Cancel it"
      dangerous
      busy={cancel.isPending}
      error={cancel.error?.message}
      onConfirm={() => cancel.mutate()}
      onClose={() => {
        cancel.reset();
        close();
      }}
    >
      <p>Nothing new starts, devices at work are given back, and there will be no verdict.</p>
      <p>Consoles and samples so far stay to be read. It cannot be resumed, only submitted again.</p>
    </ConfirmDialog>
  );
}

function Retry({ id, open, close }: DialogProps) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const retry = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/submissions/{submission_id}/retry", { params: { path: { submission_id: id } } }),
      ),
    onSuccess: again => {
      void client.invalidateQueries({ queryKey: submissionsQuery({}).queryKey.slice(0, 1) });
      toast({ text: `Submitted again as ${again.id}.` });
      close();
      void navigate({ to: "/submissions/$id", params: { id: again.id } });
    },
  });
  return (
    <ConfirmDialog
      open={open}
      title={`Submit ${id} again?`}
      confirm="Submit again"
      busy={retry.isPending}
      error={retry.error?.message}
      onConfirm={() => retry.mutate()}
      onClose={() => {
        retry.reset();
        close();
      }}
    >
      <p>
        The same request, as a new submission of yours. Kernels that were built are used again; all boots are
        made anew.
      </p>
      <p>This submission and its report stay as they are.</p>
    </ConfirmDialog>
  );
}
