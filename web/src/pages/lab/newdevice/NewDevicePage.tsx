/** The form for a new machine of a lab, and the trial that it starts. */
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { ApiError } from "@/api/problem";
import { deviceTypesQuery, labsQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import { Autocomplete, Button, Checkbox, NativeSelect, TextInput } from "@/kit";
import { EmptyState } from "@/parts/EmptyState";
import { FormError } from "@/parts/FormError";
import { Page } from "@/parts/Page";
import { type Draft, draftOf, EMPTY, PROTOCOLS, requestOf, SPEEDS } from "./draft";
import classes from "./NewDevice.module.css";
import { KINDS, kindOf, Switch } from "./Switch";
import { TrialView } from "./TrialView";
import { trialQuery } from "./trialQuery";

const route = getRouteApi("/new-device");
const CODE = { autoComplete: "off", autoCapitalize: "none", spellCheck: false } as const;

export function NewDevicePage() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  const { trial } = route.useSearch();
  const navigate = useNavigate();
  const [start, setStart] = useState(EMPTY);
  return (
    <Page
      title="Add a machine"
      trail={<Link to="/lab">Lab</Link>}
      lead={
        <>
          The lab's host tries each step live: console, power, golden system, SSH, kexec and reset.{" "}
          <a href="/docs/hardware/add-machines/">What a machine needs</a>
        </>
      }
    >
      {!user?.scopes.includes("admin") ? (
        <EmptyState title="Only administrators can add machines" action={<Link to="/lab">Lab</Link>}>
          The lab's host connects to the addresses of the form.
        </EmptyState>
      ) : trial === null ? (
        <Form start={start} />
      ) : (
        <TrialView
          key={trial}
          id={trial}
          onAgain={of => {
            setStart(draftOf(of));
            void navigate({ to: "/new-device", search: { trial: null } });
          }}
        />
      )}
    </Page>
  );
}

function Form({ start }: { start: Draft }) {
  const { data: labs } = useSuspenseQuery(labsQuery);
  const { data: types } = useSuspenseQuery(deviceTypesQuery);
  const [typed, setTyped] = useState(start);
  const present = labs.filter(each => each.removed_at === null && each.backend !== "lava");
  const draft = { ...typed, lab: typed.lab || (present[0]?.name ?? "") };
  const begin = useBegin();
  const at = (pointer: string) =>
    begin.error instanceof ApiError
      ? begin.error.problem.errors?.find(each => each.pointer?.endsWith(pointer))?.detail
      : undefined;
  const text = (key: keyof Draft, pointer: string) => ({
    ...CODE,
    value: String(draft[key]),
    onChange: (event: { currentTarget: { value: string } }) => change({ [key]: event.currentTarget.value }),
    error: at(pointer),
    withAsterisk: false,
  });
  const change = (part: Partial<Draft>) => setTyped(before => ({ ...before, ...part }));
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    begin.mutate(requestOf(draft));
  };
  return (
    <form className={classes.form} onSubmit={submit}>
      <FormError error={begin.error} />
      <fieldset className={classes.group}>
        <legend>Machine</legend>
        <TextInput label="Name" required {...text("name", "/device/name")} />
        <Autocomplete
          {...CODE}
          label="Device type"
          description="An existing type, or the name of a new one"
          data={types.filter(each => !each.emulated).map(each => each.name)}
          value={draft.deviceType}
          onChange={value => change({ deviceType: value })}
          error={at("/device/device_type")}
          required
          withAsterisk={false}
        />
        <NativeSelect
          label="Lab"
          data={present.map(each => each.name)}
          value={draft.lab}
          onChange={event => change({ lab: event.currentTarget.value })}
          error={at("/device/lab")}
        />
        <NativeSelect
          label="Architecture"
          data={["x86_64", "arm64"]}
          value={draft.arch}
          onChange={event => change({ arch: event.currentTarget.value === "arm64" ? "arm64" : "x86_64" })}
        />
      </fieldset>
      <fieldset className={classes.group}>
        <legend>Power</legend>
        <NativeSelect
          className={classes.wide}
          label="Switched by"
          data={[...KINDS]}
          value={draft.kind}
          onChange={event => change(kindOf(event.currentTarget.value))}
        />
        <Switch draft={draft} text={text} change={change} />
      </fieldset>
      <fieldset className={classes.group}>
        <legend>Console</legend>
        <TextInput
          className={classes.wide}
          label="Netconsole"
          description="Only for a machine without a serial port: +6665@192.0.2.11/eth0,6666@192.0.2.1/"
          {...text("netconsole", "/device/netconsole")}
        />
        <TextInput
          label={draft.netconsole.trim() ? "Host of wqlab-netconsole" : "Console server's address"}
          required
          {...text("consoleHost", "/console/host")}
        />
        <TextInput label="TCP port" inputMode="numeric" required {...text("consolePort", "/console/port")} />
        {draft.netconsole.trim() === "" && (
          <>
            <NativeSelect
              label="Protocol"
              description="RFC 2217 is ser2net's telnet(rfc2217)"
              data={PROTOCOLS}
              value={draft.protocol}
              onChange={event => change({ protocol: event.currentTarget.value as Draft["protocol"] })}
            />
            <TextInput
              label="Console in the kernel"
              description="ttyS1 for serial over LAN of most servers"
              {...text("consoleDevice", "/boot/console_device")}
            />
            <NativeSelect
              label="Speed"
              description="In baud"
              data={SPEEDS}
              value={draft.speed}
              onChange={event => change({ speed: event.currentTarget.value })}
            />
          </>
        )}
      </fieldset>
      <fieldset className={classes.group}>
        <legend>Boot</legend>
        <TextInput label="Address of the golden system" required {...text("sshHost", "/ssh/host")} />
        <TextInput label="SSH port" inputMode="numeric" {...text("sshPort", "/ssh/port")} />
        <TextInput
          label="Longest boot"
          description="From power on to the golden system, in seconds"
          inputMode="numeric"
          {...text("goldenTimeout", "/boot/golden_timeout_s")}
        />
        <TextInput
          className={classes.wide}
          label="Command that chooses the golden system"
          description="Only for a machine that starts a system of its own by default: grub-reboot wqlab"
          {...text("chooseGolden", "/device/choose_golden")}
        />
        <TextInput
          className={classes.wide}
          label="Scratch disks"
          description="Names in /dev/disk/by-id that plans may overwrite; empty: none"
          {...text("scratch", "/scratch")}
        />
      </fieldset>
      <Checkbox
        label="Write the files when every step passes"
        checked={draft.write}
        onChange={event => change({ write: event.currentTarget.checked })}
      />
      <div>
        <Button type="submit" loading={begin.isPending}>
          Try the machine
        </Button>
      </div>
      <p className={classes.text}>The machine is switched off and on. Nobody else may use it meanwhile.</p>
    </form>
  );
}

function useBegin() {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (body: ReturnType<typeof requestOf>) => dataOf(api.POST("/api/v1/device-trials", { body })),
    onSuccess: trial => {
      client.setQueryData(trialQuery(trial.id).queryKey, trial);
      void navigate({ to: "/new-device", search: { trial: trial.id } });
    },
  });
}
