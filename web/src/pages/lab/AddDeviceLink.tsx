import { Link } from "@tanstack/react-router";
import { useHasScope } from "@/api/session";

/** Link to the form for a new machine. Renders nothing without the admin scope. */
export function AddDeviceLink() {
  const may = useHasScope();
  return may("admin") ? <Link to="/new-device">Add a machine</Link> : null;
}
