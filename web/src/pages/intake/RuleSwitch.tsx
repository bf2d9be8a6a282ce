/** Switch a rule on, after one has seen what it would have taken, and off. For maintainers. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "@/api/client";
import { rulePreviewQuery, ruleQuery } from "@/api/intakeQueries";
import { useHasScope } from "@/api/session";
import type { RulePreview, RuleView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { oneLine } from "@/lib/words";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { FormError } from "@/parts/FormError";
import { Scroll } from "@/parts/Scroll";
import classes from "./intake.module.css";
import { DaysForm, PreviewText, Reading } from "./Preview";
import { DAYS } from "./search";

/** Number of series that the dialog lists; the page lists all. */
const LISTED = 20;

export function RuleSwitch({ view }: { view: RuleView }) {
  const may = useHasScope();
  const [open, setOpen] = useState(false);
  if (view.from_file || !may("maintain")) return null;
  const on = view.enabled_at !== null;
  return (
    <>
      <Button size="xs" variant={on ? "default" : "filled"} onClick={() => setOpen(true)}>
        {on ? "Switch off" : "Switch on"}
      </Button>
      {open &&
        (on ? (
          <Off view={view} close={() => setOpen(false)} />
        ) : (
          <On view={view} close={() => setOpen(false)} />
        ))}
    </>
  );
}

interface DialogProps {
  view: RuleView;
  close(): void;
}

function On({ view, close }: DialogProps) {
  const [days, setDays] = useState(DAYS);
  const { data: preview, error } = useQuery(rulePreviewQuery(view.rule, days));
  const act = useSwitch(view.rule.name, true, close);
  const failed = Boolean(error) || preview?.failure != null;
  const seen = preview?.state === "finished";
  return (
    <ConfirmDialog
      open
      title={`Switch rule ${view.rule.name} on?`}
      confirm={failed ? "Switch on without a preview" : "Switch on"}
      busy={act.isPending || !(seen || failed)}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>
        It takes series whose last patch arrives from now on, and spends the quota of{" "}
        {oneLine(view.rule.owner)}. This is what it would have taken:
      </p>
      <DaysForm days={days} shown onDays={setDays} />
      {error && !preview ? (
        <FormError error={error} />
      ) : seen ? (
        <Seen preview={preview} />
      ) : (
        <Reading preview={preview} />
      )}
    </ConfirmDialog>
  );
}

function Seen({ preview }: { preview: RulePreview }) {
  if (preview.failure) {
    return (
      <p role="alert">The list could not be read, so that nobody knows: {oneLine(preview.failure.summary)}</p>
    );
  }
  const taken = (preview.found?.series ?? []).filter(each => each.taken);
  return (
    <>
      <PreviewText preview={preview} />
      {taken.length > 0 && (
        <Scroll name="Series that it would have taken" className={classes.subjects}>
          <ul>
            {taken.slice(0, LISTED).map(each => (
              <li key={each.message_id}>{oneLine(each.subject)}</li>
            ))}
            {taken.length > LISTED && <li className="muted">{taken.length - LISTED} more</li>}
          </ul>
        </Scroll>
      )}
    </>
  );
}

function Off({ view, close }: DialogProps) {
  const act = useSwitch(view.rule.name, false, close);
  return (
    <ConfirmDialog
      open
      title={`Switch rule ${view.rule.name} off?`}
      confirm="Switch off"
      busy={act.isPending}
      error={act.error?.message ?? null}
      onConfirm={() => act.mutate()}
      onClose={close}
    >
      <p>Series that wait are not taken. Submissions that it made go on.</p>
    </ConfirmDialog>
  );
}

function useSwitch(name: string, on: boolean, close: () => void) {
  const client = useQueryClient();
  const path = { params: { path: { name } } };
  return useMutation({
    mutationFn: () =>
      dataOf(on ? api.POST("/api/v1/rules/{name}/on", path) : api.POST("/api/v1/rules/{name}/off", path)),
    onSuccess: changed => {
      client.setQueryData(ruleQuery(name).queryKey, changed);
      toast({ text: `Rule ${name} is switched ${on ? "on" : "off"}.` });
      close();
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["rules"] }),
  });
}
