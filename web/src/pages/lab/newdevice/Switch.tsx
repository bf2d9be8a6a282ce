/** The fields of a machine's power switch, by its kind. */
import type { ComponentProps } from "react";
import { NativeSelect, TextInput } from "@/kit";
import { type Draft, EMPTY, MODELS } from "./draft";
import classes from "./NewDevice.module.css";

export const KINDS: readonly { value: Draft["kind"]; label: string }[] = [
  { value: "ipmi", label: "BMC (IPMI over LAN)" },
  { value: "redfish", label: "BMC (Redfish)" },
  { value: "pdu", label: "Outlet of a switched PDU" },
  { value: "debug_cable", label: "Chromebook's debug cable (dut-control)" },
];
const PASSWORDS: Partial<Record<Draft["kind"], string>> = {
  ipmi: "/etc/wqlab/ipmi-password",
  redfish: "/etc/wqlab/redfish-password",
};

/** Return what changes with the kind of switch: the password's file is another, and Chromebooks are arm64. */
export function kindOf(chosen: string): Partial<Draft> {
  const kind = KINDS.find(each => each.value === chosen)?.value ?? EMPTY.kind;
  return {
    kind,
    ...(PASSWORDS[kind] ? { passwordFile: PASSWORDS[kind] } : {}),
    ...(kind === "debug_cable" ? { arch: "arm64" as const } : {}),
  };
}

interface SwitchProps {
  draft: Draft;
  /** Properties of the field of a value, whose errors the server reports at the pointer. */
  text: (key: keyof Draft, pointer: string) => ComponentProps<typeof TextInput>;
  change: (part: Partial<Draft>) => void;
}

export function Switch({ draft, text, change }: SwitchProps) {
  switch (draft.kind) {
    case "ipmi":
      return (
        <>
          <TextInput label="BMC's address" required {...text("bmc", "/power/ipmi/host")} />
          <TextInput label="UDP port" inputMode="numeric" {...text("bmcPort", "/power/ipmi/port")} />
          <TextInput label="User" required {...text("user", "/power/ipmi/user")} />
          <TextInput
            label="Cipher suite"
            description="3 for old BMCs"
            inputMode="numeric"
            {...text("cipher", "/power/ipmi/cipher")}
          />
          <PasswordFile kind="ipmi" text={text} />
        </>
      );
    case "redfish":
      return (
        <>
          <TextInput label="BMC's address" required {...text("bmc", "/power/redfish/host")} />
          <TextInput label="HTTPS port" inputMode="numeric" {...text("httpsPort", "/power/redfish/port")} />
          <TextInput label="User" required {...text("user", "/power/redfish/user")} />
          <TextInput
            label="System"
            description="If the BMC has several"
            {...text("system", "/power/redfish/system")}
          />
          <PasswordFile kind="redfish" text={text} />
          <TextInput
            className={classes.wide}
            label="Certificate file"
            description="The BMC's own certificate, in the same folders. Empty: an authority has signed it."
            {...text("certificate", "/power/redfish/certificate")}
          />
        </>
      );
    case "debug_cable":
      return (
        <TextInput
          className={classes.wide}
          label="Port of servod"
          description="Of this cable, on the lab's host"
          inputMode="numeric"
          required
          {...text("servoPort", "/power/debug_cable/port")}
        />
      );
    case "pdu":
      return (
        <>
          <TextInput label="PDU's address" required {...text("pdu", "/power/pdu/host")} />
          <NativeSelect
            label="Model"
            description="As labgrid names it"
            data={[...MODELS]}
            value={draft.model}
            onChange={event =>
              change({ model: MODELS.find(each => each === event.currentTarget.value) ?? "apc" })
            }
          />
          <TextInput label="Outlet" inputMode="numeric" required {...text("outlet", "/power/pdu/outlet")} />
        </>
      );
  }
}

function PasswordFile({ kind, text }: { kind: "ipmi" | "redfish"; text: SwitchProps["text"] }) {
  return (
    <TextInput
      className={classes.wide}
      label="Password file"
      description="On the lab's host, in /etc/wqlab or in passwords/ of its state folder. The password itself is never sent."
      required
      {...text("passwordFile", `/power/${kind}/password_file`)}
    />
  );
}
