import { renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { saveMbox } from "./draftStorage";
import { useMbox } from "./useDraft";

afterEach(() => {
  vi.unstubAllGlobals();
  saveMbox(null);
});

/** A name in the character set iso-8859-1. */
const LATIN_1 = new Uint8Array([0x4b, 0x6f, 0x75, 0x74, 0x6e, 0xfd]);

function answer(response: Response) {
  const requests: Request[] = [];
  vi.stubGlobal("fetch", (request: Request) => {
    requests.push(request);
    return Promise.resolve(response);
  });
  return requests;
}

function loaded(content: BlobPart) {
  const { result } = renderHook(useMbox);
  result.current.load(new File([content], "a.mbox"));
  return result;
}

test("a file in UTF-8 is read in the browser", async () => {
  const requests = answer(new Response("other"));
  const result = loaded("Koutný");
  await waitFor(() => expect(result.current.mbox).toEqual({ name: "a.mbox", text: "Koutný" }));
  expect(requests).toEqual([]);
});

test("the lab decodes the bytes of any other file", async () => {
  const requests = answer(new Response("Koutný", { headers: { "Content-Type": "text/plain" } }));
  const result = loaded(LATIN_1);
  await waitFor(() => expect(result.current.mbox?.text).toBe("Koutný"));
  expect(new URL(requests[0]?.url ?? "").pathname).toBe("/api/v1/series/decode");
  expect(requests[0]?.headers.get("Content-Type")).toBe("application/octet-stream");
  expect(new Uint8Array((await requests[0]?.arrayBuffer()) ?? [])).toEqual(LATIN_1);
});

test("the reason of the lab's refusal is shown", async () => {
  const problem = {
    title: "Unprocessable Content",
    status: 422,
    detail: "patch 'x' is not UTF-8",
    errors: [],
  };
  answer(Response.json(problem, { status: 422, headers: { "Content-Type": "application/problem+json" } }));
  const result = loaded(LATIN_1);
  await waitFor(() => expect(result.current.problem).toBe("a.mbox: patch 'x' is not UTF-8"));
  expect(result.current.mbox).toBeNull();
});
