/** Search parameters of the form that begins a bisection, so that a shift or a report can link to it. */
import { flag, searchParams, text, whole } from "@/lib/search";

export const NEW_BISECTION = searchParams({
  tree: text(64),
  good: text(300),
  bad: text(300),
  ref: text(300),
  plan: text(64),
  type: text(64),
  scenario: text(64),
  setting: text(200),
  metric: text(64),
  failure: flag(),
  /** Submission in which the change was seen. */
  submission: whole({ min: 1 }),
});
export type NewBisection = ReturnType<typeof NEW_BISECTION.read>;
