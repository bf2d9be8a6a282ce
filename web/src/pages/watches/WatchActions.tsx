/** What people do with a watch: look now, enable it, after one has seen what it would take, disable, change, remove. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { useHasScope } from "@/api/session";
import type { ListWatch, WatchPreview, WatchView } from "@/api/types";
import { previewQuery, watchesQuery, watchQuery } from "@/api/watchQueries";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { oneLine } from "@/lib/words";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { FormError } from "@/parts/FormError";
import { Scroll } from "@/parts/Scroll";
import { DaysForm, PreviewText, Reading } from "./Preview";
import { FormLink } from "./parts";
import { DAYS } from "./search";
import classes from "./watches.module.css";

/** Number of series that the dialog lists; the page lists all. */
const LISTED = 20;

type Act = "check" | "enable" | "disable";
const PATHS = {
  check: "/api/v1/watches/{name}/check",
  enable: "/api/v1/watches/{name}/enable",
  disable: "/api/v1/watches/{name}/disable",
} as const;
const DONE: Record<Act, string> = {
  check: "The lab looks for new heads; they are here some seconds later.",
  enable: "The watch is enabled.",
  disable: "The watch is disabled. What is being measured ends.",
};

/** Buttons for maintainers, and those that change the watch for administrators. */
export function WatchActions({ view }: { view: WatchView }) {
  const may = useHasScope();
  const [open, setOpen] = useState<"enable" | "disable" | "remove" | null>(null);
  const { name, kind } = view.spec;
  const act = useAct(name);
  const close = () => setOpen(null);
  if (!may("maintain")) return null;
  const enabled = view.enabled_at !== null;
  return (
    <>
      {enabled && kind === "tree" && (
        <Button size="xs" loading={act.isPending} onClick={() => act.mutate("check")}>
          Look now
        </Button>
      )}
      {enabled ? (
        <Button size="xs" variant="default" onClick={() => setOpen("disable")}>
          Disable
        </Button>
      ) : (
        <Button
          size="xs"
          loading={act.isPending}
          onClick={() => (kind === "list" ? setOpen("enable") : act.mutate("enable"))}
        >
          Enable
        </Button>
      )}
      {may("admin") && !view.from_file && (
        <>
          <FormLink to="/watches/$name" params={{ name }}>
            Change
          </FormLink>
          <Button size="xs" variant="default" onClick={() => setOpen("remove")}>
            Remove
          </Button>
        </>
      )}
      {open === "enable" && view.spec.kind === "list" && <Enable spec={view.spec} close={close} />}
      {open === "disable" && <Disable name={name} close={close} />}
      {open === "remove" && <Remove name={name} close={close} />}
    </>
  );
}

interface DialogProps {
  name: string;
  close(): void;
}

function Enable({ spec, close }: { spec: ListWatch; close(): void }) {
  const [days, setDays] = useState(DAYS);
  const { data: preview, error } = useQuery(previewQuery(spec, days));
  const act = useAct(spec.name, close);
  const failed = Boolean(error) || preview?.failure != null;
  const seen = preview?.state === "finished";
  return (
    <ConfirmDialog
      open
      title={`Enable ${spec.name}?`}
      confirm={failed ? "Enable without a preview" : "Enable"}
      busy={act.isPending || !(seen || failed)}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate("enable")}
      onClose={close}
    >
      <p>
        It takes series whose last patch arrives from now on, and spends the quota of {oneLine(spec.owner)}.
        This is what it would have taken:
      </p>
      <DaysForm days={days} shown onDays={setDays} />
      {error && !preview ? (
        <FormError error={error} />
      ) : seen ? (
        <Seen preview={preview} />
      ) : (
        <Reading preview={preview} />
      )}
    </ConfirmDialog>
  );
}

function Seen({ preview }: { preview: WatchPreview }) {
  if (preview.failure) {
    return (
      <p role="alert">The list could not be read, so that nobody knows: {oneLine(preview.failure.summary)}</p>
    );
  }
  const taken = (preview.found?.series ?? []).filter(each => each.taken);
  return (
    <>
      <PreviewText preview={preview} />
      {taken.length > 0 && (
        <Scroll name="Series that it would have taken" className={classes.subjects}>
          <ul>
            {taken.slice(0, LISTED).map(each => (
              <li key={each.message_id}>{oneLine(each.subject)}</li>
            ))}
            {taken.length > LISTED && <li className="muted">{taken.length - LISTED} more</li>}
          </ul>
        </Scroll>
      )}
    </>
  );
}

function Disable({ name, close }: DialogProps) {
  const act = useAct(name, close);
  return (
    <ConfirmDialog
      open
      title={`Disable ${name}?`}
      confirm="Disable"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate("disable")}
      onClose={close}
    >
      <p>
        Nothing new is looked for or submitted; series that wait are not taken. What is being measured ends.
      </p>
    </ConfirmDialog>
  );
}

/** `close`: closes the dialog that shows the error; without one, a toast does. */
function useAct(name: string, close?: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (act: Act) => dataOf(api.POST(PATHS[act], { params: { path: { name } } })),
    onSuccess: (changed, act) => {
      client.setQueryData(watchQuery(name).queryKey, changed);
      toast({ text: DONE[act] });
      close?.();
    },
    onError: error => {
      if (!close) toast({ tone: "bad", text: error.message });
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["watches"] }),
  });
}

function Remove({ name, close }: DialogProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const act = useMutation({
    mutationFn: () => api.DELETE("/api/v1/watches/{name}", { params: { path: { name } } }),
    onSuccess: async () => {
      toast({ text: `Watch ${name} is removed.` });
      await navigate({ to: "/watches" });
      client.removeQueries({ queryKey: watchQuery(name).queryKey });
      void client.invalidateQueries({ queryKey: watchesQuery.queryKey });
    },
  });
  return (
    <ConfirmDialog
      open
      title={`Remove ${name}?`}
      confirm="Remove the watch"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        It takes nothing any more, and series that wait are not taken. What is being measured ends. Its
        decisions or heads are kept: if it is added again, nothing is measured twice.
      </p>
    </ConfirmDialog>
  );
}
