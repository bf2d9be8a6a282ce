import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { api, dataOf } from "@/api/client";
import { labsQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import type { LabInvited, LabView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Checkbox, NativeSelect, TextInput } from "@/kit";
import { count } from "@/lib/numbers";
import { absolute } from "@/lib/time";
import { oneLine } from "@/lib/words";
import { Boundary } from "@/parts/Boundary";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { type Column, DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FormError } from "@/parts/FormError";
import { Page, Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Secret } from "@/parts/Secret";
import classes from "./LabsPage.module.css";
import { Storage } from "./Storage";

/** Poll: there are no events for labs. */
const REFRESH_MS = 15_000;
const LIFETIMES = [
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
];

export function LabsPage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  if (!user?.scopes.includes("admin")) {
    return (
      <Page title="Labs">
        <EmptyState title="Only administrators can invite and remove labs" />
      </Page>
    );
  }
  return <Labs />;
}

function Labs() {
  const { data: labs } = useSuspenseQuery({ ...labsQuery, refetchInterval: REFRESH_MS });
  const [invited, setInvited] = useState<LabInvited | null>(null);
  return (
    <Page
      title="Labs and storage"
      lead={
        <>
          {count(labs.filter(each => each.removed_at === null).length, "lab")}. A lab on another machine joins
          with a token that works once. <a href="/docs/labs/">How to prepare the server and the lab's host</a>
        </>
      }
    >
      <LabList labs={labs} />
      <Section id="invite" title="Invite a lab">
        <Invite onInvited={setInvited} />
        {invited && <Invitation of={invited} onDone={() => setInvited(null)} />}
      </Section>
      <Boundary>
        <Storage />
      </Boundary>
    </Page>
  );
}

function Invite({ onInvited }: { onInvited(invited: LabInvited): void }) {
  const client = useQueryClient();
  const invite = useMutation({
    mutationFn: ({ lab, ...body }: { lab: string; valid_s: number; again: boolean }) =>
      dataOf(api.POST("/api/v1/labs/{lab}/invite", { params: { path: { lab } }, body })),
    onSuccess: made => {
      onInvited(made);
      void client.invalidateQueries({ queryKey: labsQuery.queryKey });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    invite.mutate(
      {
        lab: String(data.get("lab")).trim(),
        valid_s: Number(data.get("valid")),
        again: data.has("again"),
      },
      { onSuccess: () => form.reset() },
    );
  };
  return (
    <form className="form-row" onSubmit={submit}>
      <FormError error={invite.error} />
      <TextInput
        name="lab"
        label="Name of the lab"
        placeholder="berlin"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        required
        withAsterisk={false}
        pattern="[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}"
        title="Letters, digits, underscore, dot and dash"
      />
      <NativeSelect name="valid" label="Token is valid for" data={LIFETIMES} defaultValue="3600" />
      <Checkbox name="again" label="Replace the host of a lab that has joined" className={classes.again} />
      <Button type="submit" loading={invite.isPending}>
        Invite
      </Button>
    </form>
  );
}

function Invitation({ of, onDone }: { of: LabInvited; onDone(): void }) {
  const join = `wqlab lab join ${of.url} --token ${of.token}`;
  return (
    <Secret
      onDone={onDone}
      commands={[
        { name: "lab's host", text: `${join} --folder /srv/wqlab --devices 1` },
        { name: "token", text: of.token },
      ]}
    >
      Run this once on the host of lab <strong>{of.lab}</strong>, before {absolute(new Date(of.expires_at))}.
      Copy it now: the token will not be shown again. The command prints what to do next.
    </Secret>
  );
}

function LabList({ labs }: { labs: readonly LabView[] }) {
  const [removed, setRemoved] = useState<LabView | null>(null);
  const columns = useMemo(
    (): Column<LabView>[] => [
      { id: "name", header: "Lab", rowHeader: true, value: of => of.name },
      { id: "backend", header: "Backend", value: of => of.backend },
      {
        id: "joined",
        header: "Joined",
        value: of => of.joined_at,
        cell: of =>
          of.removed_at ? (
            <>
              removed <RelativeTime at={of.removed_at} />
            </>
          ) : (
            <RelativeTime at={of.joined_at} absent="the server's own" />
          ),
      },
      {
        id: "by",
        header: "Invited by",
        value: of => of.invited_by,
      },
      { id: "seen", header: "Last seen", value: of => of.last_seen_at, time: true },
      { id: "devices", header: "Devices", numeric: true, value: of => of.devices },
      { id: "free", header: "Free", numeric: true, value: of => of.free },
      {
        id: "capacity",
        header: "Capacity",
        hint: "Number of devices that its worker runs at once",
        numeric: true,
        value: of => of.capacity,
      },
      { id: "problem", header: "Problem", wrap: true, value: of => oneLine(of.problem) },
      {
        id: "actions",
        header: "Actions",
        bare: true,
        sortable: false,
        value: () => null,
        cell: of =>
          of.joined_at !== null &&
          of.removed_at === null && (
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Remove ${of.name}`}
              onClick={() => setRemoved(of)}
            >
              Remove
            </Button>
          ),
      },
    ],
    [],
  );
  return (
    <>
      <DataTable
        caption="Labs"
        captionHidden
        copyable={false}
        columns={columns}
        rows={labs}
        rowKey={of => of.name}
        narrow="stack"
        empty="No labs."
      />
      {removed && <Remove of={removed} close={() => setRemoved(null)} />}
    </>
  );
}

function Remove({ of, close }: { of: LabView; close(): void }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: () => api.DELETE("/api/v1/labs/{lab}", { params: { path: { lab: of.name } } }),
    onSuccess: () => {
      for (const key of [labsQuery.queryKey, ["devices"]]) void client.invalidateQueries({ queryKey: key });
      toast({ text: `Lab ${of.name} is removed.` });
      close();
    },
  });
  return (
    <ConfirmDialog
      open
      title={`Remove lab ${of.name}?`}
      confirm="Remove the lab"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        Its credentials are revoked at once and its {count(of.devices, "device")} quarantined. Its runs move
        to other devices of their type, if there are any.
      </p>
      <p>To add the lab again, invite it and release its devices.</p>
    </ConfirmDialog>
  );
}
