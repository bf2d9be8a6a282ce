import { useQuery } from "@tanstack/react-query";
import { act, fireEvent, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Boundary } from "@/parts/Boundary";
import { renderPart } from "@/testing/render";
import { markReachable, markUnreachable } from "./connection";
import { Unreachable } from "./problem";

afterEach(() => act(markReachable));

test("an error stays in view while its data are requested again, until they arrive", async () => {
  let answer: (data: string) => void = () => {};
  let refuse: (error: Error) => void = () => {};
  const request = () =>
    new Promise<string>((resolve, reject) => {
      answer = resolve;
      refuse = reject;
    });
  const Part = () => {
    const { data } = useQuery({ queryKey: ["part"], queryFn: request, throwOnError: true, retry: false });
    return <p>{data ?? "skeleton"}</p>;
  };
  await renderPart(
    <Boundary>
      <Part />
    </Boundary>,
  );
  await act(async () => refuse(new Unreachable()));
  const retry = await screen.findByRole("button", { name: "Try again" });

  fireEvent.click(retry);
  expect(screen.queryByText("skeleton")).toBeNull();
  await act(async () => refuse(new Unreachable()));
  expect(screen.getByRole("button", { name: "Try again" })).toBe(retry);

  act(markUnreachable);
  act(markReachable);
  expect(screen.getByRole("button", { name: "Try again" })).toBe(retry);
  await act(async () => answer("loaded"));
  expect(await screen.findByText("loaded")).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});
