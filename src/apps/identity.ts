// What a registration is, across restarts: whose it is, of which app and instance, and its name. Everything else about it
// may change and is refreshed.
import { checkName } from "../core/name.ts";

export type InstanceIdentity = { readonly tenant: string; readonly app: string; readonly instance: number };
export type Identity = InstanceIdentity & { readonly name: string };

/** The name under which the rooms below know it. A tenant and a key of an app have no slash, so two identities never share
 *  one; and the tenant is in it because the definition of a job serves every tenant, and this one must not. */
export function nameOf({ name, ...instance }: Identity): string {
  return checkName(`${beginOf(instance)}${name}`, "the whole name of the registration");
}

/** How the names of all that an instance registers begin. */
export function beginOf({ tenant, app, instance }: InstanceIdentity): string {
  return `${tenant}/${app}/${instance}/`;
}
