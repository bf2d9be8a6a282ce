import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// Only guards against hanging tests, like testTimeout.
configure({ asyncUtilTimeout: 60_000 });
afterEach(cleanup);
