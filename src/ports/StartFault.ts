/**
 * A reason not to start, with the exit code the process ends with.
 *
 * One error for every layer that may refuse to be built, so that the doors map faults to exit codes in one place.
 */
import { Data } from "effect"

/** 1: anything else, 2: configuration, 3: damaged data. The message is shown to the operator as it is. */
export class StartFault extends Data.TaggedError("StartFault")<{
  readonly exitCode: 1 | 2 | 3
  readonly message: string
}> {}
