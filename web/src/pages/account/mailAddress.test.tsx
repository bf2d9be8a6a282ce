import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { MailAddressView } from "@/api/types";
import { renderPart } from "@/testing/render";
import { MailAddress } from "./MailAddress";

const ADDRESS: MailAddressView = {
  address: null,
  confirmed_at: null,
  mail_results: false,
  asked_address: null,
  asked_until: null,
  problem: null,
  sends_mail: true,
};

/** Answer requests as the lab would, and return what was sent. */
function lab(address: MailAddressView) {
  const sent: { method: string; path: string; body: unknown }[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async input => {
    const request = input as Request;
    const path = new URL(request.url).pathname.replace("/api/v1/", "");
    const text = await request.clone().text();
    const body = text && JSON.parse(text);
    if (request.method !== "GET") sent.push({ method: request.method, path, body });
    if (path === "session") {
      const user = { name: "ann", role: "viewer", scopes: ["read"], sign_in: "password" };
      const limits = { expires_at: null, public_reading: false, provider: null };
      return Response.json({ user, csrf_token: "t", ...limits });
    }
    if (request.method === "PUT" && text.includes("lists.")) {
      const detail = "this looks like a mailing list";
      const problem = { type: "about:blank", title: "Invalid", status: 422, detail };
      return Response.json({ ...problem, errors: [{ pointer: "/address", detail }] }, { status: 422 });
    }
    return Response.json(request.method === "PATCH" ? { ...address, ...body } : address);
  });
  return sent;
}

test("the mails with results are switched off", async () => {
  const sent = lab({ ...ADDRESS, address: "ann@example.org", mail_results: true });
  await renderPart(<MailAddress />);
  const box = (await screen.findByLabelText("Mail me my results")) as HTMLInputElement;
  expect(box.checked).toBe(true);
  fireEvent.click(box);
  await waitFor(() => expect(box.checked).toBe(false));
  expect(sent).toEqual([{ method: "PATCH", path: "mail-address", body: { mail_results: false } }]);
});

test("an address that does not arrive says why, and a refused one says it at the field", async () => {
  const sent = lab({
    ...ADDRESS,
    asked_address: "no@example.org",
    asked_until: "2099-01-01T00:00:00Z",
    problem: "550 no such user",
  });
  await renderPart(<MailAddress />);
  expect(await screen.findByText("It has not arrived: 550 no such user")).toBeTruthy();
  expect(screen.queryByLabelText("Mail me my results")).toBeNull();
  fireEvent.change(screen.getByLabelText("Another address"), { target: { value: "wq@lists.example" } });
  fireEvent.click(screen.getByRole("button", { name: "Send link" }));
  expect(await screen.findByText("this looks like a mailing list")).toBeTruthy();
  expect(sent).toEqual([{ method: "PUT", path: "mail-address", body: { address: "wq@lists.example" } }]);
});

test("a lab without mail offers no address", async () => {
  lab({ ...ADDRESS, sends_mail: false });
  await renderPart(<MailAddress />);
  expect(await screen.findByText(/This lab sends no mail/)).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Send link" })).toBeNull();
});
