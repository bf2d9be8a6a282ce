import { Link } from "@tanstack/react-router";
import type { Column } from "./DataTable";

/** Column with a link to the submission of a row, if it has one. */
export const submissionColumn: Column<{ submission_id: number | null }> = {
  id: "submission",
  header: "Submission",
  value: of => of.submission_id,
  cell: of =>
    of.submission_id === null ? null : (
      <Link to="/submissions/$id" params={{ id: of.submission_id }}>
        {of.submission_id}
      </Link>
    ),
};
