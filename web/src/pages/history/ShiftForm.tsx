import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { historyShiftQuery } from "@/api/historyQueries";
import { ApiError, fieldError } from "@/api/problem";
import type { HistoryShift, ShiftChange, ShiftState } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, NativeSelect, Textarea, TextInput } from "@/kit";
import { humanize } from "@/lib/words";
import { FormError } from "@/parts/FormError";
import classes from "./history.module.css";
import { STATE_MEANING } from "./labels";

const NOTES_LIMIT = 4000;

/** Return the states that a person may give a shift, with its own: only a paired run says `not_reproduced`. */
export function statesFor({ state, effect }: Pick<HistoryShift, "state" | "effect">): ShiftState[] {
  const offered: ShiftState[] = [
    "new",
    ...(effect === null ? [] : (["confirmed"] as const)),
    "explained",
    "fixed",
  ];
  return offered.includes(state) ? offered : [state, ...offered];
}

interface Draft {
  state: ShiftState;
  owner: string;
  notes: string;
}

/** Return the fields that were changed; the API leaves the others as they are. */
export function changesOf(shift: HistoryShift, draft: Draft): ShiftChange {
  const change: ShiftChange = {};
  if (draft.state !== shift.state && draft.state !== "not_reproduced") change.state = draft.state;
  if (draft.owner.trim() !== shift.owner) change.owner = draft.owner.trim();
  if (draft.notes !== shift.notes) change.notes = draft.notes;
  return change;
}

/** Form in which a maintainer says what became of a shift. `user`: name of the account, to take it over. */
export function ShiftForm({ shift, user }: { shift: HistoryShift; user: string }) {
  const client = useQueryClient();
  const [state, setState] = useState(shift.state);
  const [owner, setOwner] = useState(shift.owner);
  const [notes, setNotes] = useState(shift.notes);
  const save = useMutation({
    mutationFn: (body: ShiftChange) =>
      dataOf(
        api.PATCH("/api/v1/history/shifts/{shift_id}", { params: { path: { shift_id: shift.id } }, body }),
      ) as Promise<HistoryShift>,
    onSuccess: changed => {
      client.setQueryData(historyShiftQuery(shift.id).queryKey, changed);
      void client.invalidateQueries({ queryKey: ["history"] });
      setState(changed.state);
      setOwner(changed.owner);
      setNotes(changed.notes);
      toast({ text: `Shift ${shift.id} is changed.` });
    },
  });
  const change = changesOf(shift, { state, owner, notes });
  const unchanged = Object.keys(change).length === 0;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (!unchanged) save.mutate(change);
  };
  // A conflict is always about the state.
  const conflict = save.error instanceof ApiError && save.error.status === 409;
  const stateError = fieldError(save.error, "state") ?? (conflict ? save.error?.message : undefined);
  return (
    <form className="form" onSubmit={submit}>
      <FormError error={save.error} />
      <NativeSelect
        label="State"
        description={STATE_MEANING[state]}
        value={state}
        error={stateError}
        data={statesFor(shift).map(value => ({ value, label: humanize(value) }))}
        onChange={event => setState(event.currentTarget.value as ShiftState)}
      />
      <div className={classes.owner}>
        <TextInput
          label="Owner"
          description="The account that looks after it; empty for nobody"
          value={owner}
          error={fieldError(save.error, "owner")}
          onChange={event => setOwner(event.currentTarget.value)}
          maxLength={64}
          spellCheck={false}
          autoCapitalize="off"
        />
        {owner !== user && (
          <Button variant="default" size="xs" onClick={() => setOwner(user)}>
            Take it over
          </Button>
        )}
      </div>
      <Textarea
        label="Notes"
        description="Why, and what is done about it. Everyone who sees the shift can read them."
        value={notes}
        error={fieldError(save.error, "notes")}
        onChange={event => setNotes(event.currentTarget.value)}
        maxLength={NOTES_LIMIT}
        rows={5}
      />
      <div className="row">
        <Button type="submit" loading={save.isPending} disabled={unchanged}>
          Save
        </Button>
      </div>
    </form>
  );
}
