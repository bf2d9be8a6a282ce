import "./styles/index.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { onReconnect } from "./api/connection";
import { makeQueryClient } from "./api/queries";
import { takeEmbeddedReport } from "./api/reportPage";
import { Theme } from "./app/theme";
import { makeRouter } from "./router";

const client = makeQueryClient();
onReconnect(() => void client.invalidateQueries());
const router = makeRouter(client);
function start() {
  createRoot(document.getElementById("root") as HTMLElement).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <Theme>
          <RouterProvider router={router} />
        </Theme>
      </QueryClientProvider>
    </StrictMode>,
  );
}

/** Resolves when the browser has painted what it has; at once in a tab that is not visible. */
const painted = () =>
  new Promise<void>(done => (document.hidden ? done() : requestAnimationFrame(() => setTimeout(done))));

// The first screen of a report is painted, and stays until the application can show the same.
if (takeEmbeddedReport(client, document))
  void painted()
    .then(() => router.load())
    .then(start);
else start();
