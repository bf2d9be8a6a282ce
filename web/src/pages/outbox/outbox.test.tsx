import { fireEvent, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { OutgoingMail } from "@/api/types";
import { renderPart } from "@/testing/render";
import { canDrop, canReplay, eventText, STATES } from "./labels";
import { Counters, MailForm } from "./MailForm";
import { DELIVERY_PARAMS, toDeliveryFilters, typedNumber } from "./search";
import { EVENTS, eventsText, filterText } from "./webhook";

const MAIL: OutgoingMail = {
  message_id: "m@lab.example",
  in_reply_to: "p@kernel.example",
  references: [],
  sender: "wqlab <wqlab@lab.example>",
  to: ["Ada <ada@kernel.example>"],
  cc: ["lkml@kernel.example"],
  subject: "Re: [PATCH] less",
  date: "2026-01-01T00:00:00Z",
  body: "improvement\n",
};

test("only filters that are set are sent, and a number may be typed with #", () => {
  const none = { kind: "", state: "", webhook: null, submission: null, cursor: "" } as const;
  expect(toDeliveryFilters(none, 5)).toEqual({ limit: 5 });
  expect(toDeliveryFilters({ ...none, state: "given_up", webhook: 3 }, 5)).toEqual({
    limit: 5,
    state: "given_up",
    webhook: 3,
  });
  expect([typedNumber("#12"), typedNumber("0"), typedNumber("twelve"), typedNumber("")]).toEqual([
    12,
    null,
    null,
    null,
  ]);
  expect(STATES.every(state => DELIVERY_PARAMS.state.read(state) === state)).toBe(true);
});

test("the page offers what the server would do", () => {
  const replayed = STATES.filter(state => canReplay({ kind: "webhook", state }));
  expect(replayed).toEqual(["delivered", "given_up"]);
  expect(STATES.filter(state => canReplay({ kind: "mail", state }))).toEqual(["given_up"]);
  expect(STATES.filter(state => canDrop({ kind: "mail", state }))).toEqual(["waiting_for_review", "waiting"]);
  expect(STATES.filter(state => canReplay({ kind: "personal_mail", state }))).toEqual(["given_up"]);
  expect(canDrop({ kind: "webhook", state: "waiting" })).toBe(false);
  expect(canDrop({ kind: "personal_mail", state: "waiting" })).toBe(false);
  expect(eventText({ kind: "personal_mail", event: "confirm" })).toBe("confirmation of an address");
  expect(eventText({ kind: "mail", event: "reply" })).toBe("answer");
});

test("events and filters of a webhook are words", () => {
  expect(eventsText(EVENTS)).toBe("all");
  expect(eventsText(["lab.lost"])).toBe("lab.lost");
  expect(filterText({ mine: false, device_types: [], plans: [] })).toBe("everything");
  expect(filterText({ mine: true, device_types: ["tiny"], plans: ["flush", "fan-out"] })).toBe(
    "the owner's submissions; device types tiny; plans flush, fan-out",
  );
});

test("too many lines and too long lines are named", async () => {
  const { container } = await renderPart(<Counters text={`${"a\n".repeat(60)}${"b".repeat(80)}`} />);
  expect(container.textContent).toBe("61 of 60 lineslongest line 80 of 72 columns; 1 line too long: 61");
  expect(container.querySelectorAll("[data-over]")).toHaveLength(2);
});

test("a refused change shows the server's messages at their fields and keeps what was typed", async () => {
  const problem = {
    type: "about:blank",
    title: "Invalid",
    status: 422,
    detail: "the request has mistakes",
    errors: [
      { pointer: "/to/0", detail: "'ada' is not a mail address" },
      { pointer: "/body", detail: "a line begins with 'Tested-by:'" },
    ],
  };
  const sent: unknown[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async request => {
    sent.push(await (request as Request).clone().json());
    return new Response(JSON.stringify(problem), {
      status: 422,
      headers: { "content-type": "application/problem+json" },
    });
  });
  const done = vi.fn();
  await renderPart(<MailForm id={7} mail={MAIL} onDone={done} />);
  fireEvent.change(screen.getByLabelText("To"), { target: { value: "ada" } });
  fireEvent.change(screen.getByLabelText("Text"), { target: { value: "Tested-by: me\n" } });
  fireEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("'ada' is not a mail address")).toBeTruthy();
  expect(screen.getByText("a line begins with 'Tested-by:'")).toBeTruthy();
  expect(sent).toEqual([{ to: ["ada"], body: "Tested-by: me\n" }]);
  expect((screen.getByLabelText("Text") as HTMLTextAreaElement).value).toBe("Tested-by: me\n");
  expect(done).not.toHaveBeenCalled();
});
