import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { MailAddressView, SubscriptionView } from "@/api/types";
import { renderPart } from "@/testing/render";
import { Subscriptions } from "./Subscriptions";
import { requestOf } from "./subscription";

const ADDRESS: MailAddressView = {
  address: null,
  confirmed_at: null,
  asked_address: null,
  asked_until: null,
  problem: null,
  sends_mail: true,
  mails_a_day: 50,
};
const MINE: SubscriptionView = {
  id: 1,
  kind: "my_series",
  device_type: null,
  plan: null,
  webhook_id: null,
  webhook_url: null,
  text: "my series",
  created_at: "2026-01-01T00:00:00Z",
  removed_at: null,
};

/** Answer requests as the lab would, and return what was sent. */
function lab(address: MailAddressView, subscriptions: SubscriptionView[]) {
  const sent: { method: string; path: string; body: unknown }[] = [];
  const user = { name: "ann", role: "viewer", scopes: ["read"], sign_in: "password" };
  vi.spyOn(globalThis, "fetch").mockImplementation(async input => {
    const request = input as Request;
    const path = new URL(request.url).pathname.replace("/api/v1/", "");
    const text = await request.clone().text();
    if (request.method !== "GET") sent.push({ method: request.method, path, body: text && JSON.parse(text) });
    const answers: Record<string, unknown> = {
      session: { user, csrf_token: "t", expires_at: null, public_reading: false, provider: null },
      "mail-address": address,
      subscriptions:
        request.method === "GET" ? { items: subscriptions, total: subscriptions.length, next: null } : MINE,
      "subscriptions/1": MINE,
      webhooks: {
        items: [
          { id: 3, owner: "ann", url: "https://hook.example/" },
          { id: 4, owner: "bob", url: "https://other.example/" },
        ],
        total: 2,
        next: null,
      },
      "device-types": [{ name: "tiny" }],
      plans: [{ plan: { name: "flush" } }],
    };
    if (path === "mail-address" && request.method === "PUT" && text.includes("lists.")) {
      const detail = "this looks like a mailing list";
      const problem = { type: "about:blank", title: "Invalid", status: 422, detail };
      return Response.json({ ...problem, errors: [{ pointer: "/address", detail }] }, { status: 422 });
    }
    return Response.json(answers[path]);
  });
  return sent;
}

test("a form asks for what its kind needs, and empty fields are null", () => {
  const form = new FormData();
  form.set("device_type", "tiny");
  form.set("plan", "flush");
  form.set("webhook", "");
  expect(requestOf("my_series", form)).toEqual({
    kind: "my_series",
    device_type: null,
    plan: null,
    webhook_id: null,
  });
  form.set("webhook", "3");
  expect(requestOf("device_type", form)).toEqual({
    kind: "device_type",
    device_type: "tiny",
    plan: null,
    webhook_id: 3,
  });
  form.set("device_type", "");
  expect(requestOf("regressions", form)).toEqual({
    kind: "regressions",
    device_type: null,
    plan: "flush",
    webhook_id: 3,
  });
});

test("regressions of a plan go to one of one's own webhooks", async () => {
  const sent = lab(ADDRESS, [MINE]);
  await renderPart(<Subscriptions />);
  expect(await screen.findByText(/Nothing is mailed until you have confirmed an address/)).toBeTruthy();
  fireEvent.change(await screen.findByLabelText("Results"), { target: { value: "regressions" } });
  await screen.findByRole("option", { name: "to webhook 3: https://hook.example/" });
  expect(screen.queryByRole("option", { name: /other\.example/ })).toBeNull();
  fireEvent.change(screen.getByLabelText("Sent"), { target: { value: "3" } });
  fireEvent.click(screen.getByRole("button", { name: "Subscribe" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toEqual({
    method: "POST",
    path: "subscriptions",
    body: { kind: "regressions", device_type: null, plan: "flush", webhook_id: 3 },
  });
  fireEvent.click(screen.getByRole("button", { name: "Remove my series" }));
  await waitFor(() => expect(sent[1]).toMatchObject({ method: "DELETE", path: "subscriptions/1" }));
});

test("an address that does not arrive says why, and a refused one says it at the field", async () => {
  const asked = {
    asked_address: "no@example.org",
    asked_until: "2099-01-01T00:00:00Z",
    problem: "550 no such user",
  };
  const sent = lab({ ...ADDRESS, ...asked }, []);
  await renderPart(<Subscriptions />);
  expect(await screen.findByText("It has not arrived: 550 no such user")).toBeTruthy();
  fireEvent.change(screen.getByLabelText("Another address"), { target: { value: "wq@lists.example" } });
  fireEvent.click(screen.getByRole("button", { name: "Send link" }));
  expect(await screen.findByText("this looks like a mailing list")).toBeTruthy();
  expect(sent).toEqual([{ method: "PUT", path: "mail-address", body: { address: "wq@lists.example" } }]);
});

test("a lab without mail offers no address", async () => {
  lab({ ...ADDRESS, sends_mail: false }, []);
  await renderPart(<Subscriptions />);
  expect(await screen.findByText(/This lab sends no mail/)).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Send link" })).toBeNull();
});
