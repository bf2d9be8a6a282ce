import { useSuspenseQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { deviceTypesQuery, plansQuery, recipesQuery, treesQuery } from "@/api/queries";
import { Page, Section } from "@/parts/Page";
import { Advanced } from "./draft/Advanced";
import { requestOf, wanted } from "./draft/draft";
import { Fault, FaultsContext } from "./draft/Fault";
import { faultsOf, missing, spokenOf } from "./draft/faults";
import { StartOver } from "./draft/StartOver";
import { useDraft, useMbox } from "./draft/useDraft";
import { useSend } from "./draft/useSend";
import { Order } from "./quote/Order";
import { fingerprint, useQuote } from "./quote/useQuote";
import classes from "./SubmitPage.module.css";
import { SeriesFields } from "./series/SeriesFields";
import { TreeField } from "./series/TreeField";
import { useFileDrop } from "./series/useFileDrop";
import { DeviceTypeCards, PlanCards, Targets } from "./targets/Cards";

export function SubmitPage() {
  const { data: plans } = useSuspenseQuery(plansQuery);
  const { data: trees } = useSuspenseQuery(treesQuery);
  const { data: recipes } = useSuspenseQuery(recipesQuery);
  const { data: types } = useSuspenseQuery({ ...deviceTypesQuery, refetchInterval: 20_000 });
  const [draft, change] = useDraft();
  const mbox = useMbox();
  const [presses, setPresses] = useState(0);
  const tried = presses > 0;

  const standard = trees.find(each => each.default) ?? trees[0];
  const request = useMemo(
    () => requestOf(draft, mbox.mbox, standard?.tree.name ?? ""),
    [draft, mbox.mbox, standard],
  );
  const mboxKey = useMemo(() => (mbox.mbox ? fingerprint(mbox.mbox.text) : ""), [mbox.mbox]);
  const quote = useQuote(request, mboxKey);
  const send = useSend(request, quote.key);

  // What the server refused stands until the form is another one; then its quote says what is still wrong.
  const incomplete = missing(draft, mbox.mbox !== null);
  const faults = useMemo(() => {
    const said = faultsOf(send.mistakes ?? quote.mistakes, draft);
    return tried ? said : spokenOf(said, draft, mbox.mbox !== null);
  }, [send.mistakes, quote.mistakes, draft, tried, mbox.mbox]);
  const shown = useMemo(() => {
    if (!tried) return faults;
    // In the page's own words where a field is merely empty.
    return new Map([...faults, ...faultsOf(missing(draft, mbox.mbox !== null), draft)]);
  }, [faults, tried, draft, mbox.mbox]);

  const over = useFileDrop(file => {
    mbox.take(file);
    change({ source: "mbox" });
  });

  return (
    <Page
      title="Submit"
      actions={<StartOver draft={draft} change={change} mbox={mbox} onClear={() => setPresses(0)} />}
      lead="Say what to test, what to measure and where. The lab builds both kernels, boots them in turns on one device, and answers for each topology."
    >
      <FaultsContext value={shown}>
        <form
          className={classes.form}
          data-over={over || undefined}
          noValidate
          onSubmit={event => {
            event.preventDefault();
            setPresses(presses + 1);
            if (incomplete.length === 0) send.submit();
          }}
        >
          <div className={classes.fields}>
            <Section id="series" title="What to test">
              <SeriesFields draft={draft} change={change} mbox={mbox} mboxKey={mboxKey} />
            </Section>
            <Section id="tree" title="On which tree">
              <TreeField trees={trees} value={request.tree} onChange={tree => change({ tree })} />
            </Section>
            <Section id="plans" title="What to measure">
              <PlanCards plans={plans} draft={draft} change={change} />
            </Section>
            <Section id="devices" title="Where">
              <DeviceTypeCards types={types} draft={draft} change={change} />
              <Targets draft={draft} change={change} />
              <Fault field="targets" />
            </Section>
            <Advanced plans={plans} types={types} recipes={recipes} draft={draft} change={change} />
          </div>
          <Order
            quote={quote}
            request={request}
            send={send}
            file={mbox.mbox?.name ?? ""}
            complete={incomplete.length === 0}
            presses={presses}
            targets={wanted(draft)}
          />
        </form>
      </FaultsContext>
    </Page>
  );
}
