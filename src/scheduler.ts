#!/usr/bin/env node
/**
 * The door of the scheduler: `node dist/scheduler.js`. It is not built in this version and says so.
 *
 * Here already, so that a deployment that names it fails at once and clearly, not with a missing file.
 */
import { Effect } from "effect"
import * as Process from "./host/Process.ts"
import { StartFault } from "./ports/StartFault.ts"

Process.run(Effect.fail(new StartFault({ exitCode: 1, message: "the scheduler is not built in this version; run one SSP standalone: node dist/ssp.js with SCHEDULER_URL unset" })))
