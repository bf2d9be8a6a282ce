import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { devicesQuery, deviceTypesQuery, queueQuery } from "@/api/queries";
import { useHasScope } from "@/api/session";
import type { DeviceView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Textarea } from "@/kit";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import classes from "./LabPage.module.css";

type Action = "quarantine" | "release" | "check";

/** Buttons to quarantine, release or check a device. Renders nothing without the maintain scope. */
export function DeviceActions({ device }: { device: DeviceView }) {
  const may = useHasScope();
  const [dialog, openDialog] = useState<Action | null>(null);
  if (!may("maintain")) return null;
  const quarantined = device.health === "quarantined";
  const requested = device.check_requested_at != null || device.health_check != null;
  const close = () => openDialog(null);
  return (
    <span className={classes.actions}>
      {quarantined ? (
        <ActionButton name={device.name} label="Release" onPress={() => openDialog("release")} />
      ) : (
        <>
          <ActionButton
            name={device.name}
            label={requested ? "Check requested" : "Check now"}
            disabled={requested}
            onPress={() => openDialog("check")}
          />
          <ActionButton name={device.name} label="Quarantine" onPress={() => openDialog("quarantine")} />
        </>
      )}
      {dialog === "quarantine" && <Quarantine device={device} close={close} />}
      {dialog === "release" && <Release device={device} close={close} />}
      {dialog === "check" && <CheckNow device={device} close={close} />}
    </span>
  );
}

interface ActionButtonProps {
  name: string;
  label: string;
  disabled?: boolean;
  onPress(): void;
}

function ActionButton({ name, label, disabled = false, onPress }: ActionButtonProps) {
  return (
    <Button
      size="compact-xs"
      variant="default"
      aria-label={`${label}: ${name}`}
      disabled={disabled}
      onClick={onPress}
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
  const act = useDeviceAction(
    (why: string) =>
      dataOf(
        api.POST("/api/v1/devices/{name}/quarantine", {
          params: { path: { name: device.name } },
          body: { reason: why },
        }),
      ),
    `${device.name} quarantined.`,
    close,
  );
  const why = reason.trim();
  return (
    <ConfirmDialog
      open
      title={`Quarantine ${device.name}?`}
      confirm="Quarantine"
      dangerous
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => (why ? act.mutate(why) : setMissing(true))}
      onClose={close}
    >
      <p>
        The device will not be assigned to runs until a maintainer releases it. A run that holds it continues
        until it ends; queued health checks for it are canceled.
      </p>
      <Textarea
        label="Reason"
        description="Shown on the device's page and kept in its history."
        value={reason}
        error={
          missing && !why && "Enter a reason. Other maintainers need it to decide when to release the device."
        }
        onChange={event => setReason(event.currentTarget.value)}
        maxLength={500}
        rows={3}
        data-autofocus
      />
    </ConfirmDialog>
  );
}

function Release({ device, close }: DialogProps) {
  const act = useDeviceAction(
    () => dataOf(api.POST("/api/v1/devices/{name}/release", { params: { path: { name: device.name } } })),
    `${device.name} released. A health check was requested.`,
    close,
  );
  return (
    <ConfirmDialog
      open
      title={`Release ${device.name}?`}
      confirm="Release"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      {device.health_reason && <p>Quarantine reason: {device.health_reason}</p>}
      <p>A health check is requested immediately. The device is assigned to runs again once it passes.</p>
    </ConfirmDialog>
  );
}

function CheckNow({ device, close }: DialogProps) {
  const act = useDeviceAction(
    () => dataOf(api.POST("/api/v1/devices/{name}/check", { params: { path: { name: device.name } } })),
    `Health check of ${device.name} requested.`,
    close,
  );
  return (
    <ConfirmDialog
      open
      title={`Check ${device.name} now?`}
      confirm="Run health check"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        {device.lease
          ? "The device is in use. The check starts when the current run ends, before any other run."
          : "The check starts as soon as the lab's worker picks it up, before any other run."}
      </p>
    </ConfirmDialog>
  );
}

/** Mutation of a device. Shows a toast, closes the dialog and refetches devices and the queue. */
function useDeviceAction<Body = void>(
  change: (body: Body) => Promise<unknown>,
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
