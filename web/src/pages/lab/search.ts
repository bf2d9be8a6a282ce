/** Search parameters of a device's page. */
import { searchParams, text, whole } from "@/lib/search";

/** Runs on one page of a device's history. */
export const HISTORY_PAGE = 25;

/** `cursor`: page of runs. `run` and `boot`: console shown, with its line and search text. */
export const deviceSearch = searchParams({
  cursor: text(100),
  run: whole({ min: 1 }),
  boot: whole({ min: 1 }),
  line: whole({ min: 1 }),
  find: text(),
});
