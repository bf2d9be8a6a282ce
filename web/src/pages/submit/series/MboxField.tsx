import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { inspectionQuery } from "@/api/queries";
import { Button, Textarea } from "@/kit";
import { bytes } from "@/lib/numbers";
import { Skeleton } from "@/parts/Skeleton";
import { fieldId, useFieldError } from "../draft/FieldError";
import type { MboxState } from "../draft/useDraft";
import { useIsSignedOut } from "../quote/useQuote";
import { Inspection } from "./Inspection";
import classes from "./MboxField.module.css";

/** Input for an mbox: a selected or dropped file, or pasted text. Its contents are inspected immediately. */
export function MboxField({ mbox: { mbox, persistent, problem, load, change }, mboxKey }: MboxProps) {
  const input = useRef<HTMLInputElement>(null);
  const fieldError = useFieldError("mbox");
  const error = problem ?? fieldError;
  const signedOut = useIsSignedOut();
  const inspection = useQuery({
    ...inspectionQuery(mbox?.text ?? "", mboxKey),
    enabled: (mbox?.text.trim() ?? "") !== "" && !signedOut,
  });
  return (
    <div className="stack">
      <input
        ref={input}
        type="file"
        hidden
        tabIndex={-1}
        aria-label="Mbox file"
        accept=".mbox,.mbx,.patch,.diff,.eml,.txt,message/rfc822,application/mbox,text/*"
        onChange={event => {
          const file = event.currentTarget.files?.[0];
          if (file) load(file);
          // Reset, so that selecting the same file again triggers a change event.
          event.currentTarget.value = "";
        }}
      />
      {mbox?.name ? (
        <div className={classes.file}>
          <span className={classes.name}>
            <strong>{mbox.name}</strong> <span className="muted">{bytes(new Blob([mbox.text]).size)}</span>
          </span>
          <Button id={fieldId("mbox")} variant="default" size="xs" onClick={() => input.current?.click()}>
            Replace
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
              Choose file
            </Button>
            <span className="muted">or drop it on this page, or paste its contents:</span>
          </div>
          <Textarea
            id={fieldId("mbox")}
            aria-label="Mbox contents"
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
      {!persistent && (
        <p className="muted">
          This mbox is too large for the browser's storage: it is kept while you navigate, but lost on reload.
        </p>
      )}
      {mbox &&
        (signedOut ? (
          <p className="muted">Sign in to see the patches and their problems.</p>
        ) : inspection.data ? (
          <Inspection of={inspection.data} />
        ) : inspection.error ? (
          <p className={classes.error}>The mbox could not be parsed: {inspection.error.message}</p>
        ) : (
          inspection.isFetching && <Skeleton lines={4} />
        ))}
    </div>
  );
}

interface MboxProps {
  mbox: MboxState;
  /** Identifies the text of the mbox. */
  mboxKey: string;
}
