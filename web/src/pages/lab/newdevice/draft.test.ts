import { describe, expect, it } from "vitest";
import type { DeviceTrial } from "@/api/types";
import { type Draft, draftOf, EMPTY, requestOf } from "./draft";

const IPMI: Draft = {
  ...EMPTY,
  name: " rack3-1 ",
  deviceType: "rack3",
  lab: "local",
  bmc: "192.0.2.40",
  consoleHost: "192.0.2.5",
  consolePort: "7001",
  sshHost: "192.0.2.41",
  scratch: "/dev/disk/by-id/nvme-A_1  nvme-B_2",
};

describe("requestOf", () => {
  it("names a BMC and its password's file, and no password", () => {
    const { device, write } = requestOf(IPMI);
    expect(write).toBe(true);
    expect(device.name).toBe("rack3-1");
    expect(device.power).toEqual({
      kind: "ipmi",
      host: "192.0.2.40",
      port: 623,
      user: "lab",
      password_file: "/etc/wqlab/ipmi-password",
      cipher: 17,
    });
    expect(device.scratch).toEqual(["nvme-A_1", "nvme-B_2"]);
  });

  it("names an outlet", () => {
    const { device } = requestOf({ ...IPMI, kind: "pdu", pdu: "192.0.2.6", outlet: "3" });
    expect(device.power).toEqual({ kind: "pdu", model: "apc", host: "192.0.2.6", outlet: 3 });
  });
});

const REDFISH: Draft = {
  ...IPMI,
  kind: "redfish",
  httpsPort: "8443",
  certificate: " /etc/wqlab/bmc.pem ",
  netconsole: "+6665@192.0.2.11/eth0,6666@192.0.2.1/",
};
const CHROMEBOOK: Draft = { ...IPMI, kind: "debug_cable", servoPort: "9997", arch: "arm64" };

describe("the console", () => {
  it("has a protocol, which is that of wqlab-netconsole for a machine without a serial port", () => {
    expect(requestOf({ ...IPMI, protocol: "rfc2217" }).device.console).toEqual({
      host: "192.0.2.5",
      port: 7001,
      protocol: "rfc2217",
    });
    expect(requestOf({ ...REDFISH, protocol: "rfc2217" }).device.console.protocol).toBe("raw");
  });
});

describe("other switches", () => {
  it("names a Redfish service and a machine without a serial port", () => {
    const { device } = requestOf(REDFISH);
    expect(device.power).toEqual({
      kind: "redfish",
      host: "192.0.2.40",
      port: 8443,
      user: "lab",
      password_file: "/etc/wqlab/ipmi-password",
      certificate: "/etc/wqlab/bmc.pem",
      system: null,
    });
    expect(device.netconsole).toBe("+6665@192.0.2.11/eth0,6666@192.0.2.1/");
    expect(device.choose_golden).toBeNull();
  });

  it("names the command on a system that starts by default", () => {
    const { device } = requestOf({ ...REDFISH, chooseGolden: " grub-reboot wqlab " });
    expect(device.choose_golden).toBe("grub-reboot wqlab");
  });

  it("names a debug cable by its port alone", () => {
    const { device } = requestOf(CHROMEBOOK);
    expect(device.power).toEqual({ kind: "debug_cable", port: 9997 });
    expect(device.arch).toBe("arm64");
    expect(device.netconsole).toBeNull();
  });
});

describe("draftOf", () => {
  it.each([
    IPMI,
    REDFISH,
    CHROMEBOOK,
    { ...IPMI, kind: "pdu" as const, pdu: "192.0.2.6", outlet: "3", write: false },
  ])("gives back what was asked for", draft => {
    const request = requestOf(draft);
    const again = requestOf(draftOf(request as unknown as DeviceTrial));
    expect(again).toEqual(request);
  });
});
