import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { devicesQuery, deviceTypesQuery, queueQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { DeviceView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Textarea } from "@/kit";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import classes from "./LabPage.module.css";

type Act = "quarantine" | "release" | "check";

/** What a maintainer does with a device; nothing for anybody else. */
export function DeviceActions({ device }: { device: DeviceView }) {
  const may = useMay();
  const [asked, ask] = useState<Act | null>(null);
  if (!may("maintain")) return null;
  const out = device.health === "quarantined";
  const ordered = device.check_requested_at != null || device.health_check != null;
  const close = () => ask(null);
  return (
    <span className={classes.actions}>
      {out ? (
        <Action name={device.name} label="Release" onAsk={() => ask("release")} />
      ) : (
        <>
          <Action
            name={device.name}
            label={ordered ? "Check ordered" : "Check now"}
            disabled={ordered}
            onAsk={() => ask("check")}
          />
          <Action name={device.name} label="Quarantine" onAsk={() => ask("quarantine")} />
        </>
      )}
      {asked === "quarantine" && <Quarantine device={device} close={close} />}
      {asked === "release" && <Release device={device} close={close} />}
      {asked === "check" && <CheckNow device={device} close={close} />}
    </span>
  );
}

interface ActionProps {
  name: string;
  label: string;
  disabled?: boolean;
  onAsk(): void;
}

function Action({ name, label, disabled = false, onAsk }: ActionProps) {
  return (
    <Button
      size="compact-xs"
      variant="default"
      aria-label={`${label}: ${name}`}
      disabled={disabled}
      onClick={onAsk}
    >
      {label}
    </Button>
  );
}

interface DialogProps {
  device: DeviceView;
  close(): void;
}

function Quarantine({ device, close }: DialogProps) {
  const [reason, setReason] = useState("");
  const [missing, setMissing] = useState(false);
  const act = useAct(
    (why: string) =>
      dataOf(
        api.POST("/api/v1/devices/{name}/quarantine", {
          params: { path: { name: device.name } },
          body: { reason: why },
        }),
      ),
    `${device.name} is out of the pool.`,
    close,
  );
  const why = reason.trim();
  return (
    <ConfirmDialog
      open
      title={`Quarantine ${device.name}?`}
      confirm="Quarantine it"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => (why ? act.mutate(why) : setMissing(true))}
      onClose={close}
    >
      <p>
        No run gets it until a maintainer releases it. A run that has it keeps it until it ends; health checks
        that wait for it are canceled.
      </p>
      <Textarea
        label="Why"
        description="Shown with the device, and kept in its history."
        value={reason}
        error={missing && !why && "Say why: others will have to decide when it may come back."}
        onChange={event => setReason(event.currentTarget.value)}
        maxLength={500}
        rows={3}
        data-autofocus
      />
    </ConfirmDialog>
  );
}

function Release({ device, close }: DialogProps) {
  const act = useAct(
    () => dataOf(api.POST("/api/v1/devices/{name}/release", { params: { path: { name: device.name } } })),
    `${device.name} is released; its health check is ordered.`,
    close,
  );
  return (
    <ConfirmDialog
      open
      title={`Release ${device.name}?`}
      confirm="Release it"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      {device.health_reason && <p>It was taken out because: {device.health_reason}</p>}
      <p>A health check is ordered at once. It gets runs again when it has passed.</p>
    </ConfirmDialog>
  );
}

function CheckNow({ device, close }: DialogProps) {
  const act = useAct(
    () =>
      dataOf(api.POST("/api/v1/devices/{name}/health-check", { params: { path: { name: device.name } } })),
    `A health check of ${device.name} is ordered.`,
    close,
  );
  return (
    <ConfirmDialog
      open
      title={`Check ${device.name} now?`}
      confirm="Run the health check"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        {device.lease
          ? "A run has the device: the check begins when that ends, before any other run."
          : "The check begins as soon as the lab's worker takes it, before any other run."}
      </p>
    </ConfirmDialog>
  );
}

/** A change of a device: says that it is done, closes, and has what is shown of devices and queue read anew. */
function useAct<Given = void>(
  change: (given: Given) => Promise<DeviceView>,
  done: string,
  close: () => void,
) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => {
      toast({ text: done });
      close();
    },
    onSettled: () => {
      for (const { queryKey } of [devicesQuery, deviceTypesQuery, queueQuery])
        void client.invalidateQueries({ queryKey });
    },
  });
}
