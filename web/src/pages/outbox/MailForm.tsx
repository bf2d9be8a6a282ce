import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { deliveryQuery } from "@/api/outboxQueries";
import { fieldError } from "@/api/problem";
import type { MailEdit, OutgoingMail } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Textarea, TextInput } from "@/kit";
import { count } from "@/lib/numbers";
import { FormError } from "@/parts/FormError";
import { addressesOf, changesOf, MAIL_COLUMNS, MAIL_LINES, sizeOf } from "./mail";
import classes from "./outbox.module.css";

interface MailFormProps {
  id: number;
  mail: OutgoingMail;
  onDone(): void;
}

/** Form that changes recipients, subject and text of a mail that waits for review. */
export function MailForm({ id, mail, onDone }: MailFormProps) {
  const client = useQueryClient();
  const [to, setTo] = useState(mail.to.join("\n"));
  const [cc, setCc] = useState(mail.cc.join("\n"));
  const [subject, setSubject] = useState(mail.subject);
  const [body, setBody] = useState(mail.body);
  const save = useMutation({
    mutationFn: (change: MailEdit) =>
      dataOf(
        api.PATCH("/api/v1/deliveries/{delivery_id}/mail", {
          params: { path: { delivery_id: id } },
          body: change,
        }),
      ),
    onSuccess: changed => {
      client.setQueryData(deliveryQuery(id).queryKey, changed);
      void client.invalidateQueries({ queryKey: ["deliveries"] });
      toast({ text: `Mail ${id} is changed. It still has to be approved.` });
      onDone();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const change = changesOf(mail, { to: addressesOf(to), cc: addressesOf(cc), subject, body });
    if (Object.keys(change).length === 0) onDone();
    else save.mutate(change);
  };
  const at = (field: keyof MailEdit) => fieldError(save.error, field);
  return (
    <form className="form" onSubmit={submit}>
      <FormError error={save.error} />
      <Textarea
        label="To"
        description="One address a line"
        value={to}
        error={at("to")}
        onChange={event => setTo(event.currentTarget.value)}
        rows={Math.max(1, addressesOf(to).length)}
        required
        withAsterisk={false}
        spellCheck={false}
        classNames={{ input: "mono" }}
      />
      <Textarea
        label="Cc"
        description="One address a line"
        value={cc}
        error={at("cc")}
        onChange={event => setCc(event.currentTarget.value)}
        rows={Math.min(8, Math.max(1, addressesOf(cc).length))}
        spellCheck={false}
        classNames={{ input: "mono" }}
      />
      <TextInput
        label="Subject"
        value={subject}
        error={at("subject")}
        onChange={event => setSubject(event.currentTarget.value)}
        required
        withAsterisk={false}
        classNames={{ input: "mono" }}
      />
      <Textarea
        label="Text"
        value={body}
        error={at("body")}
        onChange={event => setBody(event.currentTarget.value)}
        rows={MAIL_LINES / 2}
        required
        withAsterisk={false}
        wrap="off"
        classNames={{ input: "mono" }}
      />
      <Counters text={body} />
      <div className="row">
        <Button type="submit" loading={save.isPending}>
          Save
        </Button>
        <Button variant="default" onClick={onDone}>
          Discard changes
        </Button>
      </div>
    </form>
  );
}

/** Lines and columns of a text against the limits of the lab's mails. */
export function Counters({ text }: { text: string }) {
  const { lines, columns, long } = sizeOf(text);
  const named = long.slice(0, 5).join(", ");
  return (
    <p className={classes.counters}>
      <span data-over={lines > MAIL_LINES || undefined}>
        {lines} of {MAIL_LINES} lines
      </span>
      <span data-over={long.length > 0 || undefined}>
        longest line {columns} of {MAIL_COLUMNS} columns
        {long.length > 0 &&
          `; ${count(long.length, "line")} too long: ${named}${long.length > 5 ? ", …" : ""}`}
      </span>
    </p>
  );
}
