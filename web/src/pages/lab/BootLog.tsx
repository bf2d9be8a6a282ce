import { getRouteApi, Link, useRouter } from "@tanstack/react-router";
import { useState } from "react";
import { LogView } from "@/console/LogView";
import type { Log } from "@/console/log";
import { consoleUrl } from "@/console/stream";
import { useConsole } from "@/console/useLog";
import { Section } from "@/parts/Page";
import classes from "./LabPage.module.css";
import { useScrollToHash } from "./useScrollToHash";

const route = getRouteApi("/lab/$name");

interface BootLogProps {
  run: number;
  boot: number;
}

/** Console of a boot without a submission, such as a health check. */
export function BootLog({ run, boot }: BootLogProps) {
  const [tries, setTries] = useState(0);
  useScrollToHash("console");
  return (
    <Section
      id="console"
      title={`Console of boot ${boot}`}
      lead={`Run ${run}`}
      actions={
        <Link from="/lab/$name" to="." search={({ cursor }) => ({ cursor })} resetScroll={false}>
          Close
        </Link>
      }
    >
      <div className={classes.console}>
        <Opened key={`${boot}-${tries}`} run={run} boot={boot} onRetry={() => setTries(tries + 1)} />
      </div>
    </Section>
  );
}

type OpenedProps = BootLogProps & { onRetry(): void };

function Opened(props: OpenedProps) {
  const log = useConsole(props.run, props.boot);
  return log && <Read {...props} log={log} />;
}

function Read({ run, boot, log, onRetry }: OpenedProps & { log: Log }) {
  const search = route.useSearch();
  const { name } = route.useParams();
  const navigate = route.useNavigate();
  const router = useRouter();
  return (
    <LogView
      log={log}
      name={`Console of boot ${boot} of ${name}`}
      address={{ line: search.line, find: search.find }}
      onAddress={(change, replace) =>
        void navigate({ search: { ...search, ...change }, hash: true, replace, resetScroll: false })
      }
      lineHref={line =>
        router.buildLocation({
          to: "/lab/$name",
          params: { name },
          search: { ...search, line },
          hash: "console",
        }).href
      }
      download={{ href: consoleUrl(run, boot), file: `${name}-boot-${boot}-console.txt` }}
      grows
      empty="The device printed nothing."
      onRetry={onRetry}
    />
  );
}
