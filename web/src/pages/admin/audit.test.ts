import { expect, it } from "vitest";
import { ACTIONS, AUDIT_PARAMS, detailText, toAuditFilters } from "./audit";

const EMPTY = {
  actor: "",
  action: "",
  resource: "",
  address: "",
  outcome: "",
  since: "",
  until: "",
  cursor: "",
} as const;

it("sends only the filters that are set", () => {
  expect(toAuditFilters(EMPTY, 100)).toEqual({ limit: 100 });
  expect(toAuditFilters({ ...EMPTY, actor: "ada", outcome: "refused" }, 5)).toEqual({
    limit: 5,
    actor: "ada",
    outcome: "refused",
  });
});

it("includes both days", () => {
  const { since, until } = toAuditFilters({ ...EMPTY, since: "2026-03-01", until: "2026-03-01" }, 5);
  expect(Date.parse(until ?? "") - Date.parse(since ?? "")).toBe(86_400_000);
});

it("ignores an unknown action in the URL", () => {
  expect(AUDIT_PARAMS.action.read("user.eat")).toBe("");
  expect(ACTIONS.every(action => AUDIT_PARAMS.action.read(action) === action)).toBe(true);
});

it("formats a detail as text", () => {
  expect(detailText({})).toBe("");
  expect(detailText({ role: "admin", scopes: ["read", "submit"], settings: { tick_s: 3 } })).toBe(
    'role: admin; scopes: read, submit; settings: {"tick_s":3}',
  );
});
