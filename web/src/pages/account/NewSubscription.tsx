import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { ApiError } from "@/api/problem";
import { deviceTypesQuery, plansQuery, webhooksQuery } from "@/api/queries";
import type { SubscriptionKind, SubscriptionRequest } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, NativeSelect } from "@/kit";
import { FormError } from "@/parts/FormError";
import classes from "./Account.module.css";
import { KIND_WORDS, requestOf } from "./subscription";

const KINDS = Object.entries(KIND_WORDS).map(([value, label]) => ({ value, label }));

/** Form that adds a subscription. `name`: the user, whose own webhooks can be chosen. */
export function NewSubscription({ name }: { name: string }) {
  const client = useQueryClient();
  const { data: types = [] } = useQuery(deviceTypesQuery);
  const { data: plans = [] } = useQuery(plansQuery);
  const { data: webhooks } = useQuery(webhooksQuery({ limit: 200 }));
  const [kind, setKind] = useState<SubscriptionKind>("my_series");
  const own = (webhooks?.items ?? []).filter(each => each.owner === name);
  const make = useMutation({
    mutationFn: (body: SubscriptionRequest) => dataOf(api.POST("/api/v1/subscriptions", { body })),
    onSuccess: made => {
      toast({ text: `You will get: ${made.text}.` });
      void client.invalidateQueries({ queryKey: ["subscriptions"] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    make.mutate(requestOf(kind, new FormData(event.currentTarget)));
  };
  const at = (pointer: string) => (make.error instanceof ApiError ? make.error.field(pointer) : undefined);
  return (
    <form className={classes.form} onSubmit={submit}>
      <FormError error={make.error} />
      <NativeSelect
        label="Results"
        data={KINDS}
        value={kind}
        onChange={event => setKind(event.currentTarget.value as SubscriptionKind)}
      />
      {kind === "regressions" && (
        <NativeSelect name="plan" label="Plan" data={plans.map(view => view.plan.name)} error={at("/plan")} />
      )}
      {kind !== "my_series" && (
        <NativeSelect
          name="device_type"
          label="Device type"
          data={[
            ...(kind === "regressions" ? [{ value: "", label: "any" }] : []),
            ...types.map(type => ({ value: type.name, label: type.name })),
          ]}
          error={at("/device_type")}
        />
      )}
      <NativeSelect
        name="webhook"
        label="Sent"
        data={[
          { value: "", label: "by mail" },
          ...own.map(each => ({ value: String(each.id), label: `to webhook ${each.id}: ${each.url}` })),
        ]}
        error={at("/webhook_id")}
        className={classes.way}
      />
      <Button type="submit" loading={make.isPending}>
        Subscribe
      </Button>
    </form>
  );
}
