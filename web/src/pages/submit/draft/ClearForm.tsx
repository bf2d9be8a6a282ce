import { useState } from "react";
import { Button } from "@/kit";
import { announce } from "@/parts/LiveRegion";
import { submitSearch } from "../search";
import type { Draft, Mbox } from "./draft";
import type { ChangeDraft, MboxState } from "./useDraft";

interface ClearFormProps {
  draft: Draft;
  change: ChangeDraft;
  mbox: MboxState;
  onClear(): void;
}

/** Button that clears the saved form, then offers to undo it. */
export function ClearForm({ draft, change, mbox, onClear }: ClearFormProps) {
  const [cleared, setCleared] = useState<{ draft: Draft; mbox: Mbox | null } | null>(null);
  const empty = JSON.stringify(draft) === JSON.stringify(submitSearch.defaults) && mbox.mbox === null;
  const clear = () => {
    setCleared({ draft, mbox: mbox.mbox });
    change(submitSearch.defaults);
    mbox.change(null);
    onClear();
    announce("Form cleared.");
  };
  const restore = () => {
    if (!cleared) return;
    change(cleared.draft);
    mbox.change(cleared.mbox);
    setCleared(null);
    announce("Form restored.");
  };
  if (empty && !cleared) return null;
  return (
    <Button variant="default" size="xs" onClick={empty ? restore : clear}>
      {empty ? "Undo clear" : "Clear form"}
    </Button>
  );
}
