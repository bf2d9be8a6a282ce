import type { TakenThread } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";
import { RelativeTime } from "./RelativeTime";
import classes from "./TakenMails.module.css";

const ROLES: Record<TakenThread["mails"][number]["role"], string> = {
  cover: "cover letter",
  patch: "patch",
  superseded: "replaced patch",
  reply: "reply",
};

/** The revision and the mails that were taken from a mail archive, with links to them. */
export function TakenMails({ of }: { of: TakenThread }) {
  const unlisted = of.replies - of.mails.filter(mail => mail.role === "reply").length;
  const others = (of.revisions ?? []).filter(each => each !== of.revision).map(each => `v${each}`);
  return (
    <section aria-label="Mails that are taken" className="stack">
      <p>
        <strong>v{of.revision}</strong> from <a href={of.url}>{oneLine(of.archive)}</a>,{" "}
        <RelativeTime at={of.taken_at} />
        {others.length > 0 && `; the archive also has ${others.join(", ")}`}
      </p>
      {(of.notes ?? []).map(note => (
        <p key={note} className="muted">
          {oneLine(note)}
        </p>
      ))}
      <ol className={classes.mails}>
        {of.mails.map(mail => (
          <li key={mail.message_id} className={classes.mail}>
            <span className={classes.role}>{ROLES[mail.role]}</span>{" "}
            <a href={mail.url}>{oneLine(mail.subject)}</a>{" "}
            <span className="muted">{oneLine(mail.author)}</span>
            {(mail.trailers ?? []).map(trailer => (
              <span key={trailer} className={classes.trailer}>
                {oneLine(trailer)}
              </span>
            ))}
          </li>
        ))}
      </ol>
      {unlisted > 0 && (
        <p className="muted">{count(unlisted, "more reply", "more replies")} between these.</p>
      )}
    </section>
  );
}
