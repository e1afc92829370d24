#!/usr/bin/env node
/**
 * The door of the scheduler: `node dist/scheduler.js`. Serving is not built in this version and says so; `--verify-wal <path>` is.
 *
 * Here already, so that a deployment that names it fails at once and clearly, not with a missing file.
 */
import { Effect } from "effect"
import * as Process from "./host/Process.ts"
import * as WalFile from "./host/WalFile.ts"
import { StartFault } from "./ports/StartFault.ts"
import * as Cli from "./scheduler/Cli.ts"

const serve = Effect.fail(new StartFault({ exitCode: 1, message: "the scheduler is not built in this version; run one SSP standalone: node dist/ssp.js with SCHEDULER_URL unset" }))
Process.run(Cli.main(Process.args(), serve, WalFile.verify))
