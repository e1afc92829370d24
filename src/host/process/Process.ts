/**
 * A program as a process of the operating system: signals, the time limit of a stop, exit codes.
 *
 * Not the platform's runner: a second signal must end at once, a stop must end within 10 s whatever hangs, and a fault
 * must end with its own code. 0 clean stop, 2 configuration, 3 damaged data, 1 anything else; 5 comes from the
 * watchdog.
 */
import { Cause, Effect, Exit, RuntimeFlags, RuntimeFlagsPatch } from "effect"
import { StartFault } from "../../ports/StartFault.ts"
import { disablePretenuring } from "./allocation.ts"
import { restrictFileMode } from "./privateFolder.ts"

const stopWithinMs = 10_000

const complain = (text: string): void => void process.stderr.write(`${text}\n`)

/** Exits once standard output and standard error are written. */
const leave = (code: number): void => {
  process.exitCode = code
  process.stdout.write("", () => process.stderr.write("", () => process.exit(code)))
}

/** Set by {@link endWithin}: from then on a stop that was asked for before ends with this fault too. */
let ending: StartFault | undefined

const codeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  const isStopped = Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause)
  if (isStopped && ending === undefined) return 0
  const error = isStopped ? ending : Cause.squash(exit.cause)
  if (error instanceof StartFault) {
    complain(error.message)
    return error.exitCode
  }
  if (Exit.isFailure(exit)) complain(Cause.pretty(exit.cause, { renderErrorCause: true }))
  return 1
}

/** Switches off Effect's own metrics of fibers: five figures for each, which nothing shows and which cost time. */
const withoutCounts = RuntimeFlagsPatch.disable(RuntimeFlags.RuntimeMetrics)

/** Runs `program`; a first SIGTERM or SIGINT (on a terminal SIGHUP too) interrupts it, a second ends the process. */
export const run = (program: Effect.Effect<unknown, unknown>): void => {
  disablePretenuring()
  restrictFileMode()
  // The reader of our output may end before us; that must not end the service.
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {})
  const fiber = Effect.runFork(Effect.withRuntimeFlagsPatch(program, withoutCounts))
  let signalled = false
  const onSignal = (): void => {
    if (signalled) return process.exit(1)
    signalled = true
    setTimeout(() => {
      complain(`not stopped within ${stopWithinMs} ms; leaving`)
      process.exit(1)
    }, stopWithinMs).unref()
    fiber.unsafeInterruptAsFork(fiber.id())
  }
  process.on("SIGTERM", onSignal)
  process.on("SIGINT", onSignal)
  // On a terminal SIGHUP means that it is gone; elsewhere it asks for a reload (`reload.ts`), and must not end a
  // process without one.
  process.on("SIGHUP", process.stdout.isTTY ? onSignal : () => {})
  fiber.addObserver((exit) => leave(codeOf(exit)))
}

/**
 * Ends the process with a fault; after `ms` even if it still waits for something. Also a process that was told to stop
 * before: its exit code must not depend on which comes first.
 */
export const endWithin = (fault: StartFault, ms: number): Effect.Effect<void> =>
  Effect.sync(() => {
    ending = fault
    setTimeout(() => {
      complain(fault.message)
      process.exit(fault.exitCode)
    }, ms).unref()
  })

/** Arguments of the command line, behind the program's name. */
export const commandArguments = (): ReadonlyArray<string> => process.argv.slice(2)
