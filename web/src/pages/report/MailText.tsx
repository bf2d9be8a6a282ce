import { memo } from "react";
import { CopyButton } from "@/parts/CopyButton";
import { Section } from "@/parts/Page";
import { Scroll } from "@/parts/Scroll";
import classes from "./MailText.module.css";

/** Plain-text report for mailing lists, folded: it says what the page says. */
export const MailText = memo(function MailText({ text }: { text: string }) {
  return (
    <Section
      id="mail"
      title="Plain text for mailing lists"
      lead="At most 78 columns, verdict first. The same text is printed by the command line and served under /r."
      actions={<CopyButton label="Copy" name="Copy report text" text={text} />}
    >
      <details className="no-print">
        <summary>Show the text</summary>
        <Scroll name="Plain text for mailing lists" className={classes.text}>
          <pre>{text}</pre>
        </Scroll>
      </details>
    </Section>
  );
});
