import { screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/testing/render";
import { Actions } from "./Actions";
import { submissionSearch } from "./search";
import { stepsOf } from "./testing";

/** Open the link of a mail that proposes six blocks of alice's submission, as this user or as a visitor. */
async function followMail(user: string | null) {
  const session = { user: user && { name: user, role: "submitter", scopes: ["submit"] }, csrf_token: "" };
  vi.stubGlobal("fetch", async () => Response.json(session));
  const { submission, ...steps } = stepsOf();
  await renderPart(<Actions steps={{ ...steps, submission: { ...submission, state: "finished" } }} />, {
    at: "/submissions/3?retry=6",
    route: { path: "/submissions/$id", ...submissionSearch },
  });
}

test("a visitor is asked to sign in to run the proposed blocks, and comes back", async () => {
  await followMail(null);
  const link = await screen.findByRole("link", { name: "Sign in to run 6 blocks" });
  expect(link.getAttribute("href")).toBe("/sign-in?next=%2Fsubmissions%2F3%3Fretry%3D6");
});

test("another user reads who may run them", async () => {
  await followMail("bob");
  expect(await screen.findByText("Only alice and maintainers can run 6 blocks.")).toBeTruthy();
});

test("the owner gets the dialog with the proposed blocks", async () => {
  await followMail("alice");
  expect(await screen.findByDisplayValue("6")).toBeTruthy();
});
