import { CommandBlock } from "@/parts/CommandBlock";
import { Page } from "@/parts/Page";

export function SubmitPage() {
  return (
    <Page title="Submit" lead="A branch, an mbox, or a settings study.">
      <CommandBlock
        commands={[
          { name: "wqlab", text: "wqlab submit --mbox series.mbox --target xfs-fsync@xeon-2s --wait" },
        ]}
      />
    </Page>
  );
}
