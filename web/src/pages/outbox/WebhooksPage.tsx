import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, dataOf } from "@/api/client";
import { deliveryQuery, webhooksQuery } from "@/api/outboxQueries";
import { usePaged } from "@/api/paged";
import { sessionQuery } from "@/api/session";
import type { WebhookSecret, WebhookView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { count } from "@/lib/numbers";
import { absolute } from "@/lib/time";
import { oneLine } from "@/lib/words";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Page, Section } from "@/parts/Page";
import { Pager } from "@/parts/Pager";
import { Secret } from "@/parts/Secret";
import { Skeleton } from "@/parts/Skeleton";
import { NewWebhook } from "./NewWebhook";
import classes from "./outbox.module.css";
import { eventsText, filterText } from "./webhook";

const PAGE = 50;
const route = getRouteApi("/webhooks");

export function WebhooksPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  if (!user) {
    return (
      <Page title="Webhooks">
        <EmptyState
          title="You are not signed in"
          action={
            <Link to="/sign-in" search={{ next: "/webhooks" }}>
              Sign in
            </Link>
          }
        />
      </Page>
    );
  }
  return <Webhooks changes={user.scopes.includes("submit")} everyone={user.scopes.includes("admin")} />;
}

/** `changes`: the user may have webhooks; `everyone`: and sees those of all users. */
function Webhooks({ changes, everyone }: { changes: boolean; everyone: boolean }) {
  const { cursor } = route.useSearch();
  const { data: page } = useQuery(webhooksQuery({ limit: PAGE, ...(cursor && { cursor }) }));
  const paged = usePaged(cursor, page, PAGE);
  const [made, setMade] = useState<WebhookSecret | null>(null);
  return (
    <Page
      title="Webhooks"
      lead={
        <>
          The lab posts events as signed JSON to these addresses.{" "}
          <a href="/docs/outbox/#webhooks">Events, signatures and repetitions</a>
        </>
      }
      actions={<Link to="/deliveries">Deliveries</Link>}
    >
      {made && (
        <Secret
          onDone={() => setMade(null)}
          commands={[
            { name: "secret", text: made.secret },
            { name: "shell", text: `export WQLAB_WEBHOOK_SECRET='${made.secret}'` },
          ]}
        >
          Secret of webhook <strong>{made.id}</strong>, with which its receiver verifies signatures. Copy it
          now: it will not be shown again.
          {made.rotating_until &&
            ` Until ${absolute(new Date(made.rotating_until))} events are signed with the previous secret too.`}
        </Secret>
      )}
      {page ? (
        <WebhookList
          webhooks={page.items}
          changes={changes}
          everyone={everyone}
          onSecret={setMade}
          total={page.total}
        />
      ) : (
        <Skeleton lines={4} height="1.8rem" />
      )}
      <Pager paged={paged} shown={page?.items.length ?? 0} total={page?.total ?? 0} />
      {changes ? (
        <Section id="add" title="Add a webhook">
          <NewWebhook everything={everyone} onMade={setMade} />
        </Section>
      ) : (
        <p className="muted">Viewers have no webhooks. Ask an administrator for the role submitter.</p>
      )}
    </Page>
  );
}

interface WebhookListProps {
  webhooks: readonly WebhookView[];
  total: number;
  changes: boolean;
  everyone: boolean;
  onSecret(made: WebhookSecret): void;
}

function WebhookList({ webhooks, total, changes, everyone, onSecret }: WebhookListProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [dialog, openDialog] = useState<{ action: "rotate" | "remove"; of: WebhookView } | null>(null);
  const test = useMutation({
    mutationFn: (of: WebhookView) =>
      dataOf(api.POST("/api/v1/webhooks/{webhook_id}/test", { params: { path: { webhook_id: of.id } } })),
    onSuccess: delivery => {
      client.setQueryData(deliveryQuery(delivery.id).queryKey, delivery);
      void navigate({ to: "/deliveries/$id", params: { id: delivery.id } });
    },
    onError: error => toast({ tone: "bad", text: error.message }),
  });
  const { mutate: sendTest } = test;
  const { mutate: setPaused } = useMutation({
    mutationFn: (of: WebhookView) => {
      const path = { params: { path: { webhook_id: of.id } } };
      return dataOf(
        of.paused_at
          ? api.DELETE("/api/v1/webhooks/{webhook_id}/pause", path)
          : api.PUT("/api/v1/webhooks/{webhook_id}/pause", path),
      );
    },
    onSuccess: ({ id, paused_at }) =>
      toast({
        text: paused_at
          ? `Webhook ${id} is paused: it gets nothing of what happens meanwhile.`
          : `Webhook ${id} gets events again.`,
      }),
    onError: error => toast({ tone: "bad", text: error.message }),
    onSettled: () => client.invalidateQueries({ queryKey: ["webhooks"] }),
  });
  const columns = useMemo(
    (): Column<WebhookView>[] => [
      {
        id: "url",
        header: "URL",
        rowHeader: true,
        value: of => of.url,
        cell: of => <code className={classes.long}>{oneLine(of.url)}</code>,
      },
      { id: "id", header: "Number", numeric: true, value: of => of.id },
      ...(everyone ? [{ id: "owner", header: "Owner", value: (of: WebhookView) => of.owner }] : []),
      {
        id: "events",
        header: "Events",
        wrap: true,
        value: of => eventsText(of.events) + (of.paused_at ? " (paused)" : ""),
        cell: of => (
          <>
            {eventsText(of.events)}
            {of.paused_at && <strong> (paused)</strong>}
          </>
        ),
      },
      { id: "only", header: "Only", wrap: true, value: of => filterText(of.filter) },
      { id: "created", header: "Created", value: of => of.created_at, time: true },
      {
        id: "actions",
        header: "Actions",
        bare: true,
        sortable: false,
        value: () => null,
        cell: of => (
          <span className={classes.actions}>
            <Link to="/deliveries" search={{ webhook: of.id }} aria-label={`Deliveries of webhook ${of.id}`}>
              Deliveries
            </Link>
            {changes && (
              <>
                <Action label="Test" of={of} onPress={() => sendTest(of)} />
                <Action label={of.paused_at ? "Resume" : "Pause"} of={of} onPress={() => setPaused(of)} />
                <Action label="New secret" of={of} onPress={() => openDialog({ action: "rotate", of })} />
                <Action label="Remove" of={of} onPress={() => openDialog({ action: "remove", of })} />
              </>
            )}
          </span>
        ),
      },
    ],
    [everyone, changes, sendTest, setPaused],
  );
  if (webhooks.length === 0) {
    return (
      <EmptyState title="No webhooks">
        {changes ? "Add one below to get the lab's events by HTTP." : "There is nothing to see here."}
      </EmptyState>
    );
  }
  return (
    <>
      <DataTable
        caption={count(total, "webhook")}
        copyable={false}
        columns={columns}
        rows={webhooks}
        rowKey={of => of.id}
        narrow="stack"
      />
      {dialog?.action === "rotate" && (
        <Rotate of={dialog.of} onSecret={onSecret} close={() => openDialog(null)} />
      )}
      {dialog?.action === "remove" && <Remove of={dialog.of} close={() => openDialog(null)} />}
    </>
  );
}

function Action({ label, of, onPress }: { label: string; of: WebhookView; onPress(): void }) {
  return (
    <Button size="compact-xs" variant="default" aria-label={`${label}: webhook ${of.id}`} onClick={onPress}>
      {label}
    </Button>
  );
}

interface RotateProps {
  of: WebhookView;
  onSecret(made: WebhookSecret): void;
  close(): void;
}

function Rotate({ of, onSecret, close }: RotateProps) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: () =>
      dataOf(api.POST("/api/v1/webhooks/{webhook_id}/rotate", { params: { path: { webhook_id: of.id } } })),
    onSuccess: made => {
      void client.invalidateQueries({ queryKey: ["webhooks"] });
      onSecret(made);
      close();
    },
  });
  return (
    <ConfirmDialog
      open
      title={`Make a new secret for webhook ${of.id}?`}
      confirm="Make a new secret"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        For a day events are signed with the current secret too, so that you can replace it at the receiver
        without losing an event. A secret that is being replaced already is no longer used.
      </p>
    </ConfirmDialog>
  );
}

function Remove({ of, close }: { of: WebhookView; close(): void }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: () =>
      dataOf(api.DELETE("/api/v1/webhooks/{webhook_id}", { params: { path: { webhook_id: of.id } } })),
    onSuccess: () => {
      for (const key of ["webhooks", "deliveries"]) void client.invalidateQueries({ queryKey: [key] });
      toast({ text: `Webhook ${of.id} is removed.` });
      close();
    },
  });
  return (
    <ConfirmDialog
      open
      title={`Remove webhook ${of.id}?`}
      confirm="Remove the webhook"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        Nothing is posted to <span className={classes.long}>{oneLine(of.url)}</span> any more, and what waits
        for it is dropped. Its past deliveries stay listed.
      </p>
    </ConfirmDialog>
  );
}
