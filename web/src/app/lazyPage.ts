import { lazyRouteComponent } from "@tanstack/react-router";
import { probe } from "@/api/connection";
import { Unreachable } from "@/api/problem";

/**
 * A page whose code is loaded when it is visited. Code that does not come because the lab is away is an error like any
 * other, which passes when the lab answers; code that is gone because the pages were built anew is loaded with the page.
 */
export const lazyPage: typeof lazyRouteComponent = (importer, exportName) =>
  lazyRouteComponent(async () => {
    try {
      return await importer();
    } catch (error) {
      throw (await probe()) ? error : new Unreachable(error);
    }
  }, exportName);
