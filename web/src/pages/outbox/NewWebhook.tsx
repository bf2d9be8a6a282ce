import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { api, dataOf } from "@/api/client";
import { fieldError } from "@/api/problem";
import { namesQuery } from "@/api/queries";
import type { OutboxEvent, WebhookRequest, WebhookSecret } from "@/api/types";
import { Button, Checkbox, TextInput } from "@/kit";
import { FormError } from "@/parts/FormError";
import classes from "./outbox.module.css";
import { EVENT_MEANING, EVENTS } from "./webhook";

const CHOSEN: ReadonlySet<OutboxEvent> = new Set([
  "submission.finished",
  "regression.found",
  "culprit.found",
]);

/** Form that adds a webhook. `everything`: the user may leave out the filter. */
export function NewWebhook({
  everything,
  onMade,
}: {
  everything: boolean;
  onMade(made: WebhookSecret): void;
}) {
  const client = useQueryClient();
  const { data: names } = useQuery(namesQuery);
  const make = useMutation({
    mutationFn: (body: WebhookRequest) => dataOf(api.POST("/api/v1/webhooks", { body })),
    onSuccess: made => {
      onMade(made);
      void client.invalidateQueries({ queryKey: ["webhooks"] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    make.mutate(
      {
        url: String(data.get("url")).trim(),
        events: data.getAll("event") as OutboxEvent[],
        filter: {
          mine: data.has("mine"),
          device_types: data.getAll("device_type").map(String),
          plans: data.getAll("plan").map(String),
        },
      },
      { onSuccess: () => form.reset() },
    );
  };
  const at = (field: string) => fieldError(make.error, field);
  return (
    <form className="form" onSubmit={submit}>
      <FormError error={make.error} />
      <TextInput
        name="url"
        type="url"
        label="URL"
        description="https, with an address that is public unless the lab's operator lists the host"
        placeholder="https://ci.example.org/wqlab"
        required
        withAsterisk={false}
        error={at("url")}
        autoComplete="off"
        spellCheck={false}
      />
      <fieldset className={classes.choices}>
        <legend>Events</legend>
        {EVENTS.map(event => (
          <Checkbox
            key={event}
            name="event"
            value={event}
            label={event}
            description={EVENT_MEANING[event]}
            defaultChecked={CHOSEN.has(event)}
          />
        ))}
        {at("events") && (
          <p className={classes.mistake} role="alert">
            Select at least one event.
          </p>
        )}
      </fieldset>
      <fieldset className={classes.choices}>
        <legend>Only</legend>
        <p className="muted">
          {everything
            ? "Everything that is selected must match. Select nothing to get the events of the whole lab."
            : "Everything that is selected must match; select something. Only administrators get the events of the whole lab."}
        </p>
        <Checkbox name="mine" label="my submissions" defaultChecked={!everything} />
      </fieldset>
      <Names legend="Device types" name="device_type" of={names?.device_types ?? []} />
      <Names legend="Plans" name="plan" of={Object.keys(names?.plans ?? {})} />
      <div className="row">
        <Button type="submit" loading={make.isPending}>
          Add webhook
        </Button>
      </div>
    </form>
  );
}

/** Names to choose from, folded because there are many. */
function Names({ legend, name, of }: { legend: string; name: string; of: readonly string[] }) {
  if (of.length === 0) return null;
  return (
    <details>
      <summary>Only some {legend.toLowerCase()}</summary>
      <fieldset className={classes.names}>
        <legend className="hidden-visually">{legend}</legend>
        {of.map(each => (
          <Checkbox key={each} name={name} value={each} label={each} />
        ))}
      </fieldset>
    </details>
  );
}
