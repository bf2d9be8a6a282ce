import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// Against hanging only, as testTimeout is.
configure({ asyncUtilTimeout: 60_000 });
afterEach(cleanup);
