import { useSuspenseQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { deviceTypesQuery, plansQuery, recipesQuery, treesQuery } from "@/api/queries";
import { count } from "@/lib/numbers";
import { Page, Section } from "@/parts/Page";
import { ClearForm } from "./draft/ClearForm";
import { countTargets, requestOf } from "./draft/draft";
import { FieldError, FieldErrorsContext, fieldId } from "./draft/FieldError";
import { fieldErrorsOf, missingInput, withoutEmptyFields } from "./draft/fieldErrors";
import { useDraft, useMbox } from "./draft/useDraft";
import { useSubmit } from "./draft/useSubmit";
import { QuoteTargets } from "./quote/QuotePanel";
import { SameCommand, SubmitPanel } from "./quote/SubmitPanel";
import { fingerprint, useQuote } from "./quote/useQuote";
import classes from "./SubmitPage.module.css";
import { SeriesFields } from "./series/SeriesFields";
import { TreeField } from "./series/TreeField";
import { useFileDrop } from "./series/useFileDrop";
import { Advanced } from "./targets/Advanced";
import { SweepFields } from "./targets/SweepFields";
import { TargetTable } from "./targets/TargetTable";
import { ProposedTargets } from "./touches/ProposedTargets";

export function SubmitPage() {
  const { data: plans } = useSuspenseQuery(plansQuery);
  const { data: trees } = useSuspenseQuery(treesQuery);
  const { data: recipes } = useSuspenseQuery(recipesQuery);
  const { data: allTypes } = useSuspenseQuery({ ...deviceTypesQuery, refetchInterval: 20_000 });
  const [draft, change] = useDraft();
  // A generated type is chosen by a sweep, or by a link that names it.
  const types = useMemo(
    () => allTypes.filter(type => !type.generated || draft.type.includes(type.name)),
    [allTypes, draft.type],
  );
  const mbox = useMbox();
  const [presses, setPresses] = useState(0);
  const tried = presses > 0;
  const proposes = draft.source !== "settings" && draft.vary === "";
  // Until the user opens or closes it, the table is open where nothing is proposed.
  const [opened, setOpened] = useState<boolean>();
  const open = opened ?? !proposes;

  const standard = trees.find(each => each.default) ?? trees[0];
  const request = useMemo(
    () => requestOf(draft, mbox.mbox, standard?.tree.name ?? ""),
    [draft, mbox.mbox, standard],
  );
  const mboxKey = useMemo(() => (mbox.mbox ? fingerprint(mbox.mbox.text) : ""), [mbox.mbox]);
  const quote = useQuote(request, mboxKey);
  const submission = useSubmit(request, quote.key);

  // Show the errors of a rejected request until the form changes; then those of its quote.
  const incomplete = missingInput(draft, mbox.mbox !== null);
  const fieldErrors = useMemo(() => {
    const errors = fieldErrorsOf(submission.fieldErrors ?? quote.errors, draft);
    return tried ? errors : withoutEmptyFields(errors, draft, mbox.mbox !== null);
  }, [submission.fieldErrors, quote.errors, draft, tried, mbox.mbox]);
  const shown = useMemo(() => {
    if (!tried) return fieldErrors;
    // Messages for empty fields replace the server's.
    return new Map([...fieldErrors, ...fieldErrorsOf(missingInput(draft, mbox.mbox !== null), draft)]);
  }, [fieldErrors, tried, draft, mbox.mbox]);

  const over = useFileDrop(file => {
    mbox.load(file);
    change({ source: "mbox" });
  });

  return (
    <Page title="Submit a series">
      <FieldErrorsContext value={shown}>
        <form
          className={classes.form}
          data-over={over || undefined}
          noValidate
          onSubmit={event => {
            event.preventDefault();
            setPresses(presses + 1);
            if (incomplete.length === 0) submission.submit();
          }}
        >
          <div className={classes.fields}>
            <Section id="series" title="Series">
              <SeriesFields draft={draft} change={change} request={request} mbox={mbox} mboxKey={mboxKey} />
            </Section>
            <Section id="tree" title="Tree">
              <TreeField trees={trees} value={request.tree} onChange={tree => change({ tree })} />
            </Section>
            {proposes && (
              <Section id="touches" title="What to measure">
                <ProposedTargets
                  request={request}
                  mboxKey={mboxKey}
                  types={types}
                  draft={draft}
                  change={change}
                />
              </Section>
            )}
          </div>
          <SubmitPanel
            quote={quote}
            request={request}
            submission={submission}
            presses={presses}
            targets={countTargets(draft)}
          />
          <div className={classes.fields}>
            <details open={open} onToggle={event => event.currentTarget.open !== open && setOpened(!open)}>
              <summary>
                {proposes ? "Other plans and devices" : "Plans and devices"}{" "}
                <span className="muted">
                  ({count(plans.length, "plan")}, {count(types.length, "device type")})
                </span>
              </summary>
              <div className={classes.choice} id={fieldId("targets")}>
                <SweepFields draft={draft} change={change} />
                <TargetTable plans={plans} types={types} draft={draft} change={change} />
              </div>
            </details>
            <FieldError field="targets" />
            <QuoteTargets live={quote} request={request} />
            <Advanced plans={plans} types={types} recipes={recipes} draft={draft} change={change} />
            <SameCommand request={request} file={mbox.mbox?.name ?? ""} complete={incomplete.length === 0} />
            <div>
              <ClearForm draft={draft} change={change} mbox={mbox} onClear={() => setPresses(0)} />
            </div>
          </div>
        </form>
      </FieldErrorsContext>
    </Page>
  );
}
