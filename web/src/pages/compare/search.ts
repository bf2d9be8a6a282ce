/** Search parameters of the comparison page. */
import { searchParams, text } from "@/lib/search";

export const compareSearch = searchParams({
  /** Submissions by their numbers, or selectors of kernels and heads. */
  left: text(500),
  right: text(500),
});
