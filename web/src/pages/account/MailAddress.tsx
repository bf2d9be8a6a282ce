import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { api, dataOf } from "@/api/client";
import { mailAddressQuery } from "@/api/outboxQueries";
import { fieldError } from "@/api/problem";
import type { MailAddressView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Checkbox, TextInput } from "@/kit";
import { oneLine } from "@/lib/words";
import { Facts } from "@/parts/Facts";
import { FormError } from "@/parts/FormError";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./Account.module.css";

/** The address that results are mailed to, the switch for them, and the form that asks for another address. */
export function MailAddress() {
  const { data: of } = useQuery(mailAddressQuery);
  return of ? <Address of={of} /> : <Skeleton lines={4} height="1.8rem" />;
}

function Address({ of }: { of: MailAddressView }) {
  const client = useQueryClient();
  const keep = (found: MailAddressView) => client.setQueryData(["mail-address"], found);
  const ask = useMutation({
    mutationFn: (address: string) => dataOf(api.PUT("/api/v1/mail-address", { body: { address } })),
    onSuccess: keep,
  });
  const remove = useMutation({
    mutationFn: () => dataOf(api.DELETE("/api/v1/mail-address", {})),
    onSuccess: found => {
      keep(found);
      toast({ text: "Mail address removed." });
    },
    onError: error => toast({ tone: "bad", text: `Could not remove the address: ${error.message}` }),
  });
  const change = useMutation({
    mutationFn: (mail_results: boolean) =>
      dataOf(api.PATCH("/api/v1/mail-address", { body: { mail_results } })),
    onSuccess: keep,
    onError: error => toast({ tone: "bad", text: `Could not switch the mails: ${error.message}` }),
  });
  if (!of.sends_mail && !of.address) {
    return <p className="muted">This lab sends no mail. Results can be posted to a webhook.</p>;
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    ask.mutate(String(new FormData(form).get("address")).trim(), { onSuccess: () => form.reset() });
  };
  const mistake = fieldError(ask.error, "address");
  return (
    <div className="stack">
      <AddressFacts of={of} />
      {of.address && (
        <Checkbox
          label="Mail me my results"
          checked={of.mail_results}
          disabled={change.isPending}
          onChange={event => change.mutate(event.currentTarget.checked)}
        />
      )}
      <form className="form-row" onSubmit={submit}>
        <FormError error={mistake ? null : ask.error} />
        <TextInput
          name="address"
          type="email"
          label={of.address || of.asked_address ? "Another address" : "Mail address"}
          description="It gets a mail with a link, and nothing else until you confirm it there."
          placeholder="you@example.org"
          required
          withAsterisk={false}
          error={mistake}
          autoComplete="email"
          className={classes.address}
        />
        <Button type="submit" loading={ask.isPending}>
          Send link
        </Button>
        {(of.address || of.asked_address) && (
          <Button variant="default" loading={remove.isPending} onClick={() => remove.mutate()}>
            Remove address
          </Button>
        )}
      </form>
    </div>
  );
}

function AddressFacts({ of }: { of: MailAddressView }) {
  if (!of.address && !of.asked_address) return null;
  return (
    <Facts
      of={{
        "Mail address": of.address && oneLine(of.address),
        "To confirm": of.asked_address && of.asked_until && (
          <>
            {oneLine(of.asked_address)},{" "}
            <span className="muted">
              the link in its mail expires <RelativeTime at={of.asked_until} />
            </span>
            {of.problem && <p className={classes.problem}>It has not arrived: {oneLine(of.problem)}</p>}
          </>
        ),
      }}
    />
  );
}
