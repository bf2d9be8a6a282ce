/** Search parameters of a submission's page. */
import { oneOf, searchParams, text, whole } from "@/lib/search";

/**
 * Selected step and log line; `retry`: number of blocks with which a report proposes to repeat it.
 * Without `step`, `build`, `run` and `boot` the page follows the active step.
 */
export const submissionSearch = searchParams({
  step: oneOf(["series"]),
  build: whole({ min: 1 }),
  run: whole({ min: 1 }),
  boot: whole({ min: 1 }),
  line: whole({ min: 1 }),
  retry: whole({ min: 1, max: 100 }),
  find: text(),
});

export type SubmissionSearch = typeof submissionSearch.defaults;
