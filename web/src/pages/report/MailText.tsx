import { useQuery, useQueryClient } from "@tanstack/react-query";
import { memo } from "react";
import { reportTextQuery } from "@/api/queries";
import { CopyButton } from "@/parts/CopyButton";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./MailText.module.css";

/** The report as one would mail it. Of an unfinished submission it is asked for when it is copied: it changes all the time. */
export const MailText = memo(function MailText({ id, finished }: { id: number; finished: boolean }) {
  const client = useQueryClient();
  const { data: text, error } = useQuery({ ...reportTextQuery(id), enabled: finished });
  return (
    <Section
      id="mail"
      title="Text for the list"
      lead="At most 78 columns, the verdict first; what the command line prints and /r serves."
      actions={
        <CopyButton
          label="Copy"
          name="Copy the text for the list"
          text={() => text ?? client.fetchQuery(reportTextQuery(id))}
        />
      }
    >
      <Scroll name="Text for the list" className={classes.text}>
        {text !== undefined ? (
          <pre>{text}</pre>
        ) : error ? (
          <p className="muted">It could not be loaded: {error.message}</p>
        ) : finished ? (
          <Skeleton lines={12} />
        ) : (
          <p className="muted">
            The submission is not finished. Copy gives the text as it is at that moment.
          </p>
        )}
      </Scroll>
    </Section>
  );
});
