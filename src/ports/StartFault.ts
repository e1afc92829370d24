/**
 * A reason not to start, with the exit code the process ends with.
 *
 * One error for every layer that may refuse to be built, so that the doors map faults to exit codes in one place.
 */
import { Data } from "effect"

/** Exit codes of the processes, with their meanings. */
export const exitCodes = {
  0: "clean stop",
  1: "anything else",
  2: "configuration fault",
  3: "damaged data",
  4: "another service follows the database now, or has the log",
  5: "a turn of the event loop longer than SVC_MAX_TURN_MS"
} as const

/** Exit code with which the watchdog ends the process. */
export const turnTooLong: keyof typeof exitCodes = 5

/** Exit code for a store that cannot be used for this reason. */
export const exitCodeOf = (reason: string): 1 | 3 => (reason === "damaged" || reason === "newer" ? 3 : 1)

/** Codes as {@link exitCodes} has them. The message is shown to the operator as it is. */
export class StartFault extends Data.TaggedError("StartFault")<{
  readonly exitCode: 1 | 2 | 3 | 4
  readonly message: string
}> {}
