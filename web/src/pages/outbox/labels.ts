/** Labels of deliveries: kinds, states and outcomes of attempts. */
import type { AttemptOutcome, DeliveryKind, DeliveryState, DeliveryView } from "@/api/types";

/** Every kind; the type makes a missing one an error. */
const KIND_WORDS: Record<DeliveryKind, string> = {
  webhook: "webhook",
  mail: "mail",
  personal_mail: "mail to an account",
  kcidb: "KernelCI result",
  forge_status: "commit status",
  forge_comment: "pull request comment",
  patchwork_check: "Patchwork check",
};
export const KINDS = Object.keys(KIND_WORDS) as DeliveryKind[];

/** What each state means, as docs/outbox.md has it. */
export const STATE_MEANING: Record<DeliveryState, string> = {
  waiting_for_review: "A maintainer has to approve, change or drop it.",
  waiting: "To be sent, now or again.",
  delivered: "The receiver has accepted it.",
  given_up: "The receiver has refused it for good, or all attempts have failed.",
  dropped: "It is not sent.",
};
export const STATES = Object.keys(STATE_MEANING) as DeliveryState[];

export const OUTCOME_WORDS: Record<AttemptOutcome, string> = {
  accepted: "accepted",
  failed: "failed, to be repeated",
  unknown: "unknown: the receiver may have got it",
  refused: "refused for good",
};

const MAIL_EVENTS: Record<string, string> = {
  reply: "answer",
  correction: "correction",
  result: "result",
  confirm: "confirmation of an address",
};

const isMail = (kind: DeliveryKind) => kind === "mail" || kind === "personal_mail";

/** What a delivery says: the event of a webhook; `answer`, `correction` or `result` of a mail. */
export function eventText({ kind, event }: Pick<DeliveryView, "kind" | "event">): string {
  return isMail(kind) ? (MAIL_EVENTS[event] ?? event) : event;
}

/** Return true if the server would send it again: it has ended, and a mail was not delivered. */
export function canReplay({ kind, state }: Pick<DeliveryView, "kind" | "state">): boolean {
  return state === "given_up" || (state === "delivered" && !isMail(kind));
}

/** Return true if a maintainer can still decide that it is not sent. */
export function canDrop({ kind, state }: Pick<DeliveryView, "kind" | "state">): boolean {
  return kind === "mail" && (state === "waiting_for_review" || state === "waiting");
}
