import { expect, test } from "vitest";
import type { OperationPermission } from "@/api/types";
import { byGroup, plain } from "./permissions";

const operation = (name: string, group: string, method: string): OperationPermission => ({
  operation: name,
  method,
  path: "/",
  group,
  description: "",
  scope: "read",
  roles: ["viewer"],
  visitors: false,
});

test("operations are grouped in the server's order, without reading unless all are wanted", () => {
  const operations = [
    operation("list_users", "users", "GET"),
    operation("cancel", "submissions", "POST"),
    operation("create_user", "users", "POST"),
    operation("list_plans", "plans", "GET"),
  ];
  const names = (all: boolean) =>
    byGroup(operations, all).map(([group, found]) => [group, ...found.map(each => each.operation)]);
  expect(names(false)).toEqual([
    ["submissions", "cancel"],
    ["users", "create_user"],
  ]);
  expect(names(true)).toEqual([
    ["users", "list_users", "create_user"],
    ["submissions", "cancel"],
    ["plans", "list_plans"],
  ]);
});

test("a description is one line without marks of code", () => {
  expect(plain("Send `webhook.test`\nto a webhook.")).toBe("Send webhook.test to a webhook.");
});
