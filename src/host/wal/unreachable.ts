/** The start fault for a log's server that cannot be reached, for every engine. */
import { StartFault } from "../../ports/StartFault.ts"

export const unreachable = (shown: string, why: string): StartFault =>
  new StartFault({
    exitCode: 1,
    message: `the log at ${shown} (SVC_LOG_URL) cannot be reached: ${why}. Start its server, or set SVC_LOG_URL to where it is`
  })
