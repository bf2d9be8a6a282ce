import { lazyRouteComponent } from "@tanstack/react-router";
import { probe } from "@/api/connection";
import { Unreachable } from "@/api/problem";

/**
 * Load a page's code when the page is visited. Throws Unreachable if the code cannot be loaded because the lab does not
 * answer. If the lab answers but the code is gone (a new build was deployed), the router reloads the document.
 */
export const lazyPage: typeof lazyRouteComponent = (importer, exportName) =>
  lazyRouteComponent(async () => {
    try {
      return await importer();
    } catch (error) {
      throw (await probe()) ? error : new Unreachable(error);
    }
  }, exportName);
