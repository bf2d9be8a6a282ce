import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useLocation, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { submissionsQuery } from "@/api/queries";
import { useHasScope, useSession } from "@/api/session";
import type { SessionView, SubmissionSteps } from "@/api/types";
import { toast } from "@/app/toasts";
import { TextInput } from "@/kit";
import { count } from "@/lib/numbers";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import classes from "./SubmissionPage.module.css";

/** Report link once finished; cancel and retry, on request with more blocks, for the owner and maintainers. */
export function Actions({ steps }: { steps: SubmissionSteps }) {
  const { retry } = getRouteApi("/submissions/$id").useSearch();
  const { submission, cancel_requested_at } = steps;
  const session = useSession();
  const may = useHasScope();
  const [dialog, openDialog] = useState<"cancel" | "retry" | null>(retry === null ? null : "retry");
  const finished = submission.state === "finished";
  const href = useLocation({ select: location => location.href });
  const own = may("submit") && (session?.user?.name === submission.owner || may("maintain"));
  const close = () => openDialog(null);
  return (
    <>
      {finished && (
        <Link to="/r/$id" params={{ id: submission.id }} className="button" data-look="primary">
          View report
        </Link>
      )}
      {retry !== null && finished && session && !own && (
        <RetryRefused session={session} owner={submission.owner} blocks={retry} next={href} />
      )}
      {own && finished && (
        <button type="button" className={`button ${classes.action}`} onClick={() => openDialog("retry")}>
          Retry
        </button>
      )}
      {own && <Pin id={submission.id} pinned={Boolean(submission.pinned_at)} />}
      {own && !finished && (
        <button
          type="button"
          className={`button ${classes.action}`}
          disabled={cancel_requested_at !== null}
          onClick={() => openDialog("cancel")}
        >
          {cancel_requested_at === null ? "Cancel" : "Canceling"}
        </button>
      )}
      <Cancel id={submission.id} open={dialog === "cancel" && !finished} close={close} />
      <Retry id={submission.id} open={dialog === "retry" && own && finished} close={close} proposed={retry} />
    </>
  );
}

interface RetryRefusedProps {
  session: SessionView;
  owner: string;
  blocks: number;
  next: string;
}

/** What a link of a mail, which proposes to run more blocks, needs of a reader who may not. */
function RetryRefused({ session, owner, blocks, next }: RetryRefusedProps) {
  const what = `run ${count(blocks, "block")}`;
  return session.user ? (
    <span className="muted">
      Only {owner} and maintainers can {what}.
    </span>
  ) : (
    <Link to="/sign-in" search={{ next }} className="button" data-look="primary">
      Sign in to {what}
    </Link>
  );
}

/** Keep the files of a submission whatever their age, or no longer. */
function Pin({ id, pinned }: { id: number; pinned: boolean }) {
  const client = useQueryClient();
  const params = { params: { path: { submission_id: id } } };
  const change = useMutation({
    mutationFn: () =>
      pinned
        ? dataOf(api.DELETE("/api/v1/submissions/{submission_id}/pin", params))
        : dataOf(api.PUT("/api/v1/submissions/{submission_id}/pin", params)),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["submission", id] });
      toast({
        text: pinned
          ? `Submission ${id} is unpinned.`
          : `Submission ${id} is pinned: its kernels, logs and consoles are kept.`,
      });
    },
    onError: error => toast({ text: error.message }),
  });
  return (
    <button
      type="button"
      className={`button ${classes.action}`}
      disabled={change.isPending}
      title="A pinned submission keeps its kernels, logs and consoles, whatever their age"
      onClick={() => change.mutate()}
    >
      {pinned ? "Unpin" : "Pin"}
    </button>
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
      confirm="Cancel submission"
      dangerous
      busy={cancel.isPending}
      error={cancel.error?.message}
      onConfirm={() => cancel.mutate()}
      onClose={() => {
        cancel.reset();
        close();
      }}
    >
      <p>
        Queued work is dropped, running work is stopped and its devices are released. There will be no
        verdict.
      </p>
      <p>
        Consoles and samples recorded so far are kept. A canceled submission cannot be resumed; use Retry to
        submit it again.
      </p>
    </ConfirmDialog>
  );
}

function Retry({ id, open, close, proposed }: DialogProps & { proposed: number | null }) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [blocks, setBlocks] = useState(proposed === null ? "" : `${proposed}`);
  const retry = useMutation({
    mutationFn: () => {
      const query = blocks.trim() === "" ? {} : { blocks: Number(blocks) };
      const params = { path: { submission_id: id }, query };
      return dataOf(api.POST("/api/v1/submissions/{submission_id}/retry", { params }));
    },
    onSuccess: again => {
      void client.invalidateQueries({ queryKey: submissionsQuery({}).queryKey.slice(0, 1) });
      toast({ text: `Submission ${again.id} created.` });
      close();
      void navigate({ to: "/submissions/$id", params: { id: again.id } });
    },
  });
  return (
    <ConfirmDialog
      open={open}
      title={`Retry submission ${id}?`}
      confirm="Retry"
      busy={retry.isPending}
      error={retry.error?.message}
      onConfirm={() => retry.mutate()}
      onClose={() => {
        retry.reset();
        close();
      }}
    >
      <p>
        This creates a new submission with the same request, owned by you. Existing kernel builds are reused;
        all boots are repeated.
      </p>
      <p>Submission {id} and its report are kept.</p>
      <TextInput
        label="Blocks"
        description="More blocks detect smaller differences."
        placeholder="as before"
        type="number"
        min={1}
        max={100}
        value={blocks}
        onChange={event => setBlocks(event.currentTarget.value)}
        autoComplete="off"
      />
    </ConfirmDialog>
  );
}
