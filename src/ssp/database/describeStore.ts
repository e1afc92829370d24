/**
 * Describes where this SSP keeps its data.
 *
 * For people: the greeting, the log line at the start and the overview show the same text.
 */
import * as Address from "../../core/settings/address.ts"
import type { SspConfigShape } from "../Config.ts"

export const describeStore = ({
  dataDir,
  mode,
  storeAddr,
  storeDb,
  storeNs
}: Pick<SspConfigShape, "dataDir" | "mode" | "storeAddr" | "storeDb" | "storeNs">): string => {
  if (storeAddr === undefined && mode === "scheduler") return `records from the scheduler, its own state in ${dataDir}`
  if (storeAddr === undefined) return `embedded SQLite in ${dataDir}`
  if (Address.store(storeAddr)?.kind === "server")
    return `${storeAddr} (${storeNs}/${storeDb}), its own state in ${dataDir}`
  return /^mem(?:ory)?:/.test(storeAddr) ? `${storeAddr} (nothing is kept)` : `${storeAddr}, inside this process`
}
