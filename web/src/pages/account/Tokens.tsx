import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, dataOf } from "@/api/client";
import { tokensQuery } from "@/api/queries";
import type { Scope } from "@/api/session";
import type { TokenCreated, TokenView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Checkbox, TextInput } from "@/kit";
import { CommandBlock } from "@/parts/CommandBlock";
import { type Column, DataTable } from "@/parts/DataTable";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./Tokens.module.css";

export function Tokens({ scopes }: { scopes: readonly Scope[] }) {
  const { data: tokens, error } = useQuery(tokensQuery);
  const [made, setMade] = useState<TokenCreated | null>(null);
  if (error && !tokens) throw error;
  return (
    <>
      <NewToken scopes={scopes} onMade={setMade} />
      {made && (
        <div className={classes.made} role="status">
          <p>
            <strong>{made.name}</strong> is made. It is shown this once; only its hash is kept.
          </p>
          <CommandBlock
            commands={[
              { name: "shell", text: `export WQLAB_URL=${location.origin} WQLAB_TOKEN=${made.token}` },
              { name: "token", text: made.token },
            ]}
          />
        </div>
      )}
      {tokens ? <TokenList tokens={tokens} /> : <Skeleton lines={3} height="1.5rem" />}
    </>
  );
}

function NewToken({ scopes, onMade }: { scopes: readonly Scope[]; onMade(made: TokenCreated): void }) {
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: (body: { name: string; scopes: string[] }) => dataOf(api.POST("/api/v1/tokens", { body })),
    onSuccess: made => {
      onMade(made);
      void client.invalidateQueries({ queryKey: tokensQuery.queryKey });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = new FormData(form);
    make.mutate(
      { name: String(given.get("name")).trim(), scopes: given.getAll("scope").map(String) },
      { onSuccess: () => form.reset() },
    );
  };
  return (
    <form className={classes.form} onSubmit={submit}>
      <TextInput
        name="name"
        label="Name"
        placeholder="ci of linux-wq"
        required
        maxLength={100}
        className={classes.name}
      />
      <fieldset className={classes.scopes}>
        <legend>Scopes</legend>
        {scopes.map(scope => (
          <Checkbox
            key={scope}
            name="scope"
            value={scope}
            label={scope}
            defaultChecked={scope !== "admin" && scope !== "maintain"}
          />
        ))}
      </fieldset>
      <Button type="submit" loading={make.isPending}>
        Make a token
      </Button>
      {make.isError && (
        <p role="alert" className={classes.failure}>
          {make.error.message}
        </p>
      )}
    </form>
  );
}

function TokenList({ tokens }: { tokens: readonly TokenView[] }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: (token: TokenView) =>
      dataOf(api.POST("/api/v1/tokens/{token_id}/revoke", { params: { path: { token_id: token.id } } })),
    onSuccess: token => {
      toast({ text: `${token.name} is revoked.` });
      void client.invalidateQueries({ queryKey: tokensQuery.queryKey });
    },
    onError: error => toast({ tone: "bad", text: `Not revoked: ${error.message}` }),
  });
  const columns: Column<TokenView>[] = [
    { id: "name", header: "name", value: of => of.name, rowHeader: true },
    { id: "scopes", header: "scopes", value: of => of.scopes.join(", ") },
    {
      id: "created",
      header: "made",
      value: of => of.created_at,
      cell: of => <RelativeTime at={of.created_at} />,
    },
    {
      id: "used",
      header: "last used",
      value: of => of.last_used_at,
      cell: of => <RelativeTime at={of.last_used_at} />,
    },
    {
      id: "revoked",
      header: "revoked",
      value: of => of.revoked_at,
      cell: of =>
        of.revoked_at ? (
          <RelativeTime at={of.revoked_at} />
        ) : (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`Revoke ${of.name}`}
            loading={revoke.isPending && revoke.variables?.id === of.id}
            onClick={() => revoke.mutate(of)}
          >
            Revoke
          </Button>
        ),
    },
  ];
  return (
    <DataTable
      caption="Your API tokens"
      captionHidden
      copyable={false}
      columns={columns}
      rows={tokens}
      rowKey={of => of.id}
      empty="No token yet."
    />
  );
}
