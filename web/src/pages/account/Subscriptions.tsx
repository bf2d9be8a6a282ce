import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, dataOf } from "@/api/client";
import { mailAddressQuery, subscriptionsQuery } from "@/api/queries";
import { sessionQuery } from "@/api/session";
import type { SubscriptionView } from "@/api/types";
import { toast } from "@/app/toasts";
import { Button } from "@/kit";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import classes from "./Account.module.css";
import { MailAddress } from "./MailAddress";
import { NewSubscription } from "./NewSubscription";

export function Subscriptions() {
  const { user } = useSuspenseQuery(sessionQuery).data;
  const { data: address, error: addressError } = useQuery(mailAddressQuery);
  const { data: page, error } = useQuery(subscriptionsQuery);
  if (addressError && !address) throw addressError;
  if (error && !page) throw error;
  if (!page || !address) return <Skeleton lines={9} height="1.8rem" />;
  const waits = !address.address && page.items.some(each => each.webhook_id === null);
  return (
    <div className={classes.stack}>
      <MailAddress of={address} />
      <NewSubscription name={user?.name ?? ""} />
      {waits && (
        <p role="status">
          Nothing is mailed until you have confirmed an address: what finishes before is not sent.
        </p>
      )}
      <SubscriptionList rows={page.items} />
    </div>
  );
}

function SubscriptionList({ rows }: { rows: readonly SubscriptionView[] }) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: (of: SubscriptionView) =>
      dataOf(
        api.DELETE("/api/v1/subscriptions/{subscription_id}", {
          params: { path: { subscription_id: of.id } },
        }),
      ),
    onSuccess: of => {
      toast({ text: `Subscription removed: ${of.text}.` });
      void client.invalidateQueries({ queryKey: ["subscriptions"] });
    },
    onError: error => toast({ tone: "bad", text: `Could not remove the subscription: ${error.message}` }),
  });
  const { mutate, isPending, variables } = remove;
  const columns = useMemo(
    (): Column<SubscriptionView>[] => [
      { id: "text", header: "Results", value: of => of.text, rowHeader: true },
      {
        id: "sent",
        header: "Sent",
        value: of => (of.webhook_id === null ? "by mail" : `to webhook ${of.webhook_id}`),
        wrap: true,
        cell: of =>
          of.webhook_id === null ? (
            "by mail"
          ) : (
            <span className={classes.long}>
              to webhook {of.webhook_id}: {oneLine(of.webhook_url ?? "")}
            </span>
          ),
      },
      {
        id: "since",
        header: "Since",
        value: of => of.created_at,
        cell: of => <RelativeTime at={of.created_at} />,
      },
      {
        id: "actions",
        header: "Actions",
        bare: true,
        sortable: false,
        value: () => null,
        cell: of => (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`Remove ${of.text}`}
            loading={isPending && variables?.id === of.id}
            onClick={() => mutate(of)}
          >
            Remove
          </Button>
        ),
      },
    ],
    [mutate, isPending, variables],
  );
  return (
    <DataTable
      caption="Subscriptions"
      captionHidden
      copyable={false}
      columns={columns}
      rows={rows}
      rowKey={of => of.id}
      empty="No subscriptions. Add one above."
      narrow="stack"
    />
  );
}
