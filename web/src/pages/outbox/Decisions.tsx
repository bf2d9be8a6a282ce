/** What a user may decide about a delivery: approve, change or drop a mail, and send something again. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { deliveryQuery } from "@/api/outboxQueries";
import { useHasScope } from "@/api/session";
import type { DeliveryDetail } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Textarea } from "@/kit";
import { oneLine } from "@/lib/words";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { canDrop, canReplay } from "./labels";
import classes from "./outbox.module.css";

interface DecisionsProps {
  of: DeliveryDetail;
  editing: boolean;
  onEdit(): void;
}

export function Decisions({ of, editing, onEdit }: DecisionsProps) {
  const may = useHasScope();
  const [dialog, openDialog] = useState<"approve" | "drop" | "replay" | null>(null);
  const close = () => openDialog(null);
  const reviews = may("maintain") && of.state === "waiting_for_review";
  return (
    <>
      {reviews && !editing && (
        <>
          <Button size="xs" onClick={() => openDialog("approve")}>
            Approve
          </Button>
          <Button size="xs" variant="default" onClick={onEdit}>
            Edit
          </Button>
        </>
      )}
      {may("maintain") && canDrop(of) && !editing && (
        <Button size="xs" variant="default" onClick={() => openDialog("drop")}>
          Drop
        </Button>
      )}
      {may("submit") && canReplay(of) && (
        <Button size="xs" variant="default" onClick={() => openDialog("replay")}>
          Send again
        </Button>
      )}
      {dialog === "approve" && <Approve of={of} close={close} />}
      {dialog === "drop" && <Drop of={of} close={close} />}
      {dialog === "replay" && <Replay of={of} close={close} />}
    </>
  );
}

interface DialogProps {
  of: DeliveryDetail;
  close(): void;
}

function Approve({ of, close }: DialogProps) {
  const path = { params: { path: { delivery_id: of.id } } };
  const act = useDecision(
    () => dataOf(api.POST("/api/v1/deliveries/{delivery_id}/approve", path)),
    `Mail ${of.id} is approved and will be sent.`,
    close,
  );
  const recipients = [...(of.mail?.to ?? []), ...(of.mail?.cc ?? [])];
  return (
    <ConfirmDialog
      open
      title={`Send mail ${of.id}?`}
      confirm="Approve and send"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>It is sent at once, in your name as the reviewer, to:</p>
      <ul className={classes.recipients}>
        {recipients.map(each => (
          <li key={each}>{oneLine(each)}</li>
        ))}
      </ul>
      <p>A mail that was sent cannot be taken back.</p>
    </ConfirmDialog>
  );
}

function Drop({ of, close }: DialogProps) {
  const [reason, setReason] = useState("");
  const act = useDecision(
    () =>
      dataOf(
        api.POST("/api/v1/deliveries/{delivery_id}/drop", {
          params: { path: { delivery_id: of.id } },
          body: { reason: reason.trim() },
        }),
      ),
    `Mail ${of.id} is dropped.`,
    close,
  );
  return (
    <ConfirmDialog
      open
      title={`Drop mail ${of.id}?`}
      confirm="Drop the mail"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>It is not sent, and cannot be approved later. The report stays as it is.</p>
      <Textarea
        label="Reason"
        description="Shown on this page and in the audit log."
        value={reason}
        onChange={event => setReason(event.currentTarget.value)}
        maxLength={500}
        rows={3}
        data-autofocus
      />
    </ConfirmDialog>
  );
}

function Replay({ of, close }: DialogProps) {
  const path = { params: { path: { delivery_id: of.id } } };
  const act = useDecision(
    () => dataOf(api.POST("/api/v1/deliveries/{delivery_id}/replay", path)),
    `Delivery ${of.id} is sent again.`,
    close,
  );
  return (
    <ConfirmDialog
      open
      title={`Send delivery ${of.id} again?`}
      confirm="Send again"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        It goes to <span className={classes.long}>{oneLine(of.destination)}</span> with the same content and
        its old id. Attempts are counted from the beginning.
      </p>
    </ConfirmDialog>
  );
}

/** Mutation of a delivery. Shows a toast, closes the dialog and updates every list of deliveries. */
function useDecision(change: () => Promise<DeliveryDetail>, done: string, close: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: changed => {
      client.setQueryData(deliveryQuery(changed.id).queryKey, changed);
      toast({ text: done });
      close();
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["deliveries"] }),
  });
}
