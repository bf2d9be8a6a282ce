import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, useMemo, useState } from "react";
import { api, dataOf } from "@/api/client";
import { usePaged } from "@/api/paged";
import { tokensQuery } from "@/api/queries";
import type { Scope, TokenCreated, TokenRequest, TokenView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button, Checkbox, NativeSelect, TextInput } from "@/kit";
import { type Column, DataTable } from "@/parts/DataTable";
import { FormError } from "@/parts/FormError";
import { Pager } from "@/parts/Pager";
import { RelativeTime } from "@/parts/RelativeTime";
import { Secret } from "@/parts/Secret";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./Account.module.css";

const PAGE = 50;
const DAY_MS = 86_400_000;
const LIFETIMES = [
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: "", label: "No expiration" },
];

const route = getRouteApi("/account");

export function Tokens({ scopes }: { scopes: readonly Scope[] }) {
  const { cursor } = route.useSearch();
  const { data: page } = useQuery(tokensQuery({ limit: PAGE, ...(cursor && { cursor }) }));
  const paged = usePaged(cursor, page, PAGE);
  const [made, setMade] = useState<TokenCreated | null>(null);
  return (
    <>
      <NewToken scopes={scopes} onMade={setMade} />
      {made && (
        <Secret
          onDone={() => setMade(null)}
          commands={[
            { name: "shell", text: `export WQLAB_URL=${location.origin} WQLAB_TOKEN=${made.token}` },
            { name: "token", text: made.token },
          ]}
        >
          Token <strong>{made.name}</strong> created. Copy it now: it will not be shown again, because the lab
          stores only its hash.
        </Secret>
      )}
      {page ? <TokenList tokens={page.items} /> : <Skeleton lines={4} height="1.8rem" />}
      <Pager paged={paged} shown={page?.items.length ?? 0} total={page?.total ?? 0} />
    </>
  );
}

function NewToken({ scopes, onMade }: { scopes: readonly Scope[]; onMade(made: TokenCreated): void }) {
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: (body: TokenRequest) => dataOf(api.POST("/api/v1/tokens", { body })),
    onSuccess: made => {
      onMade(made);
      void client.invalidateQueries({ queryKey: ["tokens"] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const days = Number(data.get("days"));
    make.mutate(
      {
        name: String(data.get("name")).trim(),
        scopes: data.getAll("scope") as Scope[],
        expires_at: days > 0 ? new Date(Date.now() + days * DAY_MS).toISOString() : null,
      },
      { onSuccess: () => form.reset() },
    );
  };
  return (
    <form className="form-row" onSubmit={submit}>
      <FormError error={make.error} />
      <TextInput
        name="name"
        label="Name"
        placeholder="CI, laptop, …"
        required
        withAsterisk={false}
        maxLength={100}
        className={classes.name}
      />
      <NativeSelect name="days" label="Expiration" data={LIFETIMES} defaultValue="365" />
      <fieldset className={classes.scopes}>
        <legend>Scopes</legend>
        {scopes.map(scope => (
          <Checkbox
            key={scope}
            name="scope"
            value={scope}
            label={scope}
            defaultChecked={scope === "read" || scope === "submit"}
          />
        ))}
      </fieldset>
      <Button type="submit" loading={make.isPending}>
        Create token
      </Button>
    </form>
  );
}

function TokenList({ tokens }: { tokens: readonly TokenView[] }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: (token: TokenView) =>
      dataOf(api.POST("/api/v1/tokens/{token_id}/revoke", { params: { path: { token_id: token.id } } })),
    onSuccess: token => {
      toast({ text: `Token ${token.name} revoked.` });
      void client.invalidateQueries({ queryKey: ["tokens"] });
    },
    onError: error => toast({ tone: "bad", text: `Could not revoke the token: ${error.message}` }),
  });
  const { mutate, isPending, variables } = revoke;
  const several = new Set(tokens.map(token => token.owner)).size > 1;
  const columns = useMemo(
    (): Column<TokenView>[] => [
      { id: "name", header: "Name", value: of => of.name, rowHeader: true },
      ...(several ? [{ id: "owner", header: "Owner", value: (of: TokenView) => of.owner ?? "worker" }] : []),
      { id: "scopes", header: "Scopes", value: of => of.scopes.join(", ") },
      { id: "made", header: "Created", value: of => of.created_at, time: true },
      { id: "used", header: "Last used", value: of => of.last_used_at, time: true },
      { id: "ends", header: "Expires", value: of => of.expires_at, time: "never" },
      {
        id: "revoked",
        header: "Revoked",
        value: of => of.revoked_at,
        cell: of =>
          of.revoked_at ? (
            <RelativeTime at={of.revoked_at} />
          ) : (
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Revoke ${of.name}`}
              loading={isPending && variables?.id === of.id}
              onClick={() => mutate(of)}
            >
              Revoke
            </Button>
          ),
      },
    ],
    [several, mutate, isPending, variables],
  );
  return (
    <DataTable
      caption="API tokens"
      captionHidden
      copyable={false}
      columns={columns}
      rows={tokens}
      rowKey={of => of.id}
      empty="No API tokens. Create one above."
      narrow="stack"
    />
  );
}
