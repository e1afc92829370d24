/** Settings for callers of a scheduler that asks for no secret (D47). */
import * as Hosts from "../core/access/hosts.ts"
import * as Settings from "../core/settings/settings.ts"

export const openKnobs = {
  hosts: Settings.text("SVC_HOSTS", {
    meaning:
      "Names under which a scheduler without SVC_SCHEDULER_AUTH_SECRET may be asked, beside addresses, names without dots and those below .internal, .local, .localhost and .svc; separated by commas, `*.domain` for all below it.",
    defaultText: "none",
    allowed: "hosts separated by commas",
    read: (text) => (Hosts.parseList(text) === undefined ? undefined : text)
  }),
  openTo: Settings.choice("SVC_SCHEDULER_OPEN_TO", ["private", "anybody"], "private", {
    meaning:
      "Whom a scheduler without SVC_SCHEDULER_AUTH_SECRET and SVC_AUTH_SECRETS answers: `private`, loopback and private addresses, under names of SVC_HOSTS and those beside it; `anybody`, every address under every name, so that each program that reaches the port reads and writes every record."
  })
}
