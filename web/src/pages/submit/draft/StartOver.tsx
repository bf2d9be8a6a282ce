import { useState } from "react";
import { Button } from "@/kit";
import { announce } from "@/parts/LiveRegion";
import { submitSearch } from "../route";
import type { Draft } from "./draft";
import type { Mbox } from "./keep";
import type { ChangeDraft, MboxState } from "./useDraft";

interface StartOverProps {
  draft: Draft;
  change: ChangeDraft;
  mbox: MboxState;
  onClear(): void;
}

/** Empties the form, which lasts otherwise; and brings it back for whoever did not mean it. */
export function StartOver({ draft, change, mbox, onClear }: StartOverProps) {
  const [cleared, setCleared] = useState<{ draft: Draft; mbox: Mbox | null } | null>(null);
  const empty = JSON.stringify(draft) === JSON.stringify(submitSearch.defaults) && mbox.mbox === null;
  const clear = () => {
    setCleared({ draft, mbox: mbox.mbox });
    change(submitSearch.defaults);
    mbox.change(null);
    onClear();
    announce("The form is empty.");
  };
  const restore = () => {
    if (!cleared) return;
    change(cleared.draft);
    mbox.change(cleared.mbox);
    setCleared(null);
    announce("The form is as it was.");
  };
  if (empty && !cleared) return null;
  return (
    <Button variant="default" size="xs" onClick={empty ? restore : clear}>
      {empty ? "Bring back what was filled in" : "Clear the form"}
    </Button>
  );
}
