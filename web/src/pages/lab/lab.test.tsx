import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { DeviceView, LabView } from "@/api/types";
import { renderPart } from "@/testing/render";
import { DeviceActions } from "./DeviceActions";
import { Labs } from "./Labs";
import { points, Queue } from "./Queue";

const DEVICE: DeviceView = {
  name: "tiny-1",
  device_type: "tiny",
  lab: "local",
  health: "good",
  health_reason: "",
  health_checked_at: null,
  lease: null,
  measured_topology: null,
  layout: null,
  health_check: null,
  check_requested_at: null,
  backend: "labgrid",
  away: "",
  elsewhere: "",
};

afterEach(() => vi.unstubAllGlobals());

/** Stub a server whose user has `scopes` and that rejects changes. Returns the list of change requests. */
function labWith(scopes: string[]) {
  const requests: { path: string; body: unknown }[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/v1/session") {
      const user = { name: "ann", role: "maintainer", scopes };
      return Response.json({ user, csrf_token: "t", expires_at: null, public_reading: true });
    }
    requests.push({ path: pathname, body: await request.json() });
    const detail = "tiny-1 is no longer in the device-types folder";
    return Response.json({ title: "Conflict", status: 409, detail }, { status: 409 });
  });
  return requests;
}

test("orders that wait are listed with their reason, below an empty queue", async () => {
  const order = {
    source: "tree",
    key: "7",
    watch: "next",
    reason: "it waits for the end of the quiet hours",
  };
  const queue = {
    at: "2026-11-30T00:00:00Z",
    rule: "",
    total: 0,
    entries: [],
    waiting_for_kernels: 0,
    orders: [{ ...order, retry_at: "2026-11-30T06:00:00Z" }],
  };
  vi.stubGlobal("fetch", async () => Response.json(queue));
  renderPart(<Queue />);
  expect(await screen.findByRole("rowheader", { name: /tree 7/ })).toBeTruthy();
  expect(screen.getByText("it waits for the end of the quiet hours")).toBeTruthy();
});

test("a score is shown as a sum of its terms", () => {
  expect(points({ priority: 50, aging: 12.57, share: -25 })).toBe("50 + 12.6 \u2212 25.0");
  expect(points({ priority: 50, aging: 0, share: 0 })).toBe("50");
});

test.each([
  ["https://lava.example.org/x", "LAVA 2025.10 at lava.example.org", 1],
  ["http://[", "LAVA 2025.10 at an invalid address", 0],
  ["javascript:alert(1)", "LAVA 2025.10 at an invalid address", 0],
])("the address %s of a LAVA server is shown as %s", async (url, text, links) => {
  const pool = { url, version: "2025.10", problem: "", devices: {}, queued: {} };
  const lab: LabView = {
    name: "far",
    backend: "lava",
    away: 0,
    busy: 0,
    capacity: 1,
    devices: 1,
    free: 1,
    invited_by: null,
    joined_at: null,
    last_seen_at: null,
    problem: "",
    removed_at: null,
    pool,
  };
  await renderPart(<Labs labs={[lab]} />);
  expect(await screen.findAllByText(text)).not.toHaveLength(0);
  expect(screen.queryAllByRole("link")).toHaveLength(links);
});

test("only maintainers see device actions", async () => {
  labWith(["read", "submit"]);
  const { client } = await renderPart(<DeviceActions device={DEVICE} />);
  await waitFor(() => expect(client.getQueryData(["session"])).toBeDefined());
  expect(screen.queryByRole("button")).toBeNull();
});

test("quarantine requires a reason and shows errors in the dialog", async () => {
  const requests = labWith(["read", "submit", "maintain"]);
  await renderPart(<DeviceActions device={DEVICE} />);
  fireEvent.click(await screen.findByRole("button", { name: "Quarantine: tiny-1" }));
  fireEvent.click(screen.getByRole("button", { name: "Quarantine" }));
  await screen.findByText(/Enter a reason/);
  expect(requests).toEqual([]);

  fireEvent.change(screen.getByLabelText("Reason"), { target: { value: " PSU whines " } });
  fireEvent.click(screen.getByRole("button", { name: "Quarantine" }));
  expect((await screen.findByRole("alert")).textContent).toContain("no longer in the device-types folder");
  expect(requests).toEqual([{ path: "/api/v1/devices/tiny-1/quarantine", body: { reason: "PSU whines" } }]);
});

test("release is offered in quarantine; a requested check cannot be repeated", async () => {
  labWith(["maintain"]);
  await renderPart(
    <>
      <DeviceActions device={{ ...DEVICE, health: "quarantined" }} />
      <DeviceActions device={{ ...DEVICE, name: "tiny-2", check_requested_at: "2026-11-21T19:00:00Z" }} />
    </>,
  );
  await screen.findByRole("button", { name: "Release: tiny-1" });
  expect(screen.queryByRole("button", { name: /Check.*tiny-1/ })).toBeNull();
  const requested = screen.getByRole("button", { name: "Check requested: tiny-2" });
  expect((requested as HTMLButtonElement).disabled).toBe(true);
});
