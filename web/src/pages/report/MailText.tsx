import { useQuery, useQueryClient } from "@tanstack/react-query";
import { memo } from "react";
import { reportTextQuery } from "@/api/queries";
import { CopyButton } from "@/parts/CopyButton";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./MailText.module.css";

/**
 * Plain-text report for mailing lists. For an unfinished submission it is fetched only when copied, because it
 * changes.
 */
export const MailText = memo(function MailText({ id, finished }: { id: number; finished: boolean }) {
  const client = useQueryClient();
  const { data: text, error } = useQuery({ ...reportTextQuery(id), enabled: finished });
  return (
    <Section
      id="mail"
      title="Plain text for mailing lists"
      lead="At most 78 columns, verdict first. The same text is printed by the command line and served under /r."
      actions={
        <CopyButton
          label="Copy"
          name="Copy report text"
          text={() => text ?? client.fetchQuery(reportTextQuery(id))}
        />
      }
    >
      <Scroll name="Plain text for mailing lists" className={classes.text}>
        {text !== undefined ? (
          <pre>{text}</pre>
        ) : error ? (
          <p className="muted">The text could not be loaded: {error.message}</p>
        ) : finished ? (
          <Skeleton lines={12} />
        ) : (
          <p className="muted">The submission is not finished. Copy fetches the current text.</p>
        )}
      </Scroll>
    </Section>
  );
});
