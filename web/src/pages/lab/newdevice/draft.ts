/** What is typed about a new machine, and the request that it makes. */
import type { DeviceTrial, DeviceTrialRequest } from "@/api/types";

export type Device = DeviceTrialRequest["device"];
type Power = Device["power"];
export type Pdu = Extract<Power, { model: unknown }>;

export interface Draft {
  name: string;
  deviceType: string;
  lab: string;
  arch: NonNullable<Device["arch"]>;
  kind: Power["kind"];
  bmc: string;
  bmcPort: string;
  user: string;
  passwordFile: string;
  cipher: string;
  httpsPort: string;
  certificate: string;
  system: string;
  servoPort: string;
  model: Pdu["model"];
  pdu: string;
  outlet: string;
  netconsole: string;
  consoleHost: string;
  consolePort: string;
  protocol: NonNullable<Device["console"]["protocol"]>;
  consoleDevice: string;
  speed: string;
  sshHost: string;
  sshPort: string;
  chooseGolden: string;
  goldenTimeout: string;
  scratch: string;
  write: boolean;
}

export const MODELS: readonly Pdu["model"][] = [
  ...(["apc", "digipower", "eaton", "eth008", "gude", "gude24", "gude8031", "gude8225", "gude8316"] as const),
  ...(["netio", "netio_kshell", "pe6216", "raritan", "sentry", "shelly_gen1", "shelly_gen2"] as const),
];
export const PROTOCOLS = [
  { value: "raw", label: "raw" },
  { value: "rfc2217", label: "RFC 2217" },
];
export const SPEEDS = ["9600", "19200", "38400", "57600", "115200", "921600", "1500000"];

export const EMPTY: Draft = {
  name: "",
  deviceType: "",
  lab: "",
  arch: "x86_64",
  kind: "ipmi",
  bmc: "",
  bmcPort: "623",
  user: "lab",
  passwordFile: "/etc/wqlab/ipmi-password",
  cipher: "17",
  httpsPort: "443",
  certificate: "",
  system: "",
  servoPort: "9999",
  model: "apc",
  pdu: "",
  outlet: "1",
  netconsole: "",
  consoleHost: "",
  consolePort: "",
  protocol: "raw",
  consoleDevice: "ttyS0",
  speed: "115200",
  sshHost: "",
  sshPort: "22",
  chooseGolden: "",
  goldenTimeout: "300",
  scratch: "",
  write: true,
};

function powerOf(draft: Draft): Power {
  const bmc = { host: draft.bmc.trim(), user: draft.user.trim(), password_file: draft.passwordFile.trim() };
  switch (draft.kind) {
    case "ipmi":
      return { kind: "ipmi", ...bmc, port: number(draft.bmcPort), cipher: number(draft.cipher) };
    case "redfish":
      return {
        kind: "redfish",
        ...bmc,
        port: number(draft.httpsPort),
        certificate: draft.certificate.trim() || null,
        system: draft.system.trim() || null,
      };
    case "debug_cable":
      return { kind: "debug_cable", port: number(draft.servoPort) };
    case "pdu":
      return { kind: "pdu", model: draft.model, host: draft.pdu.trim(), outlet: number(draft.outlet) };
  }
}

/** Return the request; the server reports what is wrong with its fields. */
export function requestOf(draft: Draft): DeviceTrialRequest {
  const device: Device = {
    name: draft.name.trim(),
    device_type: draft.deviceType.trim(),
    lab: draft.lab,
    arch: draft.arch,
    power: powerOf(draft),
    netconsole: draft.netconsole.trim() || null,
    console: {
      host: draft.consoleHost.trim(),
      port: number(draft.consolePort),
      protocol: draft.netconsole.trim() ? "raw" : draft.protocol,
    },
    ssh: { host: draft.sshHost.trim(), port: number(draft.sshPort) },
    choose_golden: draft.chooseGolden.trim() || null,
    boot: {
      console_device: draft.consoleDevice.trim(),
      console_speed: number(draft.speed) as NonNullable<Device["boot"]>["console_speed"],
      golden_timeout_s: number(draft.goldenTimeout),
    },
    scratch: draft.scratch
      .split(/\s+/)
      .filter(Boolean)
      .map(each => each.replace("/dev/disk/by-id/", "")),
  };
  return { device, write: draft.write };
}

function draftOfPower(power: Power): Partial<Draft> {
  switch (power.kind) {
    case "ipmi":
      return {
        ...draftOfBmc(power),
        kind: "ipmi",
        bmcPort: String(power.port ?? EMPTY.bmcPort),
        cipher: String(power.cipher ?? EMPTY.cipher),
      };
    case "redfish":
      return {
        ...draftOfBmc(power),
        kind: "redfish",
        httpsPort: String(power.port ?? EMPTY.httpsPort),
        certificate: power.certificate ?? "",
        system: power.system ?? "",
      };
    case "debug_cable":
      return { kind: "debug_cable", servoPort: String(power.port ?? EMPTY.servoPort) };
    default:
      return { kind: "pdu", model: power.model, pdu: power.host, outlet: String(power.outlet) };
  }
}

function draftOfBmc(power: { host: string; user: string; password_file: string }): Partial<Draft> {
  return { bmc: power.host, user: power.user, passwordFile: power.password_file };
}

/** Return the draft of a trial, to change what failed and try again. */
export function draftOf(trial: DeviceTrial): Draft {
  const { device } = trial;
  const { power, boot } = device;
  return {
    ...EMPTY,
    name: device.name,
    deviceType: device.device_type,
    lab: device.lab ?? "",
    arch: device.arch ?? EMPTY.arch,
    ...draftOfPower(power),
    netconsole: device.netconsole ?? "",
    consoleHost: device.console.host,
    consolePort: String(device.console.port),
    protocol: device.console.protocol ?? EMPTY.protocol,
    consoleDevice: boot?.console_device ?? EMPTY.consoleDevice,
    speed: String(boot?.console_speed ?? EMPTY.speed),
    sshHost: device.ssh.host,
    sshPort: String(device.ssh.port),
    chooseGolden: device.choose_golden ?? "",
    goldenTimeout: String(boot?.golden_timeout_s ?? EMPTY.goldenTimeout),
    scratch: (device.scratch ?? []).join(" "),
    write: trial.write,
  };
}

function number(text: string): number {
  return Number(text.trim() || Number.NaN);
}
