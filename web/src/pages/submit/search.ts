/** Search parameters of the submit page. */
import { oneOf, searchParams, text, texts } from "@/lib/search";

export const SOURCES = ["git", "thread", "mbox", "settings"] as const;

/** All form fields except the text of an mbox, so that a form can be linked and survives sign-in and reload. */
export const submitSearch = searchParams({
  source: oneOf(SOURCES, "git"),
  git: text(2000),
  ref: text(300),
  base: text(300),
  /** Message-ID or URL of a mail. */
  message: text(2000),
  /** Revision of the mailed series; empty: the latest. */
  revision: text(10),
  tree: text(64),
  plan: texts(64),
  type: texts(64),
  /** Dimension over which a sweep measures, instead of on the device types. */
  vary: oneOf(["l3", "nodes", "cpus", "shard"] as const),
  /** Values of that dimension: `1, 2, 4, 8`. */
  values: text(100),
  /** Dimensions that stay; empty: the default. */
  l3: text(10),
  nodes: text(10),
  shard: text(10),
  cpus: text(10),
  /** Cost profile of a sweep over modelled devices; empty: instrumented ones. */
  costs: text(64),
  /** Excluded combinations of plan and device type: `plan@type`. */
  without: texts(),
  /** `HOLDER:NAME`. The holder is a plan, or `plan@type` for choices of one device type. */
  scenario: texts(),
  /** `HOLDER:scope=cache,strict=1` */
  setting: texts(),
  /** `HOLDER:name=value` */
  param: texts(400),
  blocks: text(80),
  layouts: text(10),
  priority: text(10),
  /** Empty: the default recipe of each device type. */
  recipe: text(64),
  backend: text(64),
  /** `patch`: each patch is measured against the one before. */
  walk: oneOf(["patch"] as const),
  /** `no`: no traced boots if a figure differs. */
  trace: oneOf(["no"] as const),
  /** Whether byte-identical kernels are measured too. */
  identical: oneOf(["skip", "measure"] as const, "skip"),
});
