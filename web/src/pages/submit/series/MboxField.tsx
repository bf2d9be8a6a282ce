import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { inspectionQuery } from "@/api/queries";
import { Button, Textarea } from "@/kit";
import { bytes } from "@/lib/numbers";
import { Skeleton } from "@/parts/Skeleton";
import { fieldId, useFault } from "../draft/Fault";
import type { MboxState } from "../draft/useDraft";
import { useIsVisitor } from "../quote/useQuote";
import { Inspection } from "./Inspection";
import classes from "./MboxField.module.css";

/** A file, chosen or dropped anywhere on the page, or pasted mails; what is in it is read at once. */
export function MboxField({ mbox: { mbox, lasting, problem, take, change }, mboxKey }: MboxProps) {
  const input = useRef<HTMLInputElement>(null);
  const refused = useFault("mbox");
  const error = problem ?? refused;
  const visitor = useIsVisitor();
  const inspection = useQuery({
    ...inspectionQuery(mbox?.text ?? "", mboxKey),
    enabled: (mbox?.text.trim() ?? "") !== "" && !visitor,
  });
  return (
    <div className="stack">
      <input
        ref={input}
        type="file"
        hidden
        tabIndex={-1}
        aria-label="An mbox file"
        accept=".mbox,.mbx,.patch,.diff,.eml,.txt,message/rfc822,application/mbox,text/*"
        onChange={event => {
          const file = event.currentTarget.files?.[0];
          if (file) take(file);
          // Choosing the same file again, mended meanwhile, is a choice too.
          event.currentTarget.value = "";
        }}
      />
      {mbox?.name ? (
        <div className={classes.file}>
          <span className={classes.name}>
            <strong>{mbox.name}</strong> <span className="muted">{bytes(new Blob([mbox.text]).size)}</span>
          </span>
          <Button id={fieldId("mbox")} variant="default" size="xs" onClick={() => input.current?.click()}>
            Choose another
          </Button>
          <Button variant="default" size="xs" onClick={() => change(null)}>
            Remove
          </Button>
          {error && <p className={classes.error}>{error}</p>}
        </div>
      ) : (
        <div className={classes.drop}>
          <div className={classes.choose}>
            <Button variant="default" onClick={() => input.current?.click()}>
              Choose a file
            </Button>
            <span className="muted">or drop it anywhere on this page, or paste the mails:</span>
          </div>
          <Textarea
            id={fieldId("mbox")}
            aria-label="Mails"
            placeholder={"From 3d1c… Mon Sep 17 00:00:00 2001\nFrom: …\nSubject: [PATCH 1/2] workqueue: …"}
            classNames={{ input: classes.mails as string }}
            rows={mbox ? 8 : 4}
            spellCheck={false}
            value={mbox?.text ?? ""}
            onChange={event => {
              const text = event.currentTarget.value;
              change(text === "" ? null : { name: "", text });
            }}
            error={error}
          />
        </div>
      )}
      {!lasting && (
        <p className="muted">
          The browser has no room to keep it over a reload of this page; going to other pages and back is
          fine.
        </p>
      )}
      {mbox &&
        (visitor ? (
          <p className="muted">Once you are signed in, its patches and what is wrong with them stand here.</p>
        ) : inspection.data ? (
          <Inspection of={inspection.data} />
        ) : inspection.error ? (
          <p className={classes.error}>It could not be read: {inspection.error.message}</p>
        ) : (
          inspection.isFetching && <Skeleton lines={4} />
        ))}
    </div>
  );
}

interface MboxProps {
  mbox: MboxState;
  /** Names the mbox's text. */
  mboxKey: string;
}
